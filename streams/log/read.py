"""Looking at messages; nothing here changes a stream, but that what has just expired is seen to have gone."""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams.log import entries, keys, meta
from streams.log.client import Clocks, Op, Pipeline, Script
from streams.log.clock import Reading, Times, unix_ms
from streams.log.entries import Entry
from streams.log.errors import MessageNotFound, StreamNotFound

ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
"""An answer stops at this many bytes, all counted (and holds one message at least)."""
_ROOM = ANSWER_LIMIT_BYTES - len("[]")

PAGE = 1000
"""Most entries asked of the server in one command."""

GONE_BLOCK = 256
"""No run of what went reaches over a multiple of it (``lua/lib/gone.lua``)."""

Wanted = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stream's readers stand, from one round trip.

    Attributes:
        committed: the committed offset.
        last: the last assigned offset.
        floor: the lowest visible offset.
        cutoff_ms: messages of up to this time (unix ms) are over by the age limit; None without one.
        widest: bytes of the largest message ever appended.
        times: the moment, by the clocks of its server.
        dedup_window_ms: how long ids are remembered, at least.
        ids_widened_ms: since when they have not been for less than that.
        hides: whether entries that went still stand between visible ones.
        kept: from here on something that was set aside may come back; 0: nothing was.
    """

    committed: int
    last: int
    floor: int
    cutoff_ms: int | None
    widest: int
    times: Times
    hides: bool = False
    dedup_window_ms: int = 0
    ids_widened_ms: int = 0
    kept: int = 0

    @property
    def now_ms(self) -> int:
        """The server's wall clock, unix ms."""
        return self.times.wall_ms

    def page(self, limit: int, limit_bytes: int = ANSWER_LIMIT_BYTES) -> int:
        """How many entries may be asked for at once without passing the answer's size by much."""
        return max(1, min(limit, PAGE, limit_bytes // max(1, self.widest)))


@dataclass(slots=True)
class Scan:
    """How long messages that are wanted are looked for among others.

    Attributes:
        until_s: by ``time.monotonic``.
        stopped_at: where the look has to go on, as the next ``start`` or ``before``; None: it came to its end.
        last: the stream's last offset when the look began.
    """

    until_s: float
    stopped_at: int | None = None
    last: int = 0

    def stops(self, at: int) -> bool:
        """Whether the look stops here."""
        if time.monotonic() < self.until_s:
            return False
        self.stopped_at = at
        return True


def position(stream_id: str) -> Op[Position]:
    """Where a stream stands.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    reading: Reading = yield Clocks()
    reply, time_told = yield Pipeline([("HMGET", keys.meta(stream_id), *meta.FIELDS), ("TIME",)])
    held = meta.read(reply)
    if held is None:
        raise StreamNotFound
    settings, counters = held
    times = reading.at(unix_ms(time_told))
    ttl_s = settings.get("ttl")
    return Position(
        committed=counters.committed,
        last=counters.last,
        floor=counters.floor,
        cutoff_ms=None if ttl_s is None else times.cutoff_ms(ttl_s * 1000),
        widest=counters.widest,
        times=times,
        hides=counters.hidden == 1,
        dedup_window_ms=settings.get("dedup_window", 0) * 1000,
        ids_widened_ms=counters.ids_widened,
        kept=counters.kept,
    )


def after_committed(stream_id: str, limit: int) -> Op[list[Entry]]:
    """The messages after the committed offset, in offset order, at most ``limit``."""
    at = yield from position(stream_id)
    return (yield from forward(stream_id, at, at.committed + 1, limit))


def forward(
    stream_id: str,
    at: Position,
    start: int,
    limit: int,
    *,
    stop: int | None = None,
    wanted: Wanted | None = None,
    scan: Scan | None = None,
    look: int = PAGE,
) -> Op[list[Entry]]:
    """Visible messages from offset ``start`` (and below ``stop``) in offset order, at most ``limit`` wanted ones.

    Args:
        look: where some are wanted, at most so many are read at once.
    """
    found: list[Entry] = []
    room, passed = _ROOM, 0
    next_offset = max(start, at.floor)
    last = at.last if stop is None else min(at.last, stop - 1)
    while next_offset <= last and len(found) < limit:
        count = at.page(max(limit - len(found), passed) if wanted is None else look)
        page = yield ("XRANGE", keys.log(stream_id), next_offset, last, "COUNT", count)
        away = yield from hidden(stream_id, at, page)
        for entry in page:
            if is_visible(entry, at) and (wanted is None or wanted(entry)) and not away(entry):
                room -= entries.answer_bytes(entry)
                if room < 0 and found:
                    return found
                found.append(entry)
                if len(found) == limit:
                    return found
        if len(page) < count:
            break
        next_offset = entries.position(page[-1])[0] + 1
        passed += count
        if away(page[-1]):
            next_offset = yield Script("gone_after", [keys.gone(stream_id)], [next_offset])
        if scan is not None and next_offset <= last and scan.stops(next_offset):
            break
    return found


def backward(
    stream_id: str,
    at: Position,
    before: int,
    limit: int,
    *,
    start: int = 0,
    wanted: Wanted | None = None,
    scan: Scan | None = None,
) -> Op[list[Entry]]:
    """The newest visible messages below offset ``before`` (and from ``start``), ascending, at most ``limit``."""
    found: list[Entry] = []
    room, passed = _ROOM, 0
    first = max(start, at.floor)
    below = min(before, at.last + 1)
    while below > first and len(found) < limit:
        count = at.page(max(limit - len(found), passed) if wanted is None else PAGE)
        page = yield (
            "XREVRANGE",
            keys.log(stream_id),
            below - 1,
            first,
            "COUNT",
            count,
        )
        away = yield from hidden(stream_id, at, page)
        for entry in page:
            if is_visible(entry, at) and (wanted is None or wanted(entry)) and not away(entry):
                room -= entries.answer_bytes(entry)
                if (room < 0 and found) or len(found) == limit:
                    return found[::-1]
                found.append(entry)
        if len(page) < count:
            break
        below = entries.position(page[-1])[0]
        passed += count
        if away(page[-1]):
            below = yield Script("gone_before", [keys.gone(stream_id)], [first, below])
        if scan is not None and below > first and scan.stops(below):
            break
    return found[::-1]


def message(stream_id: str, offset: int) -> Op[Entry]:
    """The message at an offset.

    Raises:
        StreamNotFound: there is no such stream.
        MessageNotFound: nothing visible stands there.
    """
    at = yield from position(stream_id)
    found = yield from forward(stream_id, at, offset, 1, stop=offset + 1)
    if offset < 1 or not found:
        raise MessageNotFound
    return found[0]


def offset_of_id(stream_id: str, message_id: str) -> Op[int | None]:
    """The offset under which an id is still remembered, or None: then only a scan can tell."""
    found = yield Pipeline([("HGET", keys.ids(stream_id, bucket), message_id) for bucket in (0, 1)])
    return max((int(offset) for offset in found if offset is not None), default=None)


def entry_of_id(stream_id: str, at: Position, message_id: str) -> Op[Entry | None]:
    """The newest message of an id that is still remembered; None: it is not, or has gone, and only a scan can tell."""
    offset = yield from offset_of_id(stream_id, message_id)
    if offset is None:
        return None
    found = yield from forward(stream_id, at, offset, 1, stop=offset + 1)
    return found[0] if found else None


def offset_at(stream_id: str, at_ms: int) -> Op[int]:
    """The first visible offset whose time is at or after ``at_ms`` (unix ms); the next offset when none is."""
    offset: int = yield Script("locate", [keys.log(stream_id), keys.meta(stream_id)], [at_ms])
    return offset


def archive_range(stream_id: str, start: int, end: int, count: int) -> Op[list[Entry]]:
    """Entries from ``start`` to ``end`` (both included), at most ``count``, for the history.

    Unlike every other read it sees what a limit has hidden but what is physically still there: the history keeps
    what was published. What a person purged or deleted is physically gone at once, so it is not seen.
    """
    found: list[Entry] = yield (
        "XRANGE",
        keys.log(stream_id),
        start,
        end,
        "COUNT",
        count,
    )
    return found


def is_visible(entry: Entry, at: Position) -> bool:
    """Whether a reader may see an entry: neither the stream's age limit nor its own has passed."""
    if at.cutoff_ms is not None and entries.position(entry)[1] <= at.cutoff_ms:
        return False
    expires_ms = entries.expires_ms(entry)
    return expires_ms is None or expires_ms > at.times.steady_ms


def hidden(stream_id: str, at: Position, page: Sequence[Entry]) -> Op[Wanted]:
    """Tells which entries of a page a limit took away; one more round trip where some are kept for the history."""
    if not at.hides or not page:
        return _none
    offsets = sorted((entries.position(page[0])[0], entries.position(page[-1])[0]))
    runs = yield ("ZRANGEBYSCORE", keys.gone(stream_id), offsets[0] - offsets[0] % GONE_BLOCK, offsets[1])
    bounds = [tuple(map(int, run.split(b":")[:2])) for run in runs]
    firsts = [first for first, _ in bounds]

    def went(entry: Entry) -> bool:
        offset = entries.position(entry)[0]
        before = bisect_right(firsts, offset) - 1
        return before >= 0 and bounds[before][1] >= offset

    return went


def _none(entry: Entry) -> bool:
    return False
