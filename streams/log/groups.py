"""Consumer groups: who has which message in flight, until when, and what comes next.

A group keeps its own record of what is in flight instead of a native Redis group: three keys that the scripts keep
together give redelivery at a due time, leases that fence a late answer, and a seek that voids everything of before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from streams.log import entries, keys, read
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Entry
from streams.log.errors import GroupNotFound, LeaseLost, MessageNotFound
from streams.log.read import ANSWER_LIMIT_BYTES

SLICE = 10_000
"""Most offsets or leases in one call of a script; within it an answer by lease is done whole or not at all."""

WAITING_AGE_MS = 5_000
"""A web process that has not told of its open polls for so long has none."""

Named = Literal["offsets", "up_to", "leases"]
"""How an answer names deliveries: by offset, by everything up to one, or by lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a group is set to.

    Attributes:
        ack: ``explicit`` (each message), ``all`` (an ack covers everything before it), ``none`` (advances at fetch).
        ack_wait_ms: until an unanswered delivery comes again.
        max_deliver: deliveries before a message becomes a dead letter; -1 for no limit.
        backoff_ms: waits that replace ``ack_wait_ms`` after delivery 1, 2, …; the last repeats.
        max_ack_pending: most messages in flight over all members.
        filter_keys: key patterns; others are skipped.
    """

    ack: str = "explicit"
    ack_wait_ms: int = 30_000
    max_deliver: int = 5
    backoff_ms: tuple[int, ...] = ()
    max_ack_pending: int = 1000
    filter_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message handed out: its entry, the how manieth delivery it is, and the lease of this delivery."""

    entry: Entry
    deliveries: int
    lease: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch got.

    Attributes:
        deliveries: in the order to be processed, redeliveries first.
        left: stored messages after the group's position, of any key.
        next_due_ms: unix ms at which something in flight comes again (or a pause ends); 0 when nothing will.
        now_ms: the server's clock.
    """

    deliveries: list[Delivery]
    left: int
    next_due_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """How a group stands at one moment; times are unix ms, None where there was none.

    Attributes:
        ack_floor: everything up to it is done.
        lag: stored messages not yet delivered that match the filter.
        oldest_ms: time of the oldest message not acknowledged.
        paused_until_ms: None when not paused, -1 without an end.
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


class DeadLetter(msgspec.Struct, kw_only=True):
    """A message that is delivered no more; ``died_ms`` and ``timestamp_ms`` are unix ms, ``body`` is JSON text."""

    offset: int
    timestamp_ms: int
    id: str
    body: str
    reason: str
    deliveries: int
    died_ms: int
    key: str | None = None
    headers: str | None = None


def group_publish(stream_id: str, name: str, settings: Settings, *, delivered: int = 0) -> Op[bool]:
    """Make a group that starts after offset ``delivered``, or change the settings of one; True when it is new.

    Raises:
        StreamNotFound: there is no such stream.
    """
    pairs = {
        "ack": settings.ack,
        "ack_wait_ms": settings.ack_wait_ms,
        "max_deliver": settings.max_deliver,
        "backoff": ",".join(map(str, settings.backoff_ms)),
        "max_ack_pending": settings.max_ack_pending,
        "filter": "\n".join(map(lua_pattern, settings.filter_keys)),
    }
    flat = [part for pair in pairs.items() for part in pair]
    new = yield Script(
        "group_publish",
        [keys.meta(stream_id), keys.group(stream_id, name), keys.groups(stream_id)],
        [name, delivered, *flat],
    )
    return bool(new)


def group_remove(stream_id: str, name: str) -> Op[None]:
    """Delete a group with its dead letters; open polls on it end. Twice is no error."""
    yield ("SREM", keys.groups(stream_id), name)
    yield Script("group_remove", keys.all_of_group(stream_id, name), [keys.wake(stream_id)])


def fetch(
    stream_id: str, name: str, *, limit: int, consumer: str = "", max_bytes: int = ANSWER_LIMIT_BYTES
) -> Op[Fetched]:
    """Take up to ``limit`` messages: those due again, then new ones; each is leased to this call alone.

    Raises:
        StreamNotFound, GroupNotFound: nothing was taken.
    """
    deliveries: list[Delivery] = []
    size = 0
    while True:
        found, left, next_due_ms, again, now_ms = yield Script(
            "fetch",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.group(stream_id, name),
                keys.pending(stream_id, name),
                keys.due(stream_id, name),
                keys.leases(stream_id, name),
                keys.dead(stream_id, name),
                keys.replayed(stream_id, name),
            ],
            [consumer, limit - len(deliveries), max(1, max_bytes - size)],
        )
        deliveries += [Delivery(entry, count, lease.decode()) for entry, count, lease in found]
        size += sum(len(entry[1][3]) for entry, _, _ in found)
        if not again or len(deliveries) >= limit or size >= max_bytes:
            return Fetched(deliveries, left, next_due_ms, now_ms)


