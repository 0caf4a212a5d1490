"""What other limits would take away, told before they are saved; by the code that then does it.

Age, count and size are arithmetic, whatever they take. Limits that choose single messages, and groups with a filter,
are counted by looking at messages in pages, newest first, and at most ``WALK`` of them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.log import entries, keys, meta, read, trim
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Entry
from streams.log.errors import GroupNotFound
from streams.log.patterns import python_pattern

WALK = 200_000
"""Messages that one preview looks at, at most; it then says that its counts are not complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would go.

    Attributes:
        messages, bytes: that would go.
        first_offset, oldest_ms: of what would remain; the next offset and None where nothing would.
        unread: group → messages that it has not acknowledged among those that would go.
        as_of: the last offset when this was counted.
        is_complete: whether everything was counted; where it was not, more may go than is said.
    """

    messages: int
    bytes: int
    first_offset: int
    oldest_ms: int | None
    unread: dict[str, int]
    as_of: int
    is_complete: bool


@dataclass(slots=True)
class _Reader:
    """How far a group has come: what it wants, has been given, and has not answered."""

    name: str
    wanted: list[re.Pattern[str]]
    delivered: int = 0
    flying: frozenset[int] = frozenset()
    unread: int = 0

    def wants(self, key: bytes | None) -> bool:
        return not self.wanted or (
            key is not None and any(pattern.fullmatch(key.decode()) for pattern in self.wanted)
        )

    def has_done(self, offset: int, key: bytes | None) -> bool:
        return not self.wants(key) or (offset <= self.delivered and offset not in self.flying)


@dataclass(slots=True)
class _Walk:
    """What was found by looking at messages."""

    left: int
    messages: int = 0
    size_bytes: int = 0
    lowest: Entry | None = None
    of_key: Counter[bytes] = field(default_factory=Counter)


def preview(
    stream_id: str, limits: Mapping[str, Any], groups: Mapping[str, Sequence[str]], *, walk: int = WALK
) -> Op[Preview]:
    """What would go if these limits held.

    Args:
        limits: ``ttl``, ``max_messages``, ``max_bytes``, ``max_messages_per_key``, ``retention``; None or
            missing is no limit.
        groups: name → filter patterns of the stream's groups.
        walk: messages to look at, at most.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    yield from trim.expire(stream_id)
    messages, size, floor, next_floor, oldest_ms, last = yield Script(
        "preview",
        [keys.log(stream_id), keys.meta(stream_id), keys.gone(stream_id)],
        [meta.pack_settings(limits)],
    )
    walked = _Walk(walk)
    readers: list[_Reader] = []
    for name, patterns in groups.items():
        reader = _Reader(name, [re.compile(python_pattern(each), re.DOTALL) for each in patterns])
        try:
            yield from _count_unread(stream_id, reader, floor, next_floor, walked)
        except GroupNotFound:
            continue
        readers.append(reader)
    first_offset = next_floor
    per_key = limits.get("max_messages_per_key")
    by_interest = limits.get("retention") == "interest" and bool(readers)
    if (per_key is not None or by_interest) and next_floor <= last:
        yield from _walk(
            stream_id, walked, next_floor, last, per_key=per_key, readers=readers, by_interest=by_interest
        )
        if walked.left > 0:
            first_offset, oldest_ms = last + 1, 0
            if walked.lowest is not None:
                first_offset, oldest_ms = entries.position(walked.lowest)
    return Preview(
        messages=messages + walked.messages,
        bytes=size + walked.size_bytes,
        first_offset=first_offset,
        oldest_ms=oldest_ms or None,
        unread={reader.name: reader.unread for reader in readers},
        as_of=last,
        is_complete=walked.left > 0,
    )


def _count_unread(stream_id: str, reader: _Reader, first: int, stop: int, walk: _Walk) -> Op[None]:
    """Learn where a group stands, and count what it has not acknowledged below the floor that would be."""
    delivered, ahead, flying = yield Script(
        "group_unread",
        [
            keys.meta(stream_id),
            keys.gone(stream_id),
            keys.group(stream_id, reader.name),
            keys.pending(stream_id, reader.name),
            keys.parked(stream_id, reader.name),
        ],
        [first, stop],
    )
    above, waiting = yield Pipeline(
        [
            ("ZRANGEBYSCORE", make(stream_id, reader.name), stop, "+inf")
            for make in (keys.pending, keys.parked)
        ]
    )
    reader.delivered, reader.flying = delivered, frozenset(map(int, [*above, *waiting]))
    reader.unread = flying + ahead
    if reader.wanted and ahead:
        reader.unread = flying
        at = yield from read.position(stream_id)
        for page in _pages(walk):
            found = yield from read.backward(stream_id, at, stop, page, start=max(first, delivered + 1))
            reader.unread += sum(reader.wants(entries.key(entry)) for entry in found)
            walk.left -= len(found)
            if not found:
                return
            stop = entries.position(found[0])[0]


def _walk(
    stream_id: str,
    walk: _Walk,
    floor: int,
    last: int,
    *,
    per_key: int | None,
    readers: Sequence[_Reader],
    by_interest: bool,
) -> Op[None]:
    """Look at what is above the floor, newest first, and count what has enough newer ones of its key or is done."""
    at = yield from read.position(stream_id)
    before = last + 1
    for page in _pages(walk):
        found = yield from read.backward(stream_id, at, before, page, start=floor)
        if not found:
            return
        walk.left -= len(found)
        for entry in reversed(found):
            offset, key = entries.position(entry)[0], entries.key(entry)
            if key is not None:
                walk.of_key[key] += 1
            is_newest = key is None or per_key is None or walk.of_key[key] <= per_key
            if is_newest and not (by_interest and all(each.has_done(offset, key) for each in readers)):
                walk.lowest = entry
                continue
            walk.messages, walk.size_bytes = walk.messages + 1, walk.size_bytes + len(entry[1][3])
            for reader in readers:
                reader.unread += not reader.has_done(offset, key)
        before = entries.position(found[0])[0]


def _pages(walk: _Walk) -> Iterator[int]:
    """Page sizes, as long as messages may be looked at."""
    while walk.left > 0:
        yield min(read.PAGE, walk.left)
