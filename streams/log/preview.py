"""What other limits, or a purge, would take away, told before it is done; by the code that then does it.

Age, count and size are arithmetic, whatever they take, and so is interest where no group has a filter. A limit a key,
a purge of keys and groups with a filter are counted in a census of the messages, which a process of its own keeps
(``censuses``); one that is not there is begun, as far as the caller wants to wait.
"""

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec

from streams.log import entries, keys, meta, trim, unread
from streams.log.client import Op, Script
from streams.log.counting import Count, Found, Reader, Taken
from streams.log.errors import GroupNotFound
from streams.log.looking import Held, Looked, look

WITHIN_S = 0.1
"""How long one preview looks at messages, if not told otherwise, so that it answers within 0.2 s; it then says that its
counts are not complete."""

ALWAYS = 5_000
"""Messages that it looks at however long that takes."""

SETTLES = 3
"""So often it asks again, on a busy stream, to tell of one moment."""

EMPTY: Mapping[str, int] = MappingProxyType({})

MOST_OUT = 2_000
"""Messages out at a group, at most, where interest is arithmetic: they are looked at in one call."""


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """A purge that is asked about: everything, what lies below an offset, or all but the newest.

    Attributes:
        below: an offset; None is all.
        keep: how many of the newest stay, where there is no offset.
        keys: patterns, of which one matches each that goes, and each that stays of the newest. None: whatever its key.
    """

    below: int | None = None
    keep: int = 0
    keys: tuple[str, ...] = ()


