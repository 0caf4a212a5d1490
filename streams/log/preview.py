"""What other limits would take away, told before they are saved; by the code that then does it.

Age, count and size are arithmetic, whatever they take, and so is interest where no group has a filter. A limit a key
and groups with a filter are counted in a census of the messages, which is made in pages, newest first, as long as the
caller wants to wait; the next question goes on with it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_
from typing import Any

from streams.log import entries, keys, meta, runs, trim
from streams.log.census import KEPT, Census, look, prepare
from streams.log.client import Op, Pipeline, Script
from streams.log.errors import GroupNotFound
from streams.log.group_scripts import group_script

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


@dataclass(frozen=True, slots=True)
class _Found:
    """What goes of the messages that were looked at, and the lowest offset that stays, 0 where none does."""

    messages: int = 0
    size_bytes: int = 0
    lowest: int = 0


@dataclass(slots=True)
class _Reader:
    """How far a group has come: what it wants, has been given, and has not answered from the new floor on."""

    name: str
    patterns: Sequence[str]
    delivered: int = 0
    flying: Sequence[int] = ()
    unread: int = 0

    def done(self, census: Census) -> Any:
        """Of every message whether it is nothing to this group any more."""
        done = census.offsets <= self.delivered
        if self.flying:
            done &= ~census.among(self.flying)
        if self.patterns:
            done |= ~census.wanted(self.patterns)
        return done


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
    if limits.get("max_messages_per_key") is not None or any(groups.values()):
        prepare()
    yield from trim.expire(stream_id)
    messages, size, floor, next_floor, oldest_ms, last = yield Script(
        "preview",
        [keys.log(stream_id), keys.meta(stream_id), keys.gone(stream_id)],
        [meta.pack_settings(limits)],
    )
    readers: list[_Reader] = []
    look_from = last + 1
    for name, patterns in groups.items():
        reader = _Reader(name, patterns)
        try:
            ahead_from = yield from _count_unread(stream_id, reader, floor, next_floor)
        except GroupNotFound:
            continue
        look_from = min(look_from, ahead_from or look_from)
        readers.append(reader)
    first_offset = next_floor
    per_key = limits.get("max_messages_per_key")
    by_interest = limits.get("retention") == "interest" and bool(readers)
    settled: list[int] = []
    if by_interest and per_key is None and not any(reader.patterns for reader in readers):
        settled = yield from _settled(stream_id, readers, next_floor)
    found, is_complete = _Found(), True
    if settled:
        found = _Found(*settled[:2])
        first_offset, oldest_ms = settled[2:]
    elif per_key is not None or by_interest:
        look_from = min(look_from, next_floor)
    if look_from <= last:
        kept, is_complete = yield from look(
            stream_id,
            KEPT.take(stream_id),
            first=look_from,
            until_s=time.monotonic() + within_s,
            always=always,
        )
        last = kept.last
        found = _count(kept, floor, next_floor, per_key=per_key, readers=readers, by_interest=by_interest)
        if is_complete and (per_key is not None or by_interest):
            first_offset, oldest_ms = last + 1, 0
            if found.lowest:
                (entry,) = yield ("XRANGE", keys.log(stream_id), found.lowest, found.lowest)
                first_offset, oldest_ms = entries.position(entry)
        KEPT.give(stream_id, kept)
    return Preview(
        messages=messages + found.messages,
        bytes=size + found.size_bytes,
        first_offset=first_offset,
        oldest_ms=oldest_ms or None,
        unread={reader.name: reader.unread for reader in readers},
        as_of=last,
        is_complete=is_complete,
    )


def _settled(stream_id: str, readers: Sequence[_Reader], floor: int) -> Op[list[int]]:
    """What every group is done with: messages, bytes, first offset and time of what remains; nothing: look and see."""
    makers = (keys.group, keys.pending, keys.parked, keys.ready, keys.runs)
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


def _count_unread(stream_id: str, reader: _Reader, first: int, stop: int) -> Op[int | None]:
    """Learn where a group stands, and count what it has not acknowledged below the floor that would be.

    Returns:
        The offset from which messages have to be looked at, for a group with a filter that has not read them.
    """
    delivered, ahead, flying = yield group_script("group_unread", stream_id, reader.name, [first, stop])
    above, waiting = yield Pipeline(
        [
            ("ZRANGEBYSCORE", make(stream_id, reader.name), stop, "+inf")
            for make in (keys.pending, keys.parked)
        ]
    )
    taken = yield from runs.of(stream_id, reader.name, start=stop)
    in_runs = (offset for run in taken for offset in range(max(stop, run.first), run.last + 1))
    reader.delivered, reader.flying = delivered, sorted(chain(map(int, [*above, *waiting]), in_runs))
    if reader.patterns and ahead:
        reader.unread = flying
        return max(first, int(delivered) + 1)
    reader.unread = flying + ahead
    return None


def _count(
    census: Census,
    floor: int,
    next_floor: int,
    *,
    per_key: int | None,
    readers: Sequence[_Reader],
    by_interest: bool,
) -> _Found:
    """Count what has enough newer ones of its key or is done, and what groups with a filter want below the floor."""
    offsets = census.offsets
    above = offsets >= next_floor
    for reader in readers:
        if reader.patterns:
            ahead = (offsets >= max(floor, reader.delivered + 1)) & ~above
            reader.unread += int((ahead & census.wanted(reader.patterns)).sum())
    if per_key is None and not by_interest:
        return _Found()
    done = [reader.done(census) for reader in readers]
    goes = above & (census.ranks > per_key) if per_key is not None else above & False
    if by_interest:
        goes |= above & reduce(and_, done)
    for reader, settled in zip(readers, done, strict=True):
        reader.unread += int((goes & ~settled).sum())
    left = offsets[above & ~goes]
    return _Found(
        messages=int(goes.sum()),
        size_bytes=int(census.sizes[goes].sum(dtype="u8")),
        lowest=int(left.min()) if len(left) else 0,
    )
