"""What a group has not delivered yet: counted by arithmetic, or message by message where a filter asks for it."""

import re
from collections.abc import Sequence

from streams.log import entries, keys, read, trim
from streams.log.client import Op, Script
from streams.log.entries import Entry
from streams.log.group_scripts import group_script
from streams.log.patterns import python_pattern


def matching(stream_id: str, name: str) -> Op[tuple[int, int]]:
    """How many messages that a group's filter lets through it has not come to yet, and unix ms of the first or 0."""
    total = first_ms = start = 0
    while True:
        count, start, oldest_ms = yield group_script("group_matching", stream_id, name, [start])
        first_ms = first_ms or oldest_ms
        total += count
        if not start:
            return total, first_ms


def parked(stream_id: str, name: str, *, below: int | None = None) -> Op[int]:
    """How many visible messages (below an offset) a group has passed over for an earlier one of their key."""
    at = yield from read.position(stream_id)
    upto = "+inf" if below is None else f"({below}"
    return int((yield ("ZCOUNT", keys.parked(stream_id, name), at.floor, upto)))


def sweep(stream_id: str, name: str) -> Op[int]:
    """Take out of the count what was deleted or expired while it waited for its key; returns how many there were."""
    total, start, removals = 0, 1, ""
    while start:
        count, start, removals = yield group_script("order_sweep", stream_id, name, [start, removals])
        total += count
    return total


def matching_count(stream_id: str, start: int, stop: int | None, patterns: Sequence[str]) -> Op[int]:
    """Visible messages from offset ``start`` (and below ``stop``) whose key matches one of the patterns (or all)."""
    at = yield from read.position(stream_id)
    if not patterns:
        yield from trim.expire(stream_id)
        start, stop = max(start, at.floor), min(stop or at.last + 1, at.last + 1)
        if start >= stop:
            return 0
        (missing,) = yield Script("counts", [keys.gone(stream_id)], [start, stop])
        return int(stop - start - missing)
    count, wanted = 0, wanted_by(patterns)
    while True:
        page = yield from read.forward(stream_id, at, start, read.PAGE, stop=stop, wanted=wanted)
        if not page:
            return count
        count += len(page)
        start = entries.position(page[-1])[0] + 1


def last_matching(stream_id: str, patterns: Sequence[str]) -> Op[int]:
    """The newest visible offset whose key matches one of the patterns (or any); the next one where none does.

    It looks from the end backwards, a page in one call, as far as it takes.
    """
    at = yield from read.position(stream_id)
    found = yield from read.backward(stream_id, at, at.last + 1, 1, wanted=wanted_by(patterns))
    return entries.position(found[0])[0] if found else at.last + 1


def wanted_by(patterns: Sequence[str]) -> read.Wanted | None:
    """The test whether one of the patterns matches an entry's key; None where there are none: all are wanted."""
    if not patterns:
        return None
    compiled = [re.compile(python_pattern(pattern), re.DOTALL) for pattern in patterns]

    def wanted(entry: Entry) -> bool:
        key = entries.key(entry)
        return key is not None and any(each.fullmatch(key.decode()) for each in compiled)

    return wanted
