"""How consumer groups stand: position, lag, who has messages in flight, how many polls are open."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from streams.log import entries, group_meta, keys, read, runs, spent, trim
from streams.log.client import Op, Pipeline, Script, Steady
from streams.log.entries import Entry
from streams.log.errors import StoreUnavailable
from streams.log.patterns import python_pattern

NAMES_AT_ONCE = 1000
HEALTH_KEPT_S = 86_400

MEMBERS_OF = 4_000
"""So many messages in flight at most are looked at to tell who has them: some milliseconds."""

MEMBERS_SLICE = 1_000

WAITING_AGE_MS = 5_000
"""A web process that has not told of its open polls for so long has none."""


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
        unfinished: removed while they were out, never acknowledged.
        is_last_chance: a message is out that becomes a dead letter unless it is answered.
        dead_lettered: ever, because they were delivered too often; what was deleted or replayed since is among them.
        edge_ms: until the age limit, ``ttl_ms``, takes the oldest message not acknowledged.
        room_messages, room_bytes: what may be published before ``max_messages`` or ``max_bytes`` takes it.
        offset, appended_bytes: of the stream, ever.
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
    is_last_chance: bool = False
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
    is_last_chance: int
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

    def state(self, *, lag: int, oldest_ms: int) -> GroupState:
        is_paused = self.paused_until_ms < 0 or self.paused_until_ms > self.now_ms
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
            paused_until_ms=self.paused_until_ms if is_paused else None,
            now_ms=self.now_ms,
            deliveries=self.deliveries,
            unfinished=self.unfinished,
            is_last_chance=bool(self.is_last_chance),
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
        reply = yield Script(
            "group_inspect",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.group(stream_id, name),
                keys.pending(stream_id, name),
                keys.dead(stream_id, name),
                keys.leases(stream_id, name),
                keys.parked(stream_id, name),
                keys.expiry(stream_id),
                keys.went(stream_id),
                keys.due(stream_id, name),
                keys.replayed(stream_id, name),
                keys.turns(stream_id, name),
                keys.ready(stream_id, name),
                keys.last(stream_id, name),
                keys.runs(stream_id, name),
            ],
            [steady_ms],
        )
        found = _Inspection(*reply)
        if found.has_expired:
            yield from trim.expire(stream_id)
        elif found.is_unswept:
            yield from sweep(stream_id, name)
        elif not found.is_unsettled:
            break
    lag, oldest_ms = found.undelivered, found.oldest_ms
    if found.has_filter and lag:
        behind, first_ms = yield from matching(stream_id, name)
        lag = behind + (yield from parked(stream_id, name))
        if not found.pending and lag == behind:
            oldest_ms = first_ms
    return found.state(lag=lag, oldest_ms=oldest_ms)


def matching(stream_id: str, name: str) -> Op[tuple[int, int]]:
    """How many messages that a group's filter lets through it has not come to yet, and unix ms of the first or 0."""
    total = first_ms = start = 0
    while True:
        count, start, oldest_ms = yield Script(
            "group_matching",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.group(stream_id, name),
                keys.counted(stream_id, name),
            ],
            [start],
        )
        first_ms = first_ms or oldest_ms
        total += count
        if not start:
            return total, first_ms


def parked(stream_id: str, name: str) -> Op[int]:
    """How many visible messages a group has passed over because an earlier one of their key is out."""
    at = yield from read.position(stream_id)
    return int((yield ("ZCOUNT", keys.parked(stream_id, name), at.floor, "+inf")))


def sweep(stream_id: str, name: str) -> Op[int]:
    """Take out of the count what was deleted or expired while it waited for its key; returns how many there were."""
    total, start, removals = 0, 1, ""
    while start:
        count, start, removals = yield Script(
            "order_sweep",
            [
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.group(stream_id, name),
                keys.parked(stream_id, name),
            ],
            [start, removals],
        )
        total += count
    return total


def matching_count(stream_id: str, start: int, stop: int | None, patterns: Sequence[str]) -> Op[int]:
    """Visible messages from offset ``start`` (and below ``stop``) whose key matches one of the patterns (or all)."""
    compiled = [re.compile(python_pattern(pattern), re.DOTALL) for pattern in patterns]

    def wanted(entry: Entry) -> bool:
        key = entries.key(entry)
        return not compiled or (key is not None and any(each.fullmatch(key.decode()) for each in compiled))

    at = yield from read.position(stream_id)
    if not patterns:
        yield from trim.expire(stream_id)
        start, stop = max(start, at.floor), min(stop or at.last + 1, at.last + 1)
        if start >= stop:
            return 0
        (missing,) = yield Script("counts", [keys.gone(stream_id)], [start, stop])
        return int(stop - start - missing)
    count = 0
    while True:
        page = yield from read.forward(stream_id, at, start, read.PAGE, stop=stop, wanted=wanted)
        if not page:
            return count
        count += len(page)
        start = entries.position(page[-1])[0] + 1


@dataclass(frozen=True, slots=True)
class Members:
    """Who has messages in flight.

    Attributes:
        held: consumer → how many, and the unix ms of their last delivery.
        looked_at: messages in flight that this was counted over. Of more than ``MEMBERS_OF`` that are on their own, and
            of more than so many runs, it is the oldest and the newest.
    """

    held: dict[str, tuple[int, int]]
    looked_at: int


