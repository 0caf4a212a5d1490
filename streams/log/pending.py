"""What a group has in flight: who has it, since when, how often, and when it comes again."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streams.log import group_meta, keys, runs
from streams.log.client import Op, Pipeline, Steady
from streams.log.group_scripts import group_script

SLICE = 1000
"""Most offsets looked at in one call of the script."""

ANY_TIME_MS = 2**53 - 1

AGAIN_LOOKED_AT = 10 * SLICE

IDLE_LISTED = 1000
SPAN_MS, RATED_SPANS = 10_000, 6
"""Acknowledgements are counted by such spans (``lua/lib/members.lua``), and who had none in so many has no rate."""

QUIET_MS = 60_000
"""Who has nothing in flight and neither fetched nor answered for so long is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which messages in flight.

    Attributes:
        deliveries: at least so many.
        before_ms: handed out at this unix ms or earlier; None for any time.
        consumer: held by this one; None for any, an empty name is a consumer that gave none.
    """

    deliveries: int = 0
    before_ms: int | None = None
    consumer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """One message that is out and not settled.

    Attributes:
        deliveries: the how manieth delivery it is; 0 for one that was given back.
        delivered_ms: unix ms of this delivery; 0 for one that was given back.
        due_in_ms: until it comes again; 0 when it does as soon as somebody fetches.
        lease: of this delivery, as the consumer has it.
        id, key, published_ms: of the message; key is None where it has none.
    """

    offset: int
    deliveries: int
    delivered_ms: int
    consumer: str
    due_in_ms: int
    lease: str
    id: str | None
    key: str | None
    published_ms: int | None


def page(
    stream_id: str, name: str, *, start: int = 0, limit: int = 100, wanted: Wanted | None = None
) -> Op[tuple[list[InFlight], int | None]]:
    """Messages in flight from an offset on, in offset order, and where the next page begins (None: nowhere).

    It looks at most at a slice of what is in flight for each call of the script, as often as it takes to fill a page.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    found: list[InFlight] = []
    at: int | None = start
    while at is not None and len(found) < limit:
        steady_ms = yield Steady()
        at, generation, rows = yield from _looked(
            stream_id, name, start=at, limit=limit - len(found), wanted=wanted or Wanted()
        )
        for offset, deliveries, delivered_ms, consumer, due_ms, sequence, id_, key, published_ms in rows:
            found.append(
                InFlight(
                    offset=offset,
                    deliveries=deliveries,
                    delivered_ms=delivered_ms,
                    consumer=consumer.decode(),
                    due_in_ms=max(0, due_ms - steady_ms),
                    lease=f"{generation}-{offset}-{sequence}",
                    id=id_.decode() or None,
                    key=key.decode() or None,
                    published_ms=published_ms or None,
                )
            )
    return found, at


def _looked(
    stream_id: str, name: str, *, start: int, limit: int, wanted: Wanted
) -> Op[tuple[int | None, int, list[Any]]]:
    """One call of the script: where to go on (None: nowhere), the group's generation, rows as it says."""
    following, generation, rows = yield group_script(
        "group_pending",
        stream_id,
        name,
        [
            start,
            limit,
            SLICE,
            wanted.deliveries,
            ANY_TIME_MS if wanted.before_ms is None else wanted.before_ms,
            int(wanted.consumer is not None),
            wanted.consumer or "",
        ],
    )
    return following or None, generation, rows


class Again(NamedTuple):
    """How many messages were handed out so often, by consumer, and whether all that are out were looked at."""

    by_consumer: dict[str, int]
    is_complete: bool


