"""What a group has in flight: who has it, since when, how often, and when it comes again."""

import itertools
from dataclasses import dataclass

from streams.log import group_meta, keys, runs
from streams.log.client import Op, Pipeline, Steady
from streams.log.group_scripts import group_script

SLICE = 1000
"""Most offsets looked at in one call of the script."""

ANY_TIME_MS = 2**53 - 1

MEMBERS_OF = 4_000
"""So many messages in flight at most are looked at to tell who has them: some milliseconds."""


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
        id, key, published_ms: of the message; None where it went from the stream meanwhile.
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
    wanted = wanted or Wanted()
    found: list[InFlight] = []
    at: int | None = start
    while at is not None and len(found) < limit:
        steady_ms = yield Steady()
        following, generation, rows = yield group_script(
            "group_pending",
            stream_id,
            name,
            [
                at,
                limit - len(found),
                SLICE,
                wanted.deliveries,
                ANY_TIME_MS if wanted.before_ms is None else wanted.before_ms,
                int(wanted.consumer is not None),
                wanted.consumer or "",
            ],
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
        at = following or None
    return found, at


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
        ("ZRANGE", key, start, min(start + SLICE, stop) - 1)
        for first, stop in ranks
        for start in range(first, stop, SLICE)
    ]


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
