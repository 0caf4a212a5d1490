"""An answer in SQL as a page shows it: cells with their digits, a file, a chart where the first column is an axis."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
from django.utils import timezone

from dashboard import formats
from dashboard.exports import csv_line
from streams.models import Query
from streams.services.answers import text_of

PAGE_ROWS = 200
PAGE_CELLS = 10_000
"""A page of an answer with many columns has fewer rows."""

LONGEST_CELL = 400
EPOCH = datetime.fromtimestamp(0, UTC)
MOST_SERIES = 4
_parts_of = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = ("timestamp", "date")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as text, a time in UTC; ``kind`` is text, number, null, json or time."""

    text: str
    kind: str

    @property
    def short(self) -> str:
        """What a table shows of it; a time on the clocks of the active zone, which the column's heading names."""
        if self.kind == "time" and (moment := _moment(self.text)):
            return formats.clock((moment - EPOCH) // timedelta(milliseconds=1))
        return self.text if len(self.text) <= LONGEST_CELL else f"{self.text[:LONGEST_CELL]}…"


def headings(query: Query) -> list[tuple[str, str, bool]]:
    """Each column's name, its type in Spark's words, and whether it holds numbers."""
    return [(name, spark_type, _kind(spark_type) == "number") for name, spark_type in query.columns]


def rows_kept(query: Query) -> list[msgspec.Raw]:
    """The rows as they are kept: those that a page shows are taken apart, and no others."""
    return _parts_of(query.rows)


def page_rows(query: Query) -> int:
    """How many rows a page has."""
    return max(1, min(PAGE_ROWS, PAGE_CELLS // max(1, len(query.columns))))


def cells(query: Query, found: Iterable[msgspec.Raw]) -> Iterator[list[Cell]]:
    """Rows of an answer; numbers with the digits that Spark wrote."""
    types = [spark_type for _, spark_type in query.columns]
    for row in map(_parts_of, found):
        yield [_cell(bytes(value), spark_type) for value, spark_type in zip(row, types, strict=True)]


def _cell(raw: bytes, spark_type: str) -> Cell:
    if raw == b"null":
        return Cell("null", "null")
    if raw.startswith(b'"'):
        text = text_of(raw)
        return Cell(text, "time" if spark_type == "timestamp" and _moment(text) else "text")
    return Cell(raw.decode(), "json" if raw[:1] in b"{[" else "number")


def csv_of(query: Query) -> Iterator[str]:
    """The answer as a CSV file, line by line; null is empty, formulas are made text."""
    yield csv_line([name for name, _ in query.columns])
    for row in cells(query, rows_kept(query)):
        yield csv_line(["" if cell.kind == "null" else cell.text for cell in row])


def charts_of(query: Query, found: Sequence[msgspec.Raw]) -> dict[str, Any] | None:
    """What a chart needs: the first column as x, the numbers beside it as series; None where that makes no chart.

    Returns:
        ``times`` (x, ascending; seconds where it is a time), ``step_s``, ``names`` and ``s0``, ``s1``, …, and
        ``is_time``.
    """
    kinds = [_kind(kind) for _, kind in query.columns]
    if len(found) < 2 or len(kinds) < 2 or kinds[0] not in {"time", "number"}:
        return None
    series = [n for n, kind in enumerate(kinds) if n and kind == "number"][:MOST_SERIES]
    if not series:
        return None

    def cell(row: Sequence[msgspec.Raw], n: int) -> Cell:
        return _cell(bytes(row[n]), query.columns[n][1])

    points = sorted(
        ((x, row) for row in map(_parts_of, found) if (x := _place(cell(row, 0), kinds[0])) is not None),
        key=lambda point: point[0],
    )
    places = [x for x, _ in points]
    if len(set(places)) != len(places) or len(places) < 2:
        return None
    return {
        "is_time": kinds[0] == "time",
        "times": places,
        "step_s": min(after - before for before, after in pairwise(places)),
        "names": [query.columns[n][0] for n in series],
        **{f"s{at}": [_number(cell(row, n)) for _, row in points] for at, n in enumerate(series)},
    }


def _kind(spark_type: str) -> str:
    name = spark_type.partition("(")[0]
    return "time" if name in _TIMES else "number" if name in _NUMBERS else "other"


def _place(cell: Cell, kind: str) -> float | None:
    if kind == "number":
        return _number(cell)
    moment = _moment(cell.text)
    return moment.timestamp() if moment else None


def _moment(text: str) -> datetime | None:
    """A time of Spark's, a date from its first moment in the active zone; None beyond what calendars here hold."""
    here = timezone.get_current_timezone()
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=here)).astimezone(here)
    except (ValueError, OverflowError):
        return None


def _number(cell: Cell) -> float | None:
    value = float(cell.text) if cell.kind == "number" else math.nan
    return value if math.isfinite(value) else None
