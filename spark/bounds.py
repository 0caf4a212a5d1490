"""Where a read of streams starts and ends, as its options say: operations on the log."""

import logging
from collections.abc import Mapping, Sequence

from spark.options import EARLIEST, LATEST, MAP_EARLIEST, MAP_LATEST, Offsets, OptionError, Options
from spark.positions import Position
from spark.pushed import Pushed
from spark.ranges import Range
from spark.reading import refuse_or_report
from streams.log import read
from streams.log.client import Op
from streams.log.config import Registered
from streams.log.entries import timestamp
from streams.log.errors import StreamNotFound

log = logging.getLogger(__name__)


def starts(
    options: Options, streams: Sequence[Registered], at: Mapping[str, Position], *, default: str
) -> Op[dict[str, int]]:
    """Stream id → first offset to read, as ``startingTimestamp`` or else ``startingOffsets`` says.

    Raises:
        OptionError: a named stream is not among those read, an offset lies beyond its end, or nothing is as new as
            the time, with ``startingOffsetsByTimestampStrategy`` ``error``.
        DataLossError: the offset has gone, with ``failOnDataLoss``.
    """
    if options.starting_ms is not None:
        return (yield from _starts_by_time(options, options.starting_ms, streams, at))
    asked = options.starting or default
    _check_named(asked, streams, option="startingOffsets")
    found = {}
    for stream in streams:
        position = at[stream.stream_id]
        earliest = position.next_offset(archive=options.archive)
        offset = _place(asked, stream.name, earliest=earliest, latest=position.last + 1, default=earliest)
        # A log that lost its end may have less than the history.
        if offset > max(position.last + 1, earliest):
            raise OptionError(
                f"Option startingOffsets: {stream.name!r} has no offset {offset} yet; its last is {position.last}."
            )
        if offset < earliest:
            refuse_or_report(stream.name, offset, earliest - 1, strict=options.fail_on_data_loss)
        found[stream.stream_id] = max(offset, earliest)
    return found


def _starts_by_time(
    options: Options, at_ms: int, streams: Sequence[Registered], at: Mapping[str, Position]
) -> Op[dict[str, int]]:
    found = {}
    for stream in streams:
        position = at[stream.stream_id]
        offset = yield from _offset_at(stream, at_ms, position)
        if offset > position.last and not options.latest_where_none:
            raise OptionError(
                f"Option startingTimestamp: {stream.name!r} has nothing at or after {timestamp(at_ms)}; "
                "startingOffsetsByTimestampStrategy=latest starts at its end."
            )
        if 1 < offset == position.floor:
            log.warning(
                "Stream %r: offsets up to %s are no longer there, and some may be as new as startingTimestamp.",
                stream.name,
                offset - 1,
            )
        found[stream.stream_id] = offset
    return found


def ends(
    options: Options, streams: Sequence[Registered], at: Mapping[str, Position], first: Mapping[str, int]
) -> Op[dict[str, int]]:
    """Stream id → first offset not to read, as ``endingTimestamp`` or else ``endingOffsets`` says.

    Raises:
        OptionError: a named stream is not among those read, or an offset lies beyond its end.
    """
    found = {}
    if options.ending_ms is not None:
        for stream in streams:
            found[stream.stream_id] = yield from _offset_at(stream, options.ending_ms, at[stream.stream_id])
        return found
    asked = options.ending or LATEST
    _check_named(asked, streams, option="endingOffsets")
    for stream in streams:
        end = at[stream.stream_id].last_offset(archive=options.archive) + 1
        below = _place(asked, stream.name, earliest=first[stream.stream_id], latest=end, default=end)
        if below > end:
            raise OptionError(
                f"Option endingOffsets: {stream.name!r} has no offset {below - 1} yet; its last is {end - 1}."
            )
        found[stream.stream_id] = below
    return found


def narrowed(wanted: Range, position: Position, stream: Registered, pushed: Pushed) -> Op[Range]:
    """What of a range a query can want; it may be empty."""
    first, last = wanted.first, wanted.last
    if pushed.first is not None:
        first = max(first, pushed.first)
    if pushed.last is not None:
        last = min(last, pushed.last)
    if pushed.since_ms is not None:
        first = max(first, (yield from _offset_at(stream, pushed.since_ms, position)))
    if pushed.until_ms is not None:
        last = min(last, (yield from _offset_at(stream, pushed.until_ms + 1, position)) - 1)
    return span(stream, first, last)


def span(stream: Registered, first: int, last: int) -> Range:
    """A range of a stream's offsets, both ends included."""
    return Range(
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream=stream.name,
        first=first,
        last=last,
    )


def _offset_at(stream: Registered, at_ms: int, position: Position) -> Op[int]:
    """The first visible offset at or after a time, the next one after the stream's end where there is none."""
    try:
        found = yield from read.offset_at(stream.stream_id, at_ms)
    except StreamNotFound:
        return position.last + 1  # deleted since
    return min(found, position.last + 1)


def _check_named(asked: Offsets, streams: Sequence[Registered], *, option: str) -> None:
    if isinstance(asked, str):
        return
    names = {each.name for each in streams}
    for name in asked:
        if name not in names:
            raise OptionError(
                f"Option {option} names {name!r}, which is not among the streams that are read."
            )


def _place(asked: Offsets, name: str, *, earliest: int, latest: int, default: int) -> int:
    """The offset that ``startingOffsets`` or ``endingOffsets`` gives a stream."""
    if isinstance(asked, str):
        return earliest if asked == EARLIEST else latest
    offset = asked.get(name, default)
    return {MAP_EARLIEST: earliest, MAP_LATEST: latest}.get(offset, offset)
