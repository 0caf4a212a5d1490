"""Looks at windows of the history as a whole, for what no sum tells: distinct ids and keys, sizes, what is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark.batches import HistoryFile
from spark.history import History
from spark.transforms import figures as transforms

LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}

_WINDOWS = "window long, stream_id string, step string, start timestamp, counted long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A minute, hour or day of a stream that is to be looked at.

    Attributes:
        number: the caller's own, to know it by.
        start: where it begins (UTC).
        counted: messages above this offset are left out; they are not in the sums either.
    """

    number: int
    stream_id: str
    step: str
    start: datetime
    counted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a window comes to.

    Attributes:
        number: of the window.
        messages: how many there are now; fewer than were counted where some were erased.
        first, last: offsets, None without a message.
        twice: how many of the messages the history has once more than it should.
        ids, keys: distinct ones; messages without a key have none.
        size_p50, size_p90, size_p99, size_max: bytes of a body, None without a message.
        top_keys: the most frequent keys with their messages, most frequent first.
    """

    number: int
    messages: int = 0
    first: int | None = None
    last: int | None = None
    twice: int = 0
    ids: int = 0
    keys: int = 0
    size_p50: int | None = None
    size_p90: int | None = None
    size_p99: int | None = None
    size_max: int | None = None
    top_keys: list[tuple[str, int]] = field(default_factory=list)


def look(
    session: SparkSession, history: History, files: Iterable[HistoryFile], *, windows: Sequence[Window]
) -> list[Figures]:
    """The figures of windows, in their order; exact, and the same however often it is asked.

    Args:
        files: those of the history that count; only the ones that reach into a window are read.
    """
    wanted = reaching_into(windows, files)
    if not wanted:
        return [Figures(number=each.number) for each in windows]
    frame = transforms.in_windows(history.read(wanted), windows=window_frame(session, windows)).persist()
    try:
        keys, found, sizes = [
            {row.window: row.asDict() for row in of(frame).collect()}
            for of in (transforms.keys, transforms.figures, transforms.sizes)
        ]
    finally:
        frame.unpersist()
    return [
        _figures(each.number, found[each.number] | sizes[each.number], keys.get(each.number, {}))
        if each.number in found
        else Figures(number=each.number)
        for each in windows
    ]


def _figures(number: int, found: dict[str, Any], keys: dict[str, Any]) -> Figures:
    return Figures(
        number=number,
        messages=found["found"],
        keys=keys.get("keys", 0),
        top_keys=[(each.key, each.messages) for each in keys.get("top", ())],
        **{
            name: found[name]
            for name in ("first", "last", "twice", "ids", "size_p50", "size_p90", "size_p99", "size_max")
        },
    )


def window_frame(session: SparkSession, windows: Iterable[Window]) -> DataFrame:
    """Windows as the transforms take them."""
    rows = [(each.number, each.stream_id, each.step, each.start, each.counted) for each in windows]
    return session.createDataFrame(rows, _WINDOWS)


def reaching_into(windows: Iterable[Window], files: Iterable[HistoryFile]) -> list[HistoryFile]:
    """The files that may hold a message of these windows."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for window in windows:
        start_ms = int(window.start.timestamp() * 1000)
        end_ms = start_ms + int(LENGTHS[window.step].total_seconds() * 1000)
        spans.setdefault(window.stream_id, []).append((start_ms, end_ms))
    merged = {stream_id: _merged(some) for stream_id, some in spans.items()}
    return [
        file
        for file in files
        if any(
            file.first_ms < end_ms and start_ms <= file.last_ms
            for start_ms, end_ms in merged.get(file.stream_id, ())
        )
    ]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times in as few spans as may be: windows lie side by side and within each other."""
    found: list[tuple[int, int]] = []
    for start_ms, end_ms in sorted(spans):
        if found and start_ms <= found[-1][1]:
            found[-1] = (found[-1][0], max(end_ms, found[-1][1]))
        else:
            found.append((start_ms, end_ms))
    return found
