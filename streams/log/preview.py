"""What other limits would take away, told before they are saved; by the code that then does it.

Age, count and size are arithmetic, whatever they take, and so is interest where no group has a filter. A limit a key
and groups with a filter are counted by looking at messages in pages, newest first, as long as the caller wants to wait.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.log import entries, keys, meta, read, trim
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Entry
from streams.log.errors import GroupNotFound
from streams.log.patterns import python_pattern

WITHIN_S = 0.15
"""How long one preview looks at messages, if not told otherwise; it then says that its counts are not complete."""

ALWAYS = 5_000
"""Messages that it looks at however long that takes."""

MOST_OUT = 2_000
"""Messages out at a group, at most, where interest is arithmetic: they are looked at in one call."""


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

    until_s: float
    always: int
    seen: int = 0
    messages: int = 0
    size_bytes: int = 0
    lowest: Entry | None = None
    of_key: Counter[bytes] = field(default_factory=Counter)
    is_complete: bool = True

    def goes_on(self) -> bool:
        """Whether another page may be looked at; if not, the counts are not complete."""
        self.is_complete = self.seen < self.always or time.monotonic() < self.until_s
        return self.is_complete


def preview(
    stream_id: str,
    limits: Mapping[str, Any],
    groups: Mapping[str, Sequence[str]],
    *,
    within_s: float = WITHIN_S,
    always: int = ALWAYS,
) -> Op[Preview]:
    """What would go if these limits held.

    Args:
        limits: ``ttl``, ``max_messages``, ``max_bytes``, ``max_messages_per_key``, ``retention``; None or
            missing is no limit.
        groups: name → filter patterns of the stream's groups.
        within_s: how long to look at messages, where arithmetic does not do.
        always: messages to look at however long that takes.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    yield from trim.expire(stream_id)
    messages, size, floor, next_floor, oldest_ms, last = yield Script(
        "preview",
        [keys.log(stream_id), keys.meta(stream_id), keys.gone(stream_id)],
        [meta.pack_settings(limits)],
    )
    walked = _Walk(time.monotonic() + within_s, always)
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
    settled: list[int] = []
    if by_interest and per_key is None and not any(reader.wanted for reader in readers):
        settled = yield from _settled(stream_id, readers, next_floor)
    if settled:
        walked.messages, walked.size_bytes, first_offset, oldest_ms = settled
    elif (per_key is not None or by_interest) and next_floor <= last:
        yield from _walk(
            stream_id, walked, next_floor, last, per_key=per_key, readers=readers, by_interest=by_interest
        )
        if walked.is_complete:
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
        is_complete=walked.is_complete,
    )


def _settled(stream_id: str, readers: Sequence[_Reader], floor: int) -> Op[list[int]]:
    """What every group is done with: messages, bytes, first offset and time of what remains; nothing: look and see."""
    makers = (keys.group, keys.pending, keys.parked, keys.ready)
    try:
        settled: list[int] = yield Script(
            "preview_interest",
            [
                *(make(stream_id) for make in (keys.log, keys.meta, keys.gone)),
                *(make(stream_id, reader.name) for reader in readers for make in makers),
            ],
            [floor, MOST_OUT],
        )
    except GroupNotFound:
        return []
    return settled


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
        while walk.goes_on():
            found = yield from read.backward(stream_id, at, stop, read.PAGE, start=max(first, delivered + 1))
            reader.unread += sum(reader.wants(entries.key(entry)) for entry in found)
            walk.seen += len(found)
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
    while walk.goes_on():
        found = yield from read.backward(stream_id, at, before, read.PAGE, start=floor)
        if not found:
            return
        walk.seen += len(found)
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
