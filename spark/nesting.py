"""How many values the columns of a query may be made of, told from its parsed plan, before Spark looks at their types.

A column that is put twice into the next one, and so on, has a type of a few objects and of more values than anybody can
go through. Spark does so while it analyses some functions (``hash``), and where it writes a type down to say that it
does not fit: for hours, or until the heap is full. So what a plan says is added up first: what is made of several
values is as large as these together, anything else as the largest of what it is made from, a row as its columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from spark import functions
from spark.walk import CATALYST, PLANS, QueryRefused, elements, kind_of, parts_of

MOST_VALUES = 5_000
"""A column may be made of so many, and a row; planning for more takes minutes."""

MOST_ESTIMATED = 50_000
"""So many are analysed, and counted then: the estimate may be too high. It is of a column, and of a row."""

SETS = frozenset({"Union", "Intersect", "Except"})
"""The nodes whose rows are those of their parts, and as wide."""

PLAIN, WHOLE = 2, 20
"""A column of a table, and all of them."""

_TOGETHER = """
struct named_struct map map_from_arrays map_zip_with arrays_zip transform_keys transform_values
"""
TOGETHER = frozenset(_TOGETHER.split())
"""The functions that make one value of all that they are given."""


@dataclass(slots=True)
class Names:
    """What the names in a place stand for, and how large it is.

    Attributes:
        most: any one of them, and what is not among them.
        total: all of them, as ``*`` means them.
        rows: how many times as many as there are.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    most: int = PLAIN
    total: int = WHOLE
    rows: int = 1

    def of(self, parts: list[str]) -> int:
        """What a name in parts stands for, any of which may be the column."""
        return max((self.sizes[part] for part in parts if part in self.sizes), default=self.most)

    def note(self, name: str, size: int) -> None:
        self.sizes[name] = max(size, self.sizes.get(name, 0))

    def add(self, others: "Names") -> None:
        """Have those of another place here, too."""
        for name, size in others.sizes.items():
            self.note(name, size)
        self.most, self.total = max(self.most, others.most), self.total + others.total
        self.rows *= others.rows


Tables = Mapping[str, Names]


def refuse_endless(found: Any, jvm: Any) -> None:
    """Refuse a parsed plan or expression, which was walked, in which something is made of far too many values.

    Raises:
        QueryRefused: it is, or it is nested too deeply to be looked at.
    """
    Estimate(jvm).whole(found)


def too_nested() -> QueryRefused:
    return QueryRefused(f"A column is nested into more than {MOST_VALUES:,} fields.")


def too_wide() -> QueryRefused:
    return QueryRefused(f"A row has more than {MOST_VALUES:,} fields; select fewer columns.")


