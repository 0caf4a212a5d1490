"""Searching a stream a slice at a time, and counting it by offset; nothing here changes a stream."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streams.log import entries, keys
from streams.log.client import Op, Script, Scripts
from streams.log.entries import Entry
from streams.log.read import ANSWER_LIMIT_BYTES, PAGE, Position, Wanted, hidden, is_visible

MOST_SCANNED = 100_000
"""Entries that one slice of a search looks at, at most."""

LONGEST_S = 0.4
"""Seconds after which a slice of a search ends, at the next page of entries."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a bounded search came to.

    Attributes:
        found: the wanted entries in the order of the search.
        scanned: visible entries that were looked at.
        size_bytes: of their bodies.
        span_ms: when the oldest and the newest of them came (unix ms); None of none.
        rest: the range of offsets (first, end excluded) that was not looked at; None when nothing is left.
    """

    found: list[Entry]
    scanned: int
    rest: tuple[int, int] | None
    size_bytes: int
    span_ms: tuple[int, int] | None


def search(
    stream_id: str,
    at: Position,
    *,
    start: int,
    stop: int | None,
    limit: int,
    wanted: Wanted | None = None,
    newest_first: bool = False,
    most: int = MOST_SCANNED,
    seconds: float = LONGEST_S,
) -> Op[Slice]:
    """Look through the offsets from ``start`` to below ``stop`` (None: the end) for at most ``limit`` wanted entries.

    A search without ``wanted`` is a page of messages and reads no more than it gives. One with ``wanted`` ends
    after ``most`` entries or ``seconds``, whichever comes first, and tells where to go on.
    """
    low = max(start, at.floor)
    high = at.last + 1 if stop is None else min(at.last + 1, stop)
    found: list[Entry] = []
    scanned = passed = size = 0
    begun = ended = None
    room = ANSWER_LIMIT_BYTES
    deadline = time.monotonic() + seconds
    goes_on = False
    while low < high and len(found) < limit and room > 0:
        # However busy the machine is, a slice is at least a page: whoever asks again comes to the end.
        if wanted is not None and goes_on and (scanned >= most or time.monotonic() > deadline):
            break
        goes_on = True
        count = at.page(max(limit - len(found), passed) if wanted is None else min(PAGE, most - scanned))
        if newest_first:
            page = yield ("XREVRANGE", keys.log(stream_id), high - 1, low, "COUNT", count)
        else:
            page = yield ("XRANGE", keys.log(stream_id), low, high - 1, "COUNT", count)
        away = yield from hidden(stream_id, at, page)
        for entry in page:
            offset = entries.position(entry)[0]
            low, high = (low, offset) if newest_first else (offset + 1, high)
            if not is_visible(entry, at) or away(entry):
                continue
            scanned += 1
            size += entries.body_bytes(entry)
            begun, ended = begun or entry, entry
            if wanted is None or wanted(entry):
                found.append(entry)
                room -= entries.answer_bytes(entry)
                if len(found) == limit or room <= 0:
                    break
        else:
            passed += count
            if len(page) < count:
                low = high
            elif away(page[-1]) and newest_first:
                high = yield Script("gone_before", [keys.gone(stream_id)], [low, high])
            elif away(page[-1]):
                low = yield Script("gone_after", [keys.gone(stream_id)], [low])
    times = sorted(entries.position(each)[1] for each in (begun, ended) if each)
    span_ms = (times[0], times[1]) if times else None
    return Slice(found, scanned, (low, high) if low < high else None, size, span_ms)


def offsets_at(stream_id: str, times_ms: Sequence[int]) -> Op[list[int]]:
    """The first visible offset at or after each of some ascending times (unix ms), in one round trip.

    Each is a binary search of its own in the server, so a command waits for microseconds, not for all of them.

    Raises:
        StreamNotFound: there is no such stream.
    """
    replies = yield Scripts(
        [Script("locate", [keys.log(stream_id), keys.meta(stream_id)], [at_ms]) for at_ms in times_ms]
    )
    offsets: list[int] = []
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
        # A stream that is trimmed between two of the searches must not seem to run backwards.
        offsets.append(max(reply, offsets[-1] if offsets else 0))
    return offsets


def counts_between(stream_id: str, offsets: Sequence[int]) -> Op[list[int]]:
    """How many messages stand from each offset to below the next: arithmetic, but for what went from between."""
    if len(offsets) < 2:
        return []
    ranges = list(pairwise(offsets))
    missing = yield Script("counts", [keys.gone(stream_id)], offsets)
    return [max(0, end - first - gone) for (first, end), gone in zip(ranges, missing, strict=True)]