def members(stream_id: str, name: str) -> Op[Members]:
    """Who has messages in flight, counted in a bounded look: nobody else waits, however many there are."""
    pending, leases, taken = (make(stream_id, name) for make in (keys.pending, keys.leases, keys.runs))
    single, as_whole = yield Pipeline([("ZCARD", pending), ("ZCARD", taken)])
    of_single, of_runs = _ends(pending, single), _ends(taken, as_whole)
    found = (yield Pipeline([*of_single, *of_runs])) if single or as_whole else []
    named = [offsets for offsets in found[: len(of_single)] if offsets]
    replies = (yield Pipeline([("HMGET", leases, *offsets) for offsets in named])) if named else []
    whole = map(runs.read, itertools.chain.from_iterable(found[len(of_single) :]))
    told = [(run.consumer, run.messages, run.delivered_ms) for run in whole]
    looked_at = sum(map(len, named)) + sum(count for _, count, _ in told)
    for lease in itertools.chain.from_iterable(replies):
        _, sequence, at_ms, consumer = (lease or b":0:0:").decode().split(":", 3)
        if sequence != "0":  # else replayed or given back, and with nobody since; or just answered
            told.append((consumer, 1, int(at_ms)))
    held: dict[str, tuple[int, int]] = {}
    for consumer, messages, delivered_ms in told:
        count, last = held.get(consumer, (0, 0))
        held[consumer] = (count + messages, max(last, delivered_ms))
    return Members(held, looked_at)


def _ends(key: str, count: int) -> list[tuple[str, str, int, int]]:
    """Commands that read a sorted set of so many members in slices; of a large one its lowest and highest."""
    half = MEMBERS_OF // 2
    ranks = [(0, count)] if count <= MEMBERS_OF else [(0, half), (count - half, count)]
    return [
        ("ZRANGE", key, start, min(start + MEMBERS_SLICE, stop) - 1)
        for first, stop in ranks
        for start in range(first, stop, MEMBERS_SLICE)
    ]


def names_of(stream_ids: Sequence[str]) -> Op[dict[str, list[str]]]:
    """The names of the groups of streams; streams without one are left out."""
    found: dict[str, list[str]] = {}
    for first in range(0, len(stream_ids), NAMES_AT_ONCE):
        part = stream_ids[first : first + NAMES_AT_ONCE]
        replies = yield Pipeline([("SMEMBERS", keys.groups(stream_id)) for stream_id in part])
        for stream_id, names in zip(part, replies, strict=True):
            if names:
                found[stream_id] = sorted(name.decode() for name in names)
    return found


def held(stream_id: str, name: str, *, after_ms: int) -> Op[int]:
    """How many messages are out and not due again by a time of the steady clock."""
    count: int = yield ("ZCOUNT", keys.due(stream_id, name), f"({after_ms}", "+inf")
    taken = yield from runs.of(stream_id, name)
    return count + sum(run.messages - 1 for run in taken if run.due_ms > after_ms)


def is_overdue_for_last(stream_id: str, name: str, *, now_ms: int) -> Op[bool]:
    """Whether a group that delivers once has a message out whose time is over: the next fetch makes it a dead letter.

    Messages that are to come at once (a replay, a nack) are due at 0 and not meant.

    Args:
        now_ms: a time of the steady clock.
    """
    told, overdue = yield Pipeline(
        [
            ("HMGET", keys.group(stream_id, name), *group_meta.FIELDS),
            ("ZCOUNT", keys.due(stream_id, name), "(0", now_ms),
        ]
    )
    group = group_meta.read(told)
    return group is not None and group.settings["max_deliver"] == 1 and bool(overdue)


def health_of(stream_id: str, name: str) -> Op[bytes | None]:
    """What the worker keeps of a group between two looks (see ``streams.health``)."""
    found: bytes | None = yield ("GET", keys.health(stream_id, name))
    return found


def healths_of(groups: Sequence[tuple[str, str]]) -> Op[list[bytes | None]]:
    """What the worker keeps of many groups, by the stream's internal id and the group's name, in one round trip
    a server; nothing of streams in memory while theirs does not answer.
    """
    found: dict[tuple[str, str], bytes | None] = {}
    for in_memory in (False, True):
        asked = [group for group in groups if keys.in_memory(group[0]) is in_memory]
        if not asked:
            continue
        try:
            replies = yield Pipeline([("GET", keys.health(*group)) for group in asked])
        except StoreUnavailable:
            if not in_memory:
                raise
            continue
        found |= zip(asked, replies, strict=True)
    return [found.get(group) for group in groups]


def health_set(stream_id: str, name: str, health: bytes) -> Op[None]:
    """Keep it, for a day: of a group that is looked at no more, or is no more, nothing stays."""
    yield ("SET", keys.health(stream_id, name), health, "EX", HEALTH_KEPT_S)


def waiting_told(process: str, polls: Mapping[tuple[str, str], int]) -> Op[None]:
    """Say how many fetches wait in a web process: (stream id, group) → how many. Nothing is said by an empty map."""
    if not polls:
        yield ("HDEL", keys.WAITING, process)
        return
    told = {
        "at": (yield Steady()),
        "polls": {f"{stream_id} {name}": count for (stream_id, name), count in polls.items()},
    }
    yield ("HSET", keys.WAITING, process, msgspec.json.encode(told))


def waiting() -> Op[dict[tuple[str, str], int]]:
    """How many fetches wait, over all web processes that told it within the last seconds."""
    now_ms = yield Steady()
    flat = yield ("HGETALL", keys.WAITING)
    found: dict[tuple[str, str], int] = {}
    for told in map(msgspec.json.decode, flat[1::2]):
        if told["at"] < now_ms - WAITING_AGE_MS:
            continue
        for name, count in told["polls"].items():
            stream_id, _, group = name.partition(" ")
            found[stream_id, group] = found.get((stream_id, group), 0) + count
    return found
