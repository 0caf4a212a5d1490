"""How large texts, arrays and maps of a query may become, told from its parsed plan: the heap is shared.

A text that is put twice into the next one, forty times over, is larger than any heap; so is one that stands in an array
for each element of another. No function makes that much at once, but a chain of columns does, and so does a lambda
function, whose accumulator goes through it once for each element. So what a plan says is added up and multiplied: what
is put together is as large as its parts, what is made for each element of an array as large as so many of it.

The unit is about a number; ``LARGE`` is a body. What keeps the rows of a group at once is as large as they are, so it
takes those that are there, and few that ``range`` makes.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from spark import functions
from spark.nesting import Estimate, Names, Tables, names_inside
from spark.walk import QueryRefused, elements, kind_of

MOST_TIMES = 500
"""So many times as large as a body may a value become."""

LARGE, TEXT, SHORT = 1_000, 200, 1
"""Columns: bodies, headers and what is not known; names, ids and keys; numbers and times."""

MOST_ELEMENTS = 2_000
"""No array is taken for longer than this: times a body it is too large already."""

MOST_MADE = 1_000_000
"""Rows that ``range`` makes in a query that keeps those of a group at once."""

MOST_STEPS = 20_000
"""Expressions looked at: those of a lambda function that accumulates more than once."""

MULTIPLYING = frozenset({"Join", "LateralJoin", "Generate", "Union"})
"""The nodes that may make more rows than there are; so do the functions that stand where a table stands."""

FEW_TURNS, MANY_TURNS = 3, 24
"""After the first, turns of an accumulator show whether it is doubled; doubled so often, one is too large."""

_TEXTS = "id key stream step group"
_NUMBERS = """
offset timestamp time start bytes messages committed lag ids keys missing duplicates removed samples deliveries acked
redelivered dead_lettered lost
"""
_OF_TABLE = {**dict.fromkeys(_TEXTS.split(), TEXT), **dict.fromkeys(_NUMBERS.split(), SHORT)}


class Keeps(IntEnum):
    """What a query keeps at once, as far as its text tells."""

    NOTHING = 0
    ROWS = 1  # of a group, each that is there once at most
    MANY = 2  # as many as a join makes of them


def refuse_growth(found: Any, jvm: Any) -> Keeps:
    """Refuse a parsed plan or expression, which was walked, in which a value may become far too large.

    Returns:
        What it keeps.

    Raises:
        QueryRefused: it may.
    """
    growth = _Growth(jvm)
    growth.whole(found)
    if growth.keeps and growth.made > MOST_MADE:
        raise QueryRefused(
            f"The function {growth.keeps!r} keeps the rows of a group at once, so it cannot be used where 'range' "
            f"makes more than {MOST_MADE:,} of them."
        )
    if not growth.keeps:
        return Keeps.NOTHING
    return Keeps.MANY if growth.multiplies else Keeps.ROWS


class _Growth(Estimate):
    most = MOST_TIMES * LARGE

    def __init__(self, jvm: Any) -> None:
        super().__init__(jvm)
        self.steps = 0
        self.made, self.keeps, self.multiplies = 1, "", False
        self.times = 1
        """How often the expression is computed for one value: once for each element of the arrays around it."""

    def table(self, name: str) -> Names:
        return Names(dict(_OF_TABLE), LARGE, 3 * LARGE + 5 * TEXT)

    def plan(self, found: Any, outer: Names, tables: Tables) -> Names:
        self.multiplies |= kind_of(found) in MULTIPLYING
        if kind_of(found) == "UnresolvedTableValuedFunction" and str(found.name().last()).lower() == "range":
            self.made *= max(1, _rows(list(elements(found.functionArgs()))))
        return super().plan(found, outer, tables)

    def refusal(self) -> QueryRefused:
        return QueryRefused(
            f"A text, an array or a map may become more than {MOST_TIMES} times as large as a body: it is put into "
            "itself again and again, or into an array for each element of another."
        )

    def _size(self, found: Any, place: Names, tables: Tables) -> int:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise QueryRefused("It is nested too deeply.")
        if kind_of(found) == "Literal":
            return self.times * min(MOST_ELEMENTS, max(1, _length(found)))
        return super()._size(found, place, tables)

    def _of_type(self, found: Any) -> int:
        return self.times

    def _of_parts(self, kind: str, sizes: Sequence[int]) -> int:
        if kind in functions.FIXED_KINDS:
            return self.times
        return sum(sizes) if kind in functions.ADDING_KINDS else max(sizes, default=self.times)

    def _call(
        self, name: str, plain: Sequence[Any], lambdas: Sequence[Any], place: Names, tables: Tables
    ) -> int:
        sizes = [self.size(each, place, tables) for each in plain]
        if name in functions.KEEPING:
            self.keeps = name
        self.multiplies |= name in functions.TABLES
        if name in {"aggregate", "reduce"}:
            return self._accumulated(sizes, lambdas, place, tables)
        for each in lambdas:
            if name in functions.MAKING:
                sizes = [self._for_each(each, sum(sizes), place, tables)]
            else:
                self.size(each.function(), names_inside(place, each, [sum(sizes)] * 3), tables)
        if name in functions.FIXED:
            return self.times
        if name in functions.WRITTEN_IN:
            return self._written_in(name, plain, sizes)
        together = sum(sizes) if name in functions.ADDING else max(sizes, default=self.times)
        if name in functions.COLLECTING:
            together = max(together, LARGE)
        return together * functions.GROWING.get(name, 1)

    def _for_each(self, found: Any, base: int, place: Names, tables: Tables) -> int:
        """What a lambda function makes of each element of ``base``, all of it together."""
        around, n = self.times, min(MOST_ELEMENTS, base)
        outer = Names({name: n * size for name, size in place.sizes.items()}, n * place.most, n * place.total)
        self.times = max(around, min(around * MOST_ELEMENTS, base))
        try:
            return max(base, self.size(found.function(), names_inside(outer, found, [base] * 3), tables))
        finally:
            self.times = around

    def _accumulated(self, sizes: Sequence[int], lambdas: Sequence[Any], place: Names, tables: Tables) -> int:
        """What goes through a lambda function once for each element, and then perhaps through another."""
        base, held = (*sizes, *sizes[-1:], self.times, self.times)[:2]
        turns = min(MOST_ELEMENTS, base)
        for merge in lambdas[:1]:
            element = max(self.times, base // max(1, turns))
            seen = [held]
            while len(seen) <= min(turns, MANY_TURNS):
                seen.append(
                    self.size(merge.function(), names_inside(place, merge, [seen[-1], element]), tables)
                )
                if len(seen) > FEW_TURNS and seen[-1] - seen[-2] <= seen[-2] - seen[-3]:
                    break
            more = max(0, seen[-1] - seen[-2]) if len(seen) > 1 else 0
            held = max(seen) + more * max(0, turns - len(seen) + 1)
            if held > self.most:
                raise self.refusal()
        for finish in lambdas[1:]:
            held = self.size(finish.function(), names_inside(place, finish, [held]), tables)
        return held

    def _written_in(self, name: str, plain: Sequence[Any], sizes: Sequence[int]) -> int:
        """What a text is put into at many places: what it is put into, so many times."""
        if any(kind_of(each).startswith("UnresolvedStar") for each in plain):
            return MOST_ELEMENTS * sum(sizes)  # any of them may be put into any other
        at, rest = functions.WRITTEN_IN[name]
        if at >= len(plain):
            return max(sizes, default=self.times)
        into = sum(size for n, size in enumerate(sizes) if n != at and n in range(rest.start, rest.stop))
        written = plain[at]
        if kind_of(written) != "Literal":
            return into * (1 + sizes[at] // self.times)
        length = _length(written)
        if name == "replace":
            of = _length(plain[1]) if kind_of(plain[1]) == "Literal" else 1
            return into * max(1, -(-length // max(1, of)))
        return into * (1 + length)


def _rows(arguments: Sequence[Any]) -> int:
    """How many rows a ``range`` has; of one that is not written down, too many."""
    written = [each.value() if kind_of(each) == "Literal" else None for each in arguments[:3]]
    numbers = [each for each in written if isinstance(each, int)]
    if len(numbers) < len(written):
        return MOST_MADE + 1
    start, end, step = ([0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1, 1, 1])[:3]
    return 1 + abs(end - start) // max(1, abs(step))


def _length(literal: Any) -> int:
    """How long a text is that is written down; a number has one place."""
    value, kind = literal.value(), str(literal.dataType().typeName())
    if value is None:
        return 0
    if kind == "binary":
        return len(value)
    return len(str(value).encode()) if kind.startswith(("string", "char", "varchar")) else 1