class Estimate:
    """Goes through a parsed plan by the names in it, and says how large what they stand for may be."""

    most = MOST_ESTIMATED

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm
        self.known: dict[int, int] = {}

    def whole(self, found: Any) -> None:
        """Go through a plan, or an expression on a message.

        Raises:
            QueryRefused: something in it is too large, or too deep to be looked at.
        """
        try:
            if kind_of(found) in PLANS:
                self.plan(found, Names(), {})
            else:
                self.size(found, self.table("messages"), {})
        except RecursionError:
            raise QueryRefused("It is nested too deeply.") from None

    def table(self, name: str) -> Names:
        """The columns of a table that is offered."""
        return Names()

    def refusal(self) -> QueryRefused:
        """Of what is too large."""
        return too_nested()

    def refusal_of_a_row(self) -> QueryRefused:
        """Of a row that is too large, all its columns together."""
        return too_wide()

    def plan(self, found: Any, outer: Names, tables: Tables) -> Names:
        """The names that a plan gives to the one around it.

        Args:
            outer: of the place around a query that stands in an expression.
            tables: those that the query defines itself.
        """
        kind = kind_of(found)
        if kind == "UnresolvedRelation":
            name = str(found.multipartIdentifier().last()).lower()
            return tables[name] if name in tables else self.table(name)
        if kind == "UnresolvedWith":
            defined = dict(tables)
            for each in elements(found.cteRelations()):
                defined[str(each._1()).lower()] = self.plan(each._2(), outer, defined)
            return self.plan(found.child(), outer, defined)
        children, own = [], []
        for each in spread(found):
            if kind_of(each) in PLANS:
                children.append(self.plan(each, outer, tables))
            else:
                own.append(each)
        inner = self.together(kind, children)
        place = Names({**outer.sizes, **inner.sizes}, max(outer.most, inner.most), inner.total or outer.total)
        made = self.sizes_of(found, own, place, tables)
        chosen = kind in {"Project", "Aggregate"}
        for each in own:
            for name in named(each):
                inner.note(name, place.sizes[name])
        inner.most = max(inner.most, *made, PLAIN)
        inner.total = sum(made) + (0 if chosen else inner.total)
        if inner.total > self.most:
            raise self.refusal_of_a_row()
        return inner

    def sizes_of(self, found: Any, own: Sequence[Any], place: Names, tables: Tables) -> list[int]:
        """How large the expressions of a node are."""
        return [self.size(each, place, tables) for each in own]

    def together(self, kind: str, children: Sequence[Names]) -> Names:
        """The names that a node has from those below it."""
        inner = Names(total=0)
        for each in children:
            inner.add(each)
        if kind in SETS:
            inner.total = max(each.total for each in children)
            inner.rows = sum(each.rows for each in children)
        return inner

    def size(self, found: Any, place: Names, tables: Tables) -> int:
        """Of how many values an expression may be made, or something in it, at most.

        Raises:
            QueryRefused: too many.
        """
        size = self._size(found, place, tables)
        if size > self.most:
            raise self.refusal()
        return size

    def _size(self, found: Any, place: Names, tables: Tables) -> int:
        kind = kind_of(found)
        if is_type(found):
            return self._of_type(found)
        if kind in PLANS:
            return self.within(self.plan(found, place, tables))
        match kind:
            case "UnresolvedAttribute" | "UnresolvedNamedLambdaVariable":
                return place.of([str(part).lower() for part in elements(found.nameParts())])
            case "UnresolvedFunction":
                arguments = list(elements(found.arguments()))
                plain = [each for each in arguments if kind_of(each) != "LambdaFunction"]
                lambdas = [each for each in arguments if kind_of(each) == "LambdaFunction"]
                return self._call(str(found.nameParts().last()).lower(), plain, lambdas, place, tables)
        if kind.startswith("UnresolvedStar"):
            return place.total
        size = self._of_parts(kind, [self.size(each, place, tables) for each in spread(found)])
        for name in named(found):
            place.note(name, size)
        return size

    def within(self, found: Names) -> int:
        """Of a query in an expression, which gives these."""
        return found.most

    def _of_type(self, found: Any) -> int:
        """Of a type that is written down."""
        return values_in(found, self.known, self.jvm)

    def _of_parts(self, kind: str, sizes: Sequence[int]) -> int:
        """Of an expression of a kind, whose parts are so large."""
        return sum(sizes) if kind == "CreateNamedStruct" else max(sizes, default=1)

    def _call(
        self, name: str, plain: Sequence[Any], lambdas: Sequence[Any], place: Names, tables: Tables
    ) -> int:
        """Of a function: what its lambda functions are given is as large as what it is given itself."""
        sizes = [self.size(each, place, tables) for each in plain]
        if name in functions.TYPES:
            # The text of a type: each field in it has a name and a type.
            sizes += [len(str(each.value())) // 4 for each in plain if kind_of(each) == "Literal"]
        for each in lambdas:
            inside = names_inside(place, each, repeat(max(sizes, default=PLAIN)))
            sizes.append(self.size(each.function(), inside, tables))
        return sum(sizes) if name in TOGETHER else max(sizes, default=1)


def names_inside(place: Names, found: Any, sizes: Iterable[int]) -> Names:
    """The names in a lambda function, of which its own are so large, in order."""
    variables = [
        [str(part).lower() for part in elements(variable.nameParts())]
        for variable in elements(found.arguments())
    ]
    given = {part: size for parts, size in zip(variables, sizes, strict=False) for part in parts}
    return Names({**place.sizes, **given}, place.most, place.total)


def values_in(kind: Any, known: dict[int, int], jvm: Any) -> int:
    """How many values of plain types one of this type is made of; each object of it is looked at once."""
    name = kind.typeName()
    if name not in {"struct", "array", "map"}:
        return 1
    place = jvm.java.lang.System.identityHashCode(kind)
    if place not in known:
        if name == "struct":
            inside = [each.dataType() for each in kind.fields()]
        else:
            inside = [kind.elementType()] if name == "array" else [kind.keyType(), kind.valueType()]
        known[place] = sum(values_in(each, known, jvm) for each in inside)
    return known[place]


def spread(found: Any) -> Iterator[Any]:
    """What a node holds that may be large: nodes and types, also those in lists."""
    waiting = list(parts_of(found))[::-1]
    while waiting:
        each = waiting.pop()
        if each is None or isinstance(each, (str, int, float, bool, bytes, bytearray)):
            continue
        name = str(each.getClass().getName())
        if name.startswith("scala.collection."):
            waiting += list(elements(each))[::-1]
        elif name.startswith(("scala.Some", "scala.Tuple")):
            waiting += list(parts_of(each))[::-1]
        elif is_type(each) or (
            name.startswith(CATALYST) and kind_of(each) not in {"GenericInternalRow", "GenericRowWithSchema"}
        ):
            yield each


def is_type(found: Any) -> bool:
    name = str(found.getClass().getName())
    return name.startswith("org.apache.spark.sql.types.") and name.rstrip("$").endswith("Type")


def named(found: Any) -> list[str]:
    """The names that a node gives to what it holds."""
    match kind_of(found):
        case "Alias":
            return [str(found.name()).lower()]
        case "MultiAlias":
            return [str(name).lower() for name in elements(found.names())]
    return []
