"""How large the plan of a query becomes, told before Spark makes it: a short text may say one that fills the heap.

Three things multiply. Each grouping set is a copy of every row, and of all columns; of a CUBE within GROUPING SETS
Spark's parser already makes them, so those are counted by its tokens. A table of WITH is planned once for each time
that it is named. And a condition is moved down to where the rows come from, with all its columns written out, so a
column that stands twice in the next one, and so on, stands there a million times.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from spark import functions
from spark.nesting import Estimate, Names, Tables, names_inside, spread
from spark.tables import COLUMNS
from spark.walk import QueryRefused, elements, kind_of

MOST_SETS = 256
"""Grouping sets of one GROUP BY: a CUBE of eight columns."""

MOST_SETS_PARSED = 2_048
"""Those of all CUBE and ROLLUP in a text."""

MOST_PLANNED = 10_000
"""Nodes of a plan, its tables of WITH written out: twice those of the longest text."""

MOST_WRITTEN = 20_000
"""Nodes of one condition, its columns written out; planning for so many takes seconds."""

_MANY = 10**9
"""More than anything may be; what is larger is as good as this."""

_SETS = re.compile("CUBE|ROLLUP")
_BY_CONDITIONS = frozenset({"Filter", "UnresolvedHaving", "Join", "LateralJoin"})
_BY_COLUMNS = frozenset({"Intersect", "Except"})
"""The nodes that Spark makes conditions of, on what they say or on all columns."""


def refuse_sets(sql: str, jvm: Any) -> None:
    """Refuse a text whose CUBE and ROLLUP stand for far too many grouping sets, before it is parsed.

    Raises:
        QueryRefused: they do.
    """
    if not _SETS.search(sql.upper()):
        return
    parser = jvm.org.apache.spark.sql.catalyst.parser
    tokens = parser.SqlBaseLexer(
        parser.UpperCaseCharStream(jvm.org.antlr.v4.runtime.CharStreams.fromString(sql))
    )
    tokens.removeErrorListeners()
    kinds = {
        getattr(parser.SqlBaseLexer, name): name
        for name in ("CUBE", "ROLLUP", "LEFT_PAREN", "RIGHT_PAREN", "COMMA")
    }
    found = [kinds.get(each.getType()) for each in tokens.getAllTokens() if each.getChannel() == 0]
    sets = 0
    for place, kind in enumerate(found):
        if kind in {"CUBE", "ROLLUP"}:
            sets += _sets_of(str(kind), _elements_in(found[place + 1 :]))
    if sets > MOST_SETS_PARSED:
        raise _too_many_sets()


def refuse_large(found: Any, jvm: Any) -> None:
    """Refuse a parsed plan or expression, which was walked, of which Spark's plan would be far too large.

    Raises:
        QueryRefused: it would.
    """
    _Planned().nodes_of(found, {})
    _Written(jvm).whole(found)


class _Planned:
    """Counts the nodes of a parsed plan, each as often as it is planned."""

    def __init__(self) -> None:
        self.distinct = 0

    def nodes_of(self, found: Any, tables: Mapping[str, int]) -> int:
        """
        Args:
            tables: the nodes of those that WITH defines.
        """
        kind = kind_of(found)
        if kind == "UnresolvedRelation":
            return tables.get(str(found.multipartIdentifier().last()).lower(), 1)
        if kind == "UnresolvedWith":
            defined = dict(tables)
            for each in elements(found.cteRelations()):
                defined[str(each._1()).lower()] = self.nodes_of(each._2(), defined)
            return self.nodes_of(found.child(), defined)
        before = self.distinct
        nodes = 1 + sum(self.nodes_of(each, tables) for each in spread(found))
        match kind:
            case "UnresolvedFunction" if found.isDistinct():
                self.distinct += 1
            case "Aggregate":
                grouping = list(elements(found.groupingExpressions()))
                nodes += sets_in(grouping) * len(grouping) + (self.distinct - before) ** 2
            case "Project":
                nodes += (
                    self.distinct - before
                ) ** 2  # each is a copy of every row, with all the columns of the others
            case "Pivot":
                nodes *= max(1, found.pivotValues().size())
        if nodes > MOST_PLANNED:
            raise QueryRefused(
                f"The plan of the query has more than {MOST_PLANNED:,} parts: a table of WITH stands in it once for "
                "each time that it is named, and each DISTINCT of an aggregate with each other. Name them fewer times."
            )
        return nodes


class _Written(Estimate):
    """Counts the nodes of each condition, with what its columns are made of written out."""

    most = _MANY**2

    def table(self, name: str) -> Names:
        known = [column for column, _ in COLUMNS.get(name, ())]
        return Names(dict.fromkeys(known, 1), 1, max(1, len(known)))

    def sizes_of(self, found: Any, own: Sequence[Any], place: Names, tables: Tables) -> list[int]:
        sizes = super().sizes_of(found, own, place, tables)
        kind = kind_of(found)
        if kind in _BY_CONDITIONS:
            _refuse_written(sum(sizes) + _using(found, place))
        if kind in _BY_COLUMNS:
            _refuse_written(place.total)
        return sizes

    def _of_type(self, found: Any) -> int:
        return 0

    def _of_parts(self, kind: str, sizes: Sequence[int]) -> int:
        if kind == "UnresolvedGenerator":
            _refuse_written(sum(sizes))
        return min(_MANY, 1 + sum(sizes))

    def _call(
        self, name: str, plain: Sequence[Any], lambdas: Sequence[Any], place: Names, tables: Tables
    ) -> int:
        sizes = [self.size(each, place, tables) for each in plain]
        sizes += [
            self.size(each.function(), names_inside(place, each, repeat(1)), tables) for each in lambdas
        ]
        if name in functions.TABLES:
            _refuse_written(sum(sizes))
        return min(_MANY, 1 + sum(sizes))


def _refuse_written(nodes: int) -> None:
    if nodes > MOST_WRITTEN:
        raise QueryRefused(
            f"A condition has more than {MOST_WRITTEN:,} parts once its columns are written out in it: "
            "a column stands several times in the next, and that in the next. Use each fewer times."
        )


def _using(found: Any, place: Names) -> int:
    """What a join without a condition of its own compares."""
    if kind_of(found) != "Join":
        return 0
    match kind_of(found.joinType()):
        case "UsingJoin":
            return sum(place.of([str(name).lower()]) for name in elements(found.joinType().usingColumns()))
        case "NaturalJoin":
            return max(place.sizes.values(), default=place.most)
    return 0


def sets_in(grouping: Sequence[Any]) -> int:
    """How many grouping sets the expressions of a GROUP BY make together.

    Raises:
        QueryRefused: far too many.
    """
    sets = 1
    for each in grouping:
        kind = kind_of(each)
        if kind in {"Cube", "Rollup"}:
            sets *= _sets_of(kind.upper(), each.groupingSetIndexes().size())
        elif kind == "GroupingSets":
            sets *= max(1, each.groupingSetIndexes().size())
    if sets > MOST_SETS:
        raise _too_many_sets()
    return sets


def _sets_of(kind: str, size: int) -> int:
    return 2 ** min(size, 64) if kind == "CUBE" else size + 1


def _elements_in(tokens: Sequence[str | None]) -> int:
    """How many elements stand in the parentheses with which tokens begin; none where they do not."""
    depth, found = 0, 0
    for each in tokens:
        depth += (each == "LEFT_PAREN") - (each == "RIGHT_PAREN")
        if depth == 0:
            break
        found += (each == "LEFT_PAREN" or each == "COMMA") and depth == 1
    return found


def _too_many_sets() -> QueryRefused:
    return QueryRefused(
        f"GROUP BY makes more than {MOST_SETS} grouping sets: a CUBE of n columns makes 2^n, and several are "
        "multiplied. Name fewer columns, or the sets that are wanted in GROUPING SETS."
    )
