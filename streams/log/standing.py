"""How consumer groups stand: position, lag, who has messages in flight, how many polls are open."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from streams.log import entries, keys, read
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Entry
from streams.log.patterns import python_pattern

WAITING_AGE_MS = 5_000
"""A web process that has not told of its open polls for so long has none."""


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


def positions(stream_id: str, names: Sequence[str]) -> Op[list[int | None]]:
    """The last offset delivered to each of these groups; None for one that the log does not have."""
    if not names:
        return []
    found = yield Pipeline([("HGET", keys.group(stream_id, name), "delivered") for name in names])
    return [None if delivered is None else int(delivered) for delivered in found]


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
