"""Bringing a census up to date: what came is read in pages, what went is asked for where it is not known."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streams.log import entries, keys, meta
from streams.log.census import Census
from streams.log.client import Op, Script, Scripts
from streams.log.entries import Entry
from streams.log.errors import LogError, StreamNotFound

PAGE = 500
"""Messages read in one call, about a millisecond."""

MOST_PLAIN = 4096
"""Where no body was ever larger, whole messages are read: that costs the store a sixth of asking for their sizes."""

MOST_CALLS = 300
"""So many times at most it is asked what went; where more goes all the time the counts are not exact."""


@dataclass(slots=True)
class Held:
    """The census of a stream, while there is one.

    Attributes:
        is_part: it began above what the stream holds, for one question.
        last_entry: id of an entry that was read: where another one has its offset, everything is another.
        seen: ``removals`` and ``returns`` of the stream when it was asked last what went.
    """

    census: Census | None = None
    is_part: bool = False
    last_entry: bytes = b""
    seen: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class Looked:
    """How far looking came.

    Attributes:
        census: as of ``counters``, where it is complete.
        is_complete: whether all was looked at, and counts what the stream does.
        beside: what the script said that was asked in the same moment, or earlier where it is not complete.
    """

    census: Census
    counters: meta.Counters
    is_complete: bool
    beside: Any = None

    @property
    def part(self) -> float:
        """Which part of the messages was looked at."""
        lowest = self.census.lowest
        return (self.census.last + 1 - lowest) / max(1, self.counters.last + 1 - lowest)


def look(
    stream_id: str,
    held: Held,
    *,
    until_s: float,
    always: int = 0,
    first: int | None = None,
    beside: Script | None = None,
) -> Op[Looked]:
    """Bring a census up to date.

    Args:
        held: where it is, and stays; one of another stream or of what is no more begins anew.
        until_s: read on until then, by ``time.monotonic``.
        always: messages to read in any case.
        first: the lowest offset that is of interest, where a part is enough; one that is new begins there.
        beside: to be asked in the moment as of which it is complete.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    counters = yield from counters_of(stream_id)
    if not (yield from _goes_on(stream_id, held, counters)):
        _begin(held, counters, first)
    census = held.census
    assert census is not None
    most = census.last + always
    while census.last < counters.last and not census.is_full:
        if census.last >= most and time.monotonic() >= until_s:
            return Looked(census, counters, is_complete=False)
        yield from _read_on(stream_id, held, census, counters)
    if census.is_full:
        return Looked(census, counters, is_complete=False)
    looked = yield from _settle(stream_id, held, census, beside)
    counters = looked.counters
    whole = census.floor == counters.floor
    if whole and (census.messages, census.bytes) != (counters.messages, counters.bytes):
        looked.is_complete = False
    if not looked.is_complete:
        held.census = None  # it is not what the stream is: the next one begins anew
    return looked


def counters_of(stream_id: str) -> Op[meta.Counters]:
    """The counters of a stream.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    held = meta.read((yield ("HMGET", keys.meta(stream_id), *meta.FIELDS)))
    if held is None:
        raise StreamNotFound
    return held[1]


def kept_from(counters: meta.Counters) -> int:
    """The lowest offset that may be visible again."""
    return min(counters.kept or counters.floor, counters.floor)


def _begin(held: Held, counters: meta.Counters, first: int | None) -> None:
    held.census = Census(kept_from(counters) if first is None else first)
    held.census.returns = counters.returns
    held.is_part, held.last_entry, held.seen = first is not None, b"", (-1, -1)


def _goes_on(stream_id: str, held: Held, counters: meta.Counters) -> Op[bool]:
    """Whether the stream still is what was read of it."""
    census = held.census
    if census is None or counters.last < census.last:
        return False
    if not held.is_part and counters.floor < census.lowest:
        return False
    if not held.last_entry:
        return True
    offset, at_ms = map(int, held.last_entry.split(b"-"))
    if offset == counters.last:
        return at_ms == counters.last_ms
    found = yield ("XRANGE", keys.log(stream_id), offset, offset)
    return not found or found[0][0] == held.last_entry


def _read_on(stream_id: str, held: Held, census: Census, counters: meta.Counters) -> Op[None]:
    """Take the next page."""
    first = census.last + 1
    if counters.widest > MOST_PLAIN:
        stream = [keys.log(stream_id), keys.meta(stream_id)]
        last, *told = yield Script("sizes", stream, [first, counters.last, PAGE])
        census.extend(int(last), told[0::3], told[1::3], told[2::3])
        return
    asked = ("XRANGE", keys.log(stream_id), first, counters.last, "COUNT", PAGE)
    found: Sequence[Entry] = yield asked
    last = entries.position(found[-1])[0] if len(found) == PAGE else counters.last
    if found:
        held.last_entry = found[-1][0]
    census.extend(
        last,
        [int(id_.partition(b"-")[0]) for id_, _ in found],
        [len(fields[3]) for _, fields in found],
        [fields[7] if len(fields) > 6 and fields[6] == b"k" else b"" for _, fields in found],
    )


def _settle(stream_id: str, held: Held, census: Census, beside: Script | None) -> Op[Looked]:
    """Learn what went since, and what came meanwhile."""
    stream = [make(stream_id) for make in (keys.log, keys.meta, keys.gone)]
    for _ in range(MOST_CALLS):
        asked = Script("census", stream, [census.first, census.last, *census.gone_blocks()])
        replies = yield Scripts([asked] if beside is None else [beside, asked])
        for reply in replies:
            if isinstance(reply, LogError):
                raise reply
        packed, is_more, last, came, told, *rest = replies[-1]
        counters, fresh = meta.unpack(packed or None), rest[: 3 * came]
        if counters.returns != census.returns:
            census.doubt(returns=counters.returns)
            continue
        if last > census.last:
            census.extend(last, fresh[0::3], fresh[1::3], fresh[2::3])
        kept = max(census.lowest, kept_from(counters))
        census.move_floor(max(counters.floor, census.lowest), kept=kept)
        blocks, runs = rest[3 * came :][:told], rest[3 * came + told :]
        is_known = census.note_gone(blocks, [_run(each) for each in runs])
        if not is_more or not is_known:
            return Looked(census, counters, is_complete=is_known, beside=replies[0])
    return Looked(census, counters, is_complete=False)


def _run(member: bytes) -> tuple[int, int]:
    first, last, *_ = member.split(b":")
    return int(first), int(last)