def again(stream_id: str, name: str, *, most: int = AGAIN_LOOKED_AT) -> Op[Again]:
    """Who has messages in flight that went out more than once, among so many of the lowest offsets that are out.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    counted: Counter[str] = Counter()

    def take(row: list[Any]) -> None:
        counted[row[3].decode()] += 1

    is_complete = yield from _each(stream_id, name, take, least=2, most=most)
    return Again(dict(counted), is_complete)


class Spent(NamedTuple):
    """What was handed out so often: offset → its key (None: it has none), and whether all that is out was looked at."""

    keys: dict[int, str | None]
    is_complete: bool


def spent(stream_id: str, name: str, *, least: int, below: int | None, most: int) -> Op[Spent]:
    """What is in flight and went out so often, among so many of the lowest offsets that are out.

    Args:
        least, below: so often at least, and less often than that (None: any number).

    Raises:
        StreamNotFound, GroupNotFound.
    """
    found: dict[int, str | None] = {}

    def take(row: list[Any]) -> None:
        if below is None or row[1] < below:
            found[row[0]] = row[7].decode() or None

    is_complete = yield from _each(stream_id, name, take, least=least, most=most)
    return Spent(found, is_complete)


def _each(stream_id: str, name: str, take: Callable[[list[Any]], None], *, least: int, most: int) -> Op[bool]:
    """Look at so many of the lowest offsets that are out; whether these are all."""
    at: int | None = 0
    for _ in range(most // SLICE):
        if at is None:
            break
        at, _generation, rows = yield from _looked(
            stream_id, name, start=at, limit=SLICE, wanted=Wanted(deliveries=least)
        )
        for row in rows:
            take(row)
    return at is None


def not_replayed(stream_id: str, name: str, offsets: Sequence[int]) -> Op[list[int]]:
    """Which of these offsets in flight are none of dead letters that were replayed: those keep their bodies."""
    if not (yield ("HLEN", keys.replayed(stream_id, name))):
        return [*offsets]
    found: list[int] = []
    for first in range(0, len(offsets), SLICE):
        part = offsets[first : first + SLICE]
        replies = yield Pipeline([("HEXISTS", keys.replayed(stream_id, name), offset) for offset in part])
        found += [offset for offset, is_kept in zip(part, replies, strict=True) if not is_kept]
    return found


class Member(NamedTuple):
    """Who works for a group.

    Attributes:
        messages: in flight.
        active_ms: unix ms of its last fetch or answer.
        ack_rate: messages a second that it acknowledged, over ten seconds; None where there was none for a minute.
    """

    messages: int
    active_ms: int
    ack_rate: float | None = None


def members(stream_id: str, name: str) -> Op[dict[str, Member]]:
    """Who has messages in flight or fetched or answered within the last minute, by the consumer's name.

    None with messages in flight is left out; of those without, the thousand who were active last are told.

    Raises:
        StreamNotFound.
    """
    found: dict[str, Member] = {}
    cursor = 0
    while True:
        cursor, told, now_ms = yield group_script("group_members", stream_id, name, [cursor, SLICE, QUIET_MS])
        for consumer, messages, active_ms, acked in told:
            found[consumer.decode()] = Member(messages, active_ms, ack_rate(acked.decode(), now_ms=now_ms))
        if not cursor:
            break
    idle = sorted(
        (name for name in found if not found[name].messages), key=lambda name: found[name].active_ms
    )
    for over in idle[: max(0, len(idle) - IDLE_LISTED)]:
        del found[over]
    return found


def ack_rate(acked: str, *, now_ms: int) -> float | None:
    """Messages a second over the last ten seconds: what came in the span of now, and of the one before as much as those
    ten seconds reach into it.

    Args:
        acked: as the script keeps it, ``<span>:<in it>:<in the one before>``; empty where nothing is kept.
    """
    if not acked:
        return None
    at, inside, before = map(int, acked.split(":"))
    span, into_ms = divmod(now_ms, SPAN_MS)
    if span - at >= RATED_SPANS:
        return None
    if span > at:
        inside, before = 0, inside if span == at + 1 else 0
    return (inside + before * (1 - into_ms / SPAN_MS)) * 1000 / SPAN_MS


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