class Supposed(msgspec.Struct, frozen=True, kw_only=True):
    """A group that is asked about as if it were done with more than it is.

    Attributes:
        delivered: it has been moved: all up to here counts as delivered, and nothing is out; None: it has not.
        answered: offsets of what is out and has been answered, where it has not been moved.
    """

    group: str
    delivered: int | None = None
    answered: tuple[int, ...] = ()


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would go.

    Attributes:
        messages, bytes: that would go.
        first_offset, oldest_ms: of what would remain; the next offset and None where nothing would.
        unread: group → messages that it has not acknowledged among those that would go.
        as_of: the last offset when this was counted.
        goes_from, goes_to: of a purge the first and the last offset that would go; 0 where none would.
        kept_from: from which offset on something that is set aside could come back after a purge for good.
        among: how many go of the messages that were asked about.
        already, already_bytes: of a group that is supposed, what of all this goes as it really stands, too.
        is_complete: whether everything was counted; where it was not, more may go than is said.
        counted: which part of the messages that have to be looked at was, 0 to 1.
        has_many_keys: whether it stays so: there are more keys than are counted.
    """

    messages: int
    bytes: int
    first_offset: int
    oldest_ms: int | None
    unread: dict[str, int]
    as_of: int
    goes_from: int = 0
    goes_to: int = 0
    kept_from: int = 0
    among: int = 0
    already: int = 0
    already_bytes: int = 0
    is_complete: bool
    counted: float = 1.0
    has_many_keys: bool = False

    @property
    def reason(self) -> str | None:
        """Why it is not complete: ``counting`` or ``too_many_keys``."""
        if self.is_complete:
            return None
        return "too_many_keys" if self.has_many_keys else "counting"


class _Floors(msgspec.Struct, frozen=True, array_like=True):
    """What the script ``preview`` says: what goes by raising the floor, and as of which state of the stream."""

    messages: int
    bytes: int
    floor: int
    next_floor: int
    oldest_ms: int
    last: int
    removals: int
    returns: int
    keyed: int
    goes_to: int = 0
    kept_from: int = 0

    def is_of(self, counters: meta.Counters) -> bool:
        """Whether it tells of the same moment."""
        held = (counters.last, counters.removals, counters.returns)
        return (self.last, self.removals, self.returns) == held


def preview(
    stream_id: str,
    limits: Mapping[str, Any],
    groups: Mapping[str, Sequence[str]],
    *,
    begins: Mapping[str, int] = EMPTY,
    purge: Purge | None = None,
    supposed: Supposed | None = None,
    among: Sequence[int] = (),
    held: Held | None = None,
    within_s: float = WITHIN_S,
    always: int = ALWAYS,
) -> Op[Preview]:
    """What would go if these limits held, or with this purge.

    Args:
        limits: ``ttl``, ``max_messages``, ``max_bytes``, ``max_messages_per_key``, ``retention``; None or
            missing is no limit. Nothing, where it is a purge.
        groups: name → filter patterns of the stream's groups; those it would have where that differs.
        begins: name → up to which offset all counts as delivered, of groups that the log may not know yet.
        supposed: how one of the groups would stand.
        among: ascending offsets of which is asked how many go.
        held: the census of the stream, which it brings up to date; None makes one for this question.
        within_s: how long to look at messages, where arithmetic does not do.
        always: messages to look at however long that takes.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    yield from trim.expire(stream_id)
    asked = _asked(stream_id, limits, purge)
    until_s, held = time.monotonic() + within_s, held or Held()
    floors = msgspec.convert((yield asked), _Floors)
    per_key: int | None = limits.get("max_messages_per_key") if floors.keyed else None
    already = Found() if supposed else None
    taken = None
    if purge and purge.keys and floors.keyed:
        taken = Taken(purge.keys, purge.below, purge.keep)
    for left in reversed(range(SETTLES)):
        readers, look_from = yield from _readers(stream_id, groups, floors, begins)
        by_interest = limits.get("retention") == "interest" and bool(readers)
        if by_interest and per_key is None and not any(reader.patterns for reader in readers):
            settled = yield from _settled(stream_id, readers, floors.next_floor, supposed)
            if settled:
                return _told(
                    floors,
                    readers,
                    Found(*settled[:2]),
                    already=Found(*settled[4:]) if supposed else None,
                    among=among,
                    first_offset=settled[2],
                    oldest_ms=settled[3],
                )
        if per_key is not None or by_interest or taken:
            look_from = min(look_from, floors.next_floor)
        if look_from > floors.last:
            break
        looked = yield from _look(stream_id, held, look_from, floors, asked, until_s=until_s, always=always)
        if looked.beside is not None:
            was, floors = floors, msgspec.convert(looked.beside, _Floors)
            if (was.floor, was.next_floor) != (floors.floor, floors.next_floor):
                if left:
                    continue
                readers, _ = yield from _readers(stream_id, groups, floors, begins)
        if looked.is_complete and not floors.is_of(looked.counters) and left:
            continue
        count = partial(
            Count,
            looked.census,
            floor=floors.floor,
            next_floor=floors.next_floor,
            per_key=per_key,
            by_interest=by_interest,
            taken=taken,
            among=among,
        )
        if supposed:
            readers, as_they_are = [_supposed(reader, supposed) for reader in readers], readers
            # As it is, a group has out what it has out as it is supposed, and more: both may go by one name.
            already = count([*map(replace, readers), *as_they_are]).run()
        found = count(readers).run()
        if not looked.is_complete or (per_key is None and not by_interest and not taken):
            return _told(floors, readers, found, already=already, among=among, looked=looked)
        oldest_ms, first_offset = 0, looked.census.last + 1
        if found.lowest:
            entry = yield ("XRANGE", keys.log(stream_id), found.lowest, found.lowest)
            if entry:
                first_offset, oldest_ms = entries.position(entry[0])
        return _told(
            floors,
            readers,
            found,
            already=already,
            among=among,
            looked=looked,
            first_offset=first_offset,
            oldest_ms=oldest_ms,
        )
    return _told(floors, readers, Found(), already=already, among=among)


def _asked(stream_id: str, limits: Mapping[str, Any], purge: Purge | None) -> Script:
    """What says how far the floor would rise."""
    stream = [keys.log(stream_id), keys.meta(stream_id), keys.gone(stream_id)]
    if purge is None:
        return Script("preview", stream, [meta.pack_settings(limits)])
    if purge.keys:
        return Script("preview_purge", stream, ["below", 0])  # it takes from between others
    if purge.below is not None:
        return Script("preview_purge", stream, ["below", purge.below])
    return Script("preview_purge", stream, ["keep", purge.keep])