def ack(stream_id: str, name: str, named: Named, values: Sequence[int | str]) -> Op[int]:
    """Settle deliveries; returns how many were settled now. Twice is a no-op, late but not redelivered counts.

    Raises:
        GroupNotFound; LeaseLost: one of the leases has passed on, and nothing of its slice was done.
    """
    arguments = (
        [
            keys.group(stream_id, name),
            keys.pending(stream_id, name),
            keys.due(stream_id, name),
            keys.leases(stream_id, name),
            keys.replayed(stream_id, name),
        ],
    )
    total = 0
    for part in _slices(values):
        total += yield Script("ack", *arguments, [named, *part])
    return total


def nack(
    stream_id: str, name: str, named: Named, values: Sequence[int | str], *, delay_ms: int = 0
) -> Op[int]:
    """Give deliveries back: they come again after a delay. Errors as ``ack``."""
    return (yield from _redeliver(stream_id, name, named, values, delay=str(delay_ms)))


def give_back(stream_id: str, name: str, leases: Sequence[str]) -> Op[int]:
    """Take back deliveries that never reached anyone: they come again at once. A lost lease is passed over."""
    total = 0
    for lease in leases:
        try:
            total += yield from nack(stream_id, name, "leases", [lease])
        except LeaseLost:
            continue
    return total


def working(stream_id: str, name: str, named: Named, values: Sequence[int | str]) -> Op[int]:
    """Restart the clock of deliveries that take longer. Errors as ``ack``."""
    return (yield from _redeliver(stream_id, name, named, values, delay=""))


def term(stream_id: str, name: str, named: Named, values: Sequence[int | str], *, reason: str) -> Op[int]:
    """Send deliveries to the dead letters. Errors as ``ack``."""
    total = 0
    for part in _slices(values):
        total += yield Script(
            "term",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.group(stream_id, name),
                keys.pending(stream_id, name),
                keys.due(stream_id, name),
                keys.leases(stream_id, name),
                keys.dead(stream_id, name),
                keys.replayed(stream_id, name),
            ],
            [reason, named, *part],
        )
    return total


def seek(stream_id: str, name: str, *, next_offset: int) -> Op[tuple[int, int]]:
    """Deliver from ``next_offset`` on; leases of before are void. Returns the next offset before and after."""
    before, after = yield Script(
        "group_seek",
        [
            keys.meta(stream_id),
            keys.group(stream_id, name),
            keys.pending(stream_id, name),
            keys.due(stream_id, name),
            keys.leases(stream_id, name),
            keys.replayed(stream_id, name),
        ],
        [keys.wake(stream_id), next_offset],
    )
    return before, after


def pause(stream_id: str, name: str, *, until_ms: int | None) -> Op[None]:
    """Deliver nothing until a time, or until ``resume`` (None). Answers still count."""
    yield from _exists(stream_id, name)
    yield ("HSET", keys.group(stream_id, name), "paused_until", -1 if until_ms is None else until_ms)


def resume(stream_id: str, name: str) -> Op[None]:
    """Deliver again at once."""
    yield from _exists(stream_id, name)
    yield Pipeline(
        [
            ("HDEL", keys.group(stream_id, name), "paused_until"),
            ("PUBLISH", keys.wake(stream_id), "due"),
        ]
    )


