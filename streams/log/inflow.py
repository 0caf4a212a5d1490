"""How fast a stream fills: messages and bytes that came in lately, from the log alone."""

from dataclasses import dataclass

from streams.log import entries, keys, read, stats
from streams.log.client import Op

WINDOW_MS = 3_600_000
LEAST_MS = 1_000


@dataclass(frozen=True, slots=True)
class Inflow:
    """Messages and bytes that were published in the last ``over_ms`` ms, and the server's clock then (unix ms)."""

    messages: int
    bytes: int
    over_ms: int
    now_ms: int


def inflow(stream_id: str) -> Op[Inflow]:
    """What was published within the last hour, or since the oldest message that is still there if that is younger.

    What has gone from between meanwhile counts.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    at = yield from read.position(stream_id)
    first = yield from read.offset_at(stream_id, at.now_ms - WINDOW_MS)
    found = yield ("XRANGE", keys.log(stream_id), first, "+", "COUNT", 1)
    if not found:
        return Inflow(0, 0, WINDOW_MS, at.now_ms)
    state = yield from stats.inspect(stream_id)
    entry = entries.parse(found[0])
    before = entry.cumulative_bytes - len(entry.body)
    over_ms = WINDOW_MS if entry.offset > at.floor else max(LEAST_MS, at.now_ms - entry.timestamp_ms)
    return Inflow(state.offset - entry.offset + 1, state.appended_bytes - before, over_ms, at.now_ms)