def _told(
    floors: _Floors,
    readers: Sequence[Reader],
    found: Found,
    *,
    already: Found | None = None,
    among: Sequence[int] = (),
    looked: Looked | None = None,
    first_offset: int | None = None,
    oldest_ms: int | None = None,
) -> Preview:
    if first_offset is None:
        first_offset, oldest_ms = floors.next_floor, floors.oldest_ms
    return Preview(
        messages=floors.messages + found.messages,
        bytes=floors.bytes + found.size_bytes,
        first_offset=first_offset,
        oldest_ms=oldest_ms or None,
        unread={reader.name: reader.unread for reader in readers},
        as_of=floors.last,
        goes_from=floors.floor if floors.goes_to >= floors.floor else found.first,
        goes_to=floors.goes_to if floors.goes_to >= floors.floor else found.last,
        kept_from=floors.kept_from,
        among=bisect_left(among, floors.next_floor) + found.among,
        already=floors.messages + already.messages if already else 0,
        already_bytes=floors.bytes + already.size_bytes if already else 0,
        is_complete=looked is None or looked.is_complete,
        counted=1.0 if looked is None or looked.is_complete else looked.part,
        has_many_keys=looked is not None and looked.census.is_full,
    )


def _readers(
    stream_id: str, groups: Mapping[str, Sequence[str]], floors: _Floors, begins: Mapping[str, int]
) -> Op[tuple[list[Reader], int]]:
    """How far the groups have come, and the first offset that has to be looked at for one of them."""
    stood = yield from unread.of_groups(stream_id, groups, floors.floor, floors.next_floor, begins=begins)
    look_from = min([floors.last + 1, *(each.look_from for each in stood if each.look_from)])
    return [each.reader for each in stood], look_from


def _look(
    stream_id: str, held: Held, first: int, floors: _Floors, asked: Script, *, until_s: float, always: int
) -> Op[Looked]:
    """Look at what is held of the stream, or, where that is far behind and less is of interest, at that alone."""
    reached = 0 if held.census is None else held.census.last
    if reached < first and floors.last - first <= always:
        held = Held()
        return (
            yield from look(stream_id, held, first=first, until_s=until_s, always=2 * always, beside=asked)
        )
    if floors.last - max(reached, floors.floor) > always:
        always = 1  # it does not come to the end in this way
    return (yield from look(stream_id, held, until_s=until_s, always=always, beside=asked))


def _supposed(reader: Reader, supposed: Supposed) -> Reader:
    """How far a group would have come."""
    if reader.name != supposed.group:
        return reader
    if supposed.delivered is not None:
        return replace(reader, delivered=supposed.delivered, flying=())
    answered = {*supposed.answered}
    return replace(reader, flying=[offset for offset in reader.flying if offset not in answered])


def _settled(
    stream_id: str, readers: Sequence[Reader], floor: int, supposed: Supposed | None
) -> Op[list[int]]:
    """What every group is done with: messages, bytes, first offset and time of what remains, and messages and bytes
    of it that they are really done with; nothing: look and see.
    """
    names = [reader.name for reader in readers]
    asked: list[int] = [0, -1]
    if supposed and supposed.group in names:
        to = -1 if supposed.delivered is None else supposed.delivered
        asked = [names.index(supposed.group) + 1, to, *supposed.answered]
    makers = (keys.group, keys.pending, keys.parked, keys.ready, keys.runs)
    try:
        settled: list[int] = yield Script(
            "preview_interest",
            [
                *(make(stream_id) for make in (keys.log, keys.meta, keys.gone)),
                *(make(stream_id, reader.name) for reader in readers for make in makers),
            ],
            [floor, MOST_OUT, *asked],
        )
    except GroupNotFound:
        return []
    return settled
