"""How large texts, arrays and maps of a query may become, told from its parsed plan: the heap is shared.

A text that is put twice into the next one, forty times over, is larger than any heap; so is one that stands in an array
for each element of another. No function makes that much at once, but a chain of columns does, and so does a lambda
function, whose accumulator goes through it once for each element. So what a plan says is added up and multiplied: what
is put together is as large as its parts, what is made for each element of an array as large as so many of it
(``spark.results`` says it of each function), and a row is as large as all its columns.

The unit is about a number; ``LARGE`` is a body. What keeps the rows of a group at once is as large as they are, so it
takes those that are there, and few that ``range`` makes. So does a join, which keeps those of one side.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from spark import functions, results
from spark.nesting import Estimate, Names, Tables, named, names_inside
from spark.walk import QueryRefused, elements, kind_of

MOST_TIMES = 500
"""So many times as large as a body may a value become, and a row: its answer is one text."""

LARGE, TEXT, SHORT = 1_000, 200, 1
"""Columns: bodies, headers and what is not known; names, ids and keys; numbers and times."""

MOST_ELEMENTS = 2_000
"""No array is taken for longer than this: times a body it is too large already."""

MOST_MADE = 1_000_000
"""Rows that ``range`` makes in a query that keeps those of a group at once."""

MOST_HELD = 20_000_000
"""What ``range`` makes for one side of a join, all its rows with all their columns: Spark may keep it at once."""

MOST_STEPS = 20_000
"""Expressions looked at: those of a lambda function that accumulates more than once."""

JOINS = frozenset({"Join", "LateralJoin"})

MULTIPLYING = JOINS | {"Generate", "Union"}
"""The nodes that may make more rows than there are; so do the functions that stand where a table stands."""

OF_A_NAME = 8
"""So many characters of a name count as a number: as JSON, each element of an array has it."""

_OVERLAPPING = re.compile(r"\?=|\?<(?![A-Za-z])")
"""Where a pattern looks ahead or back: what it finds there may be found again from the next place."""

_REFERENCE = re.compile(r"\$")

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
        kind = kind_of(found)
        self.multiplies |= kind in MULTIPLYING
        names = super().plan(found, outer, tables)
        match kind:
            case "UnresolvedTableValuedFunction":
                self._of_table_function(found, names)
            case "Project" if any(map(_is_of_all_rows, elements(found.projectList()))):
                names.rows = 1  # an aggregate without GROUP BY
            case "GlobalLimit" if kind_of(found.limitExpr()) == "Literal":
                names.rows = min(names.rows, max(1, int(found.limitExpr().value() or 0)))
            case "Pivot":
                names.total *= max(1, found.pivotValues().size())
                if names.total > self.most:
                    raise self.refusal_of_a_row()
        return names

    def _of_table_function(self, found: Any, names: Names) -> None:
        name, arguments = str(found.name().last()).lower(), list(elements(found.functionArgs()))
        if name == "range":
            names.rows = max(1, _rows(arguments))
            self.made *= names.rows
        elif name in results.FOR_EACH:
            names.total *= len(arguments)
            if names.total > self.most:
                raise self.refusal_of_a_row()

    def together(self, kind: str, children: Sequence[Names]) -> Names:
        if kind in JOINS:
            for each in children:
                _refuse_held(each)
        return super().together(kind, children)

    def within(self, found: Names) -> int:
        _refuse_held(found)
        return super().within(found)

    def refusal(self) -> QueryRefused:
        return QueryRefused(
            f"A text, an array or a map may become more than {MOST_TIMES} times as large as a body: it is put into "
            "itself again and again, or into an array for each element of another."
        )

    def refusal_of_a_row(self) -> QueryRefused:
        return QueryRefused(
            f"The columns of a row together may become more than {MOST_TIMES} times as large as a body; "
            "select fewer of them, or shorter ones."
        )

    def _size(self, found: Any, place: Names, tables: Tables) -> int:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise QueryRefused("It is nested too deeply.")
        kind = kind_of(found)
        match kind:
            case "Literal":
                return self.times * min(MOST_ELEMENTS, max(1, _length(found)))
            case "Cast":
                return self._cast(found, self.size(found.child(), place, tables))
            case "UnresolvedGenerator":
                given = list(elements(found.children()))
                return self._call(str(found.name().funcName()).lower(), given, [], place, tables)
        size = super()._size(found, place, tables)
        for name in named(found):
            size += self.times * (len(name) // OF_A_NAME)
            place.note(name, size)
        return size

    def _of_type(self, found: Any) -> int:
        return self.times

    def _of_parts(self, kind: str, sizes: Sequence[int]) -> int:
        if kind in results.FIXED_KINDS:
            return self.times
        return sum(sizes) if kind in results.ADDING_KINDS else max(sizes, default=self.times)

    def _call(
        self, name: str, plain: Sequence[Any], lambdas: Sequence[Any], place: Names, tables: Tables
    ) -> int:
        sizes = [self.size(each, place, tables) for each in plain]
        if name in results.KEEPING:
            self.keeps = name
        self.multiplies |= name in functions.TABLES
        if name in results.ACCUMULATING:
            return self._accumulated(sizes, lambdas, place, tables)
        for each in lambdas:
            if name in results.MAKING:
                sizes = [self._for_each(each, sum(sizes), place, tables)]
            else:
                self.size(each.function(), names_inside(place, each, [sum(sizes)] * 3), tables)
        if name in results.FIXED:
            return self.times
        together = self._of_arguments(name, plain, sizes)
        return max(together, LARGE) if name in results.COLLECTING else together

    def _of_arguments(self, name: str, plain: Sequence[Any], sizes: Sequence[int]) -> int:
        """What a function makes of arguments of such sizes."""
        largest = max(sizes, default=self.times)
        if name in results.LARGEST or name in results.MAKING:
            return largest
        if name in results.ADDING:
            return sum(sizes)
        if name in results.GROWING:
            return largest * results.GROWING[name]
        if any(kind_of(each).startswith("UnresolvedStar") for each in plain):
            return MOST_ELEMENTS * sum(sizes)  # any of them may be put into any other
        if name in results.FOR_EACH:
            return largest * len(sizes)
        if name in results.CASTING:
            return largest * (1 if _is_plain(plain) else results.OF_A_VALUE)
        if name in results.TRANSLATING:
            return sizes[0] * _larger_letters(plain) if sizes else largest
        if name in results.READ_AS:
            return self._read_by(name, plain, sizes)
        if name in results.WRITTEN_IN:
            return self._written_in(name, plain, sizes)
        return largest * self._overlap(name, plain, sizes)

    def _cast(self, found: Any, size: int) -> int:
        match str(found.dataType().typeName()):
            case "string":
                return size if _is_plain([found.child()]) else size * results.OF_A_VALUE
            case "variant":
                return size * results.GROWING["to_variant_object"]
        return self._read_as(found.dataType(), size)

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
        """What texts are put into at many places: what they are put into, so many times."""
        texts, rest = results.WRITTEN_IN[name]
        into = sum(
            size for n, size in enumerate(sizes) if n not in texts and n in range(rest.start, rest.stop)
        )
        if texts[0] >= len(plain):
            return max(sizes, default=self.times)
        if name == "replace" and all(kind_of(each) == "Literal" for each in plain[1:3]):
            return into * max(1, -(-_length(plain[2]) // max(1, _least(_text(plain[1])))))
        times = 1
        for at in texts:
            if at < len(plain):
                times += self._length_of(plain[at], sizes[at])
        if name in results.MATCHING:
            references = len(_REFERENCE.findall(_text(plain[2]))) if kind_of(plain[2]) == "Literal" else times
            times += references * (self._overlap(name, plain, sizes) - 1)
        return into * times

    def _length_of(self, found: Any, size: int) -> int:
        return _length(found) if kind_of(found) == "Literal" else size // self.times

    def _overlap(self, name: str, plain: Sequence[Any], sizes: Sequence[int]) -> int:
        """How often a match of a pattern may have the same place of a text in it."""
        at = results.MATCHING[name]
        is_plain = (
            at < len(plain) and kind_of(plain[at]) == "Literal" and not _OVERLAPPING.search(_text(plain[at]))
        )
        return 1 if is_plain else 1 + min(MOST_ELEMENTS, sizes[0] // self.times)

    def _read_by(self, name: str, plain: Sequence[Any], sizes: Sequence[int]) -> int:
        """What a function reads as a type whose text it is given."""
        at = results.READ_AS[name]
        if at >= len(plain):
            return max(sizes, default=self.times)
        if kind_of(plain[at]) != "Literal":  # schema_of_json
            return sizes[0] * (1 + sizes[at] // self.times)
        return self._read_as(self.jvm.org.apache.spark.sql.types.DataType.fromDDL(_text(plain[at])), sizes[0])

    def _read_as(self, kind: Any, size: int) -> int:
        """What is read as a type, of a text or a value of such a size."""
        return max(size, self.times * _weight(kind), size * _weight_of_elements(kind))


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
    return most_of(str(value)) if kind.startswith(("string", "char", "varchar")) else 1


def most_of(text: str) -> int:
    """How long a text is, each letter in the case in which it is the largest: no change of case makes that more."""
    return sum(max(map(_bytes, (each, each.upper(), each.lower(), each.title()))) for each in text)


def _least(text: str) -> int:
    """How long a text is, each letter in the case in which it is the smallest."""
    return sum(min(map(_bytes, (each, each.upper(), each.lower()))) for each in text)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _larger_letters(plain: Sequence[Any]) -> int:
    """How many times as large ``translate`` makes a text."""
    if len(plain) < 3 or any(kind_of(each) != "Literal" for each in plain[1:3]):
        return results.LARGEST_LETTER
    pairs = zip(_text(plain[1]), _text(plain[2]), strict=False)
    return max((-(-most_of(after) // _least(before)) for before, after in pairs), default=1)


def _is_plain(plain: Sequence[Any]) -> bool:
    """Whether what is cast to text is no array."""
    inside = (each.child() if kind_of(each) == "Alias" else each for each in plain)
    return all(kind_of(each) in results.PLAIN_KINDS for each in inside)


def _is_of_all_rows(found: Any) -> bool:
    """Whether an expression is an aggregate, perhaps with a name."""
    while kind_of(found) in {"Alias", "UnresolvedAlias"}:
        found = found.child()
    return (
        kind_of(found) == "UnresolvedFunction"
        and str(found.nameParts().last()).lower() in results.OF_ALL_ROWS
    )


def _text(literal: Any) -> str:
    return str(literal.value())


def _weight(kind: Any) -> int:
    """The values of a type, and what their names count as, without what is in arrays and maps."""
    if kind.typeName() != "struct":
        return 1
    return sum(len(str(each.name())) // OF_A_NAME + _weight(each.dataType()) for each in kind.fields())


def _weight_of_elements(kind: Any) -> int:
    """The most that an element has of any array or map in a type; 0 where there is none."""
    match kind.typeName():
        case "struct":
            return max((_weight_of_elements(each.dataType()) for each in kind.fields()), default=0)
        case "array":
            inside = [kind.elementType()]
        case "map":
            inside = [kind.keyType(), kind.valueType()]
        case _:
            return 0
    return max(sum(map(_weight, inside)), *map(_weight_of_elements, inside))


def _refuse_held(found: Names) -> None:
    """Refuse what one side of a join is made of, which may be kept at once."""
    if found.rows > 1 and found.rows * found.total > MOST_HELD:
        raise QueryRefused(
            f"One side of a join, or a query within an expression, has {found.rows:,} rows that 'range' makes, which "
            "are too many to be kept at once with all their columns. Make fewer rows, or shorter ones."
        )
