"""How consumer groups stand: their names, positions, counts and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streams.log import damage, group_meta, keys, lag, spent, trim
from streams.log.client import Op, Pipeline, Steady
from streams.log.errors import Damaged, GroupNotFound, StreamNotFound
from streams.log.group_scripts import group_script
from streams.log.keys import GroupName
from streams.log.together import together

NAMES_AT_ONCE = 1000

LAST_COUNTED = 100
"""So many messages on their last delivery are counted (``lua/group_inspect.lua``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """How a group stands at one moment; times are unix ms, None where there was none.

    ``fetched_ms``, ``acked_ms`` and ``made_ms`` are of the steady clock (see ``clock``), to be told by their distance
    from ``steady_ms``.

    Attributes:
        ack_floor: everything up to it is done.
        lag: stored messages not yet delivered that match the filter.
        oldest_ms: time of the oldest message not acknowledged.
        lost: removed before they were ever delivered.
        paused_until_ms: None when not paused, -1 without an end.
        made_ms: when the group was made; None for one made before this was noted.
        deliveries: ever handed out, redeliveries among them.
        unfinished: removed while they were out, never acknowledged; an undo takes back what comes again by it.
        on_last: messages out that become dead letters unless they are answered; ``LAST_COUNTED`` stands for more, too.
        dead_lettered: ever, because they were delivered too often; what was deleted or replayed since is among them.
        edge_ms: until the age limit, ``ttl_ms``, takes the oldest message not acknowledged.
        room_messages, room_bytes: what may be published before ``max_messages`` or ``max_bytes`` takes it.
        offset, appended_bytes: of the stream, ever.
        generation: another one after every seek.
    """

    delivered_offset: int
    ack_floor: int
    lag: int
    ack_pending: int
    redelivered: int
    dead_letters: int
    lost: int
    acked: int
    oldest_ms: int | None
    fetched_ms: int | None
    acked_ms: int | None
    paused_until_ms: int | None
    now_ms: int
    made_ms: int | None = None
    deliveries: int = 0
    unfinished: int = 0
    on_last: int = 0
    edge_ms: int | None = None
    steady_ms: int = 0
    ttl_ms: int | None = None
    dead_lettered: int = 0
    room_messages: int | None = None
    max_messages: int | None = None
    room_bytes: int | None = None
    max_bytes: int | None = None
    offset: int | None = None
    appended_bytes: int | None = None
    generation: int | None = None

    @property
    def is_last_chance(self) -> bool:
        return self.on_last > 0

    @property
    def quiet_ms(self) -> int | None:
        """How long ago somebody fetched or acknowledged; None when nobody ever did."""
        active_ms = max(self.fetched_ms or 0, self.acked_ms or 0)
        return self.steady_ms - active_ms if active_ms else None


class _Inspection(NamedTuple):
    """What ``group_inspect`` answers, in its order; 0 and -1 stand for none."""

    delivered: int
    ack_floor: int
    undelivered: int
    pending: int
    redelivered: int
    dead_letters: int
    lost: int
    acked: int
    oldest_ms: int
    fetched_ms: int
    acked_ms: int
    paused_until_ms: int
    made_ms: int
    now_ms: int
    deliveries: int
    unfinished: int
    on_last: int
    edge_ms: int
    has_expired: int
    is_unswept: int
    steady_ms: int
    ttl_ms: int
    has_filter: int
    dead_lettered: int
    is_unsettled: int
    room_messages: int
    room_bytes: int
    max_messages: int
    max_bytes: int
    offset: int
    appended_bytes: int
    generation: int

    def state(self, *, lag: int, oldest_ms: int) -> GroupState:
        return GroupState(
            delivered_offset=self.delivered,
            ack_floor=self.ack_floor,
            lag=lag,
            ack_pending=self.pending,
            redelivered=self.redelivered,
            dead_letters=self.dead_letters,
            lost=self.lost,
            acked=self.acked,
            oldest_ms=oldest_ms or None,
            fetched_ms=self.fetched_ms or None,
            acked_ms=self.acked_ms or None,
            made_ms=self.made_ms or None,
            paused_until_ms=self.paused_until_ms or None,
            now_ms=self.now_ms,
            deliveries=self.deliveries,
            unfinished=self.unfinished,
            on_last=self.on_last,
            edge_ms=None if self.edge_ms < 0 else self.edge_ms,
            steady_ms=self.steady_ms,
            ttl_ms=self.ttl_ms or None,
            dead_lettered=self.dead_lettered,
            room_messages=None if self.room_messages < 0 else self.room_messages,
            max_messages=self.max_messages or None,
            room_bytes=None if self.room_bytes < 0 else self.room_bytes,
            max_bytes=self.max_bytes or None,
            offset=self.offset,
            appended_bytes=self.appended_bytes,
            generation=self.generation,
        )


def positions(stream_id: str, names: Sequence[str]) -> Op[list[int | None]]:
    """The last offset delivered to each of these groups; None for one that the log does not have."""
    if not names:
        return []
    found = yield Pipeline([("HMGET", keys.group(stream_id, name), *group_meta.FIELDS) for name in names])
    return [None if held is None else held.counters.delivered for held in map(group_meta.read, found)]


def inspect(stream_id: str, name: str) -> Op[GroupState]:
    """How a group stands; the lag of one with a filter is counted over what matches.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    yield from spent.retire_these([(stream_id, name)])
    while True:
        steady_ms = yield Steady()
        reply = yield group_script("group_inspect", stream_id, name, [steady_ms, keys.wake(stream_id)])
        found = _Inspection(*reply)
        if found.has_expired:
            yield from trim.expire(stream_id)
        elif found.is_unswept:
            yield from lag.sweep(stream_id, name)
        elif not found.is_unsettled:
            break
    undelivered, oldest_ms = found.undelivered, found.oldest_ms
    if found.has_filter and undelivered:
        behind, first_ms = yield from lag.matching(stream_id, name)
        undelivered = behind + (yield from lag.parked(stream_id, name))
        if not found.pending and undelivered == behind:
            oldest_ms = first_ms
    return found.state(lag=undelivered, oldest_ms=oldest_ms)


def inspect_these(groups: Sequence[GroupName]) -> Op[dict[GroupName, GroupState]]:
    """How these groups stand, asked together; those that are no more, or damaged, are left out.

    Raises:
        StoreUnavailable.
    """
    told = {}
    replies = yield from together([inspect(*named) for named in groups])
    for named, reply in zip(groups, replies, strict=True):
        if isinstance(reply, GroupState):
            told[named] = reply
        elif not isinstance(reply, GroupNotFound | StreamNotFound | Damaged):
            raise reply
    return told


def names_of(stream_ids: Sequence[str]) -> Op[dict[str, list[str]]]:
    """The names of the groups of streams; streams without one are left out, and so is what is no list of names."""
    found: dict[str, list[str]] = {}
    for first in range(0, len(stream_ids), NAMES_AT_ONCE):
        part = stream_ids[first : first + NAMES_AT_ONCE]
        replies = yield Pipeline([("SMEMBERS", keys.groups(stream_id)) for stream_id in part], apart=True)
        found |= {
            stream_id: names
            for stream_id, names in damage.readable(part, replies, group_meta.names_in)
            if names
        }
    return found