def inspect(stream_id: str, name: str, *, filter_keys: Sequence[str] = ()) -> Op[GroupState]:
    """How a group stands.

    Args:
        filter_keys: the group's patterns; with them the lag is counted over what is not yet delivered.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    reply = yield Script(
        "group_inspect",
        [
            keys.log(stream_id),
            keys.meta(stream_id),
            keys.gone(stream_id),
            keys.group(stream_id, name),
            keys.pending(stream_id, name),
            keys.dead(stream_id, name),
        ],
    )
    delivered, floor, lag, pending, redelivered, dead, lost, acked, oldest, fetched, acked_at, paused = reply[
        :12
    ]
    if filter_keys and lag:
        lag = yield from matching_count(stream_id, delivered + 1, None, filter_keys)
    now_ms = reply[13]
    return GroupState(
        delivered_offset=delivered,
        ack_floor=floor,
        lag=lag,
        ack_pending=pending,
        redelivered=redelivered,
        dead_letters=dead,
        lost=lost,
        acked=acked,
        oldest_ms=oldest or None,
        fetched_ms=fetched or None,
        acked_ms=acked_at or None,
        paused_until_ms=paused if paused < 0 or paused > now_ms else None,
        now_ms=now_ms,
    )


def matching_count(stream_id: str, start: int, stop: int | None, patterns: Sequence[str]) -> Op[int]:
    """Visible messages from offset ``start`` (and below ``stop``) whose key matches one of the patterns (or all)."""
    compiled = [re.compile(python_pattern(pattern), re.DOTALL) for pattern in patterns]

    def wanted(entry: Entry) -> bool:
        key = entries.key(entry)
        return not compiled or (key is not None and any(each.fullmatch(key.decode()) for each in compiled))

    at = yield from read.position(stream_id)
    count = 0
    while True:
        page = yield from read.forward(stream_id, at, start, read.PAGE, stop=stop, wanted=wanted)
        if not page:
            return count
        count += len(page)
        start = entries.position(page[-1])[0] + 1


def members(stream_id: str, name: str) -> Op[dict[str, tuple[int, int]]]:
    """Who has messages in flight: consumer → how many, and the unix ms of their last delivery."""
    flat = yield ("HGETALL", keys.leases(stream_id, name))
    found: dict[str, tuple[int, int]] = {}
    for value in flat[1::2]:
        _, _, at_ms, consumer = value.decode().split(":", 3)
        count, last = found.get(consumer, (0, 0))
        found[consumer] = (count + 1, max(last, int(at_ms)))
    return found


def waiting_told(process: str, polls: Mapping[tuple[str, str], int], *, at_ms: int) -> Op[None]:
    """Say how many fetches wait in a web process: (stream id, group) → how many. Nothing is said by an empty map."""
    if not polls:
        yield ("HDEL", keys.WAITING, process)
        return
    told = {
        "at": at_ms,
        "polls": {f"{stream_id} {name}": count for (stream_id, name), count in polls.items()},
    }
    yield ("HSET", keys.WAITING, process, msgspec.json.encode(told))


def waiting(*, now_ms: int) -> Op[dict[tuple[str, str], int]]:
    """How many fetches wait, over all web processes that told it within the last seconds."""
    flat = yield ("HGETALL", keys.WAITING)
    found: dict[tuple[str, str], int] = {}
    for told in map(msgspec.json.decode, flat[1::2]):
        if told["at"] < now_ms - WAITING_AGE_MS:
            continue
        for name, count in told["polls"].items():
            stream_id, _, group = name.partition(" ")
            found[stream_id, group] = found.get((stream_id, group), 0) + count
    return found


def dead_letters(stream_id: str, name: str, *, start: int = 0, limit: int = 100) -> Op[list[DeadLetter]]:
    """Dead letters from an offset on, in offset order."""
    found = yield (
        "ZRANGEBYSCORE",
        keys.dead(stream_id, name),
        start,
        "+inf",
        "LIMIT",
        0,
        limit,
    )
    return [msgspec.msgpack.decode(letter, type=DeadLetter) for letter in found]


def dead_replay(stream_id: str, name: str, offsets: Sequence[int]) -> Op[int]:
    """Deliver dead letters again with a fresh count; returns how many there were."""
    total = 0
    for part in _slices(offsets):
        total += yield Script(
            "dead_replay",
            [
                keys.group(stream_id, name),
                keys.pending(stream_id, name),
                keys.due(stream_id, name),
                keys.leases(stream_id, name),
                keys.dead(stream_id, name),
                keys.replayed(stream_id, name),
            ],
            [keys.wake(stream_id), *part],
        )
    return total


def dead_delete(stream_id: str, name: str, *, offset: int | None = None) -> Op[int]:
    """Delete the dead letter at an offset, or all; returns how many.

    Raises:
        MessageNotFound: there is none at this offset.
    """
    low, high = ("-inf", "+inf") if offset is None else (offset, offset)
    removed: int = yield ("ZREMRANGEBYSCORE", keys.dead(stream_id, name), low, high)
    if offset is not None and not removed:
        raise MessageNotFound
    return removed


def lua_pattern(pattern: str) -> str:
    """A key pattern as a Lua pattern, anchored at both ends."""
    parts = {"*": "[^.]+", ">": ".+"}
    return "^" + "%.".join(parts.get(token) or _lua_literal(token) for token in pattern.split(".")) + "$"


def python_pattern(pattern: str) -> str:
    """A key pattern as a regular expression."""
    parts = {"*": r"[^.]+", ">": r".+"}
    return r"\.".join(parts.get(token) or re.escape(token) for token in pattern.split("."))


def _lua_literal(token: str) -> str:
    return re.sub(r"([^\w])", r"%\1", token, flags=re.ASCII) if token.isascii() else _lua_bytes(token)


def _lua_bytes(token: str) -> str:
    return "".join(
        char if not char.isascii() or char.isalnum() or char == "_" else "%" + char for char in token
    )


def _redeliver(
    stream_id: str, name: str, named: Named, values: Sequence[int | str], *, delay: str
) -> Op[int]:
    total = 0
    for part in _slices(values):
        total += yield Script(
            "redeliver",
            [
                keys.group(stream_id, name),
                keys.pending(stream_id, name),
                keys.due(stream_id, name),
                keys.leases(stream_id, name),
            ],
            [keys.wake(stream_id), delay, named, *part],
        )
    return total


def _exists(stream_id: str, name: str) -> Op[None]:
    if not (yield ("HEXISTS", keys.group(stream_id, name), "name")):
        raise GroupNotFound


def _slices(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[n : n + SLICE] for n in range(0, len(values), SLICE))
