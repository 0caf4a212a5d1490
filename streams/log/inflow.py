"""How fast a stream fills: messages and bytes that came in lately, from the log alone."""

from dataclasses import dataclass

from streams.log import entries, keys, read, stats
from streams.log.client import Op

WINDOW_MS = 3_600_000
LEAST_MS = 1_000


@dataclass(frozen=True, slots=True)
class Inflow:
    """What was published in the last ``over_ms`` ms, and the server's clock then (unix ms).

    Attributes:
        offset, appended_bytes: of the stream, ever.
        is_whole: whether the log knows the whole hour, or everything since the stream's first message; where it does
            not, since limits have taken what came before, it tells of a shorter time only.
    """

    messages: int
    bytes: int
    over_ms: int
    now_ms: int
    offset: int
    appended_bytes: int
    is_whole: bool


def inflow(stream_id: str) -> Op[Inflow]:
    """What was published within the last hour, or since the oldest message of that hour that is still there.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    at = yield from read.position(stream_id)
    since_ms = at.now_ms - WINDOW_MS
    first = yield from read.offset_at(stream_id, since_ms)
    found = yield ("XRANGE", keys.log(stream_id), first, "+", "COUNT", 1)
    state = yield from stats.inspect(stream_id)
    if not found:
        is_whole = yield from _came_before(stream_id, at.last, since_ms)
        return Inflow(0, 0, WINDOW_MS, at.now_ms, state.offset, state.appended_bytes, is_whole)
    entry = entries.parse(found[0])
    is_hour = yield from _came_before(stream_id, entry.offset - 1, since_ms)
    since_entry_ms = max(LEAST_MS, at.now_ms - entry.timestamp_ms)
    return Inflow(
        state.offset - entry.offset + 1,
        state.appended_bytes - (entry.cumulative_bytes - len(entry.body)),
        WINDOW_MS if is_hour and entry.offset > 1 else since_entry_ms,
        at.now_ms,
        state.offset,
        state.appended_bytes,
        is_hour,
    )


def _came_before(stream_id: str, offset: int, at_ms: int) -> Op[bool]:
    """Whether a message, or nothing at all, came before a moment, as its entry says if that is still there."""
    if offset < 1:
        return True
    found = yield ("XRANGE", keys.log(stream_id), offset, offset)
    return bool(found) and entries.position(found[0])[1] < at_ms
