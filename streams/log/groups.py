"""Consumer groups: who has which message in flight, until when, and what comes next.

A group keeps its own record of what is in flight instead of a native Redis group: keys that the scripts keep
together give redelivery at a due time, leases that fence a late answer, and a seek that voids everything of before.
What one fetch took as a whole is one record in them (see ``runs``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streams.log import entries, group_meta, keys, lag, spent, standing, trim, undo
from streams.log.answers import Named, ack, give_back, nack, term, working
from streams.log.client import Op, Script, Steady
from streams.log.entries import Entry
from streams.log.group_scripts import group_script
from streams.log.patterns import lua_pattern
from streams.log.read import ANSWER_LIMIT_BYTES

__all__ = [
    "Delivery",
    "Fetched",
    "Named",
    "Settings",
    "ack",
    "fetch",
    "give_back",
    "group_publish",
    "group_remove",
    "nack",
    "pause",
    "published",
    "resume",
    "seek",
    "term",
    "working",
]

ORDER_SLICE = 500
CHANGES_TURNS, GETS_BACK = 2, 3
"""What a fetch says where something has to be finished first: the group is on its way to taking turns, or from it;
or it has yet to get back what it had out of what an undo brings back."""


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
        ordered_by_key: messages of one key go out one at a time, in order.
    """

    ack: str = "explicit"
    ack_wait_ms: int = 30_000
    max_deliver: int = 5
    backoff_ms: tuple[int, ...] = ()
    max_ack_pending: int = 1000
    filter_keys: tuple[str, ...] = ()
    ordered_by_key: bool = False


class Delivery(NamedTuple):
    """One message handed out: its entry, the how manieth delivery it is, and the lease of this delivery."""

    entry: Entry
    deliveries: int
    lease: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch got.

    Attributes:
        deliveries: in the order to be processed, redeliveries first.
        left: stored messages that match and were not yet delivered.
        due_in_ms: until something in flight comes again (or a pause ends); None when nothing will.
        generation: of the group; another one after every seek.
    """

    deliveries: list[Delivery]
    left: int
    due_in_ms: int | None
    generation: int


def published(settings: Settings) -> tuple[bytes, int]:
    """What the scripts know of a group's settings: those packed, and 1 where messages of a key go out in order."""
    packed = group_meta.pack_settings(
        {
            "ack": settings.ack,
            "ack_wait_ms": settings.ack_wait_ms,
            "max_deliver": settings.max_deliver,
            "backoff": settings.backoff_ms,
            "max_ack_pending": settings.max_ack_pending,
            "filter": list(map(lua_pattern, settings.filter_keys)),
        }
    )
    return packed, int(settings.ordered_by_key)


def group_publish(stream_id: str, name: str, settings: Settings, *, delivered: int = 0) -> Op[bool]:
    """Make a group that starts after offset ``delivered``, or change the settings of one; True when it is new.

    Raises:
        StreamNotFound: there is no such stream.
    """
    while True:
        steady_ms = yield Steady()
        told = yield group_script(
            "group_publish",
            stream_id,
            name,
            [keys.wake(stream_id), name, delivered, steady_ms, *published(settings)],
        )
        if told != 3:
            break
        yield from trim.expire(stream_id)
    if told == 2:
        yield from _change_turns(stream_id, name)
    if told != 1 and settings.filter_keys:
        yield from _leave_out(stream_id, name)
    return bool(told == 1)


def _change_turns(stream_id: str, name: str) -> Op[None]:
    """Finish what began when a group was to take turns by key, or none any more; others may be at it, too."""
    following = [0, 0, 1]
    while following:
        following = yield group_script("order_change", stream_id, name, [*following, ORDER_SLICE])


def _leave_out(stream_id: str, name: str) -> Op[None]:
    """Let nothing wait for its key that the filter of a group does not let through."""
    start = 1
    while start:
        start = yield group_script("order_filter", stream_id, name, [start, ORDER_SLICE])


def group_remove(stream_id: str, name: str) -> Op[None]:
    """Delete a group with its dead letters; open polls on it end. Twice is no error."""
    yield ("SREM", keys.groups(stream_id), name)
    yield Script("group_remove", keys.all_of_group(stream_id, name), [keys.wake(stream_id)])


def fetch(
    stream_id: str,
    name: str,
    *,
    limit: int,
    consumer: str = "",
    max_bytes: int = ANSWER_LIMIT_BYTES,
    generation: int | None = None,
) -> Op[Fetched]:
    """Take up to ``limit`` messages: those due again, then new ones; each is leased to this call alone.

    Args:
        generation: what an earlier look at the group answered; nothing is taken when a seek came between.

    Raises:
        StreamNotFound, GroupNotFound: nothing was taken.
    """
    deliveries: list[Delivery] = []
    size = 0
    began_ms: int | None = None
    while True:
        steady_ms = yield Steady()
        latest_ms = yield Steady(latest=True)
        began_ms = steady_ms if began_ms is None else began_ms
        args = [
            consumer,
            limit - len(deliveries),
            max_bytes,
            "" if generation is None else generation,
            size,
            steady_ms,
            began_ms,
            latest_ms,
        ]
        found, left, due_in_ms, again, now_in, has_filter, is_unswept, range_, read = yield group_script(
            "fetch", stream_id, name, args
        )
        if again == CHANGES_TURNS:
            yield from _change_turns(stream_id, name)
            continue
        if again == GETS_BACK:
            yield from undo.give_back_out(stream_id, name)
            continue
        new = [Delivery(entry, count, lease.decode()) for entry, count, lease in found]
        if range_:
            read = read or (yield ("XRANGE", keys.log(stream_id), *range_[:2]))
            new += _delivered(read, range_, generation=int(now_in))
        deliveries += new
        generation = int(now_in)  # a seek ends it between two calls, too
        if not again or len(deliveries) >= limit:
            break
        size += sum(entries.carried_bytes(delivery.entry) for delivery in new)
        if size >= max_bytes:
            break
    if is_unswept and deliveries:
        left = (yield from standing.inspect(stream_id, name)).lag
    elif has_filter and deliveries:
        matching, _ = yield from lag.matching(stream_id, name)
        left = matching + (yield from lag.parked(stream_id, name))
    return Fetched(deliveries, left, due_in_ms if due_in_ms >= 0 else None, generation)


def _delivered(found: Sequence[Entry], span: Sequence[int], *, generation: int) -> list[Delivery]:
    """The messages that were found in a range that was just taken as a whole, with their leases.

    What is taken away before they are read is not among them; its lease ends as that of any other message that went.

    Args:
        span: first and last offset of the range, sequence of the first lease.
    """
    first, last, sequence = span
    offsets: Sequence[int] = range(first, last + 1)
    if len(found) < len(offsets):
        offsets = [entries.position(entry)[0] for entry in found]
    ahead = sequence - first
    return [
        Delivery(entry, 1, f"{generation}-{offset}-{offset + ahead}")
        for entry, offset in zip(found, offsets, strict=True)
    ]


def seek(stream_id: str, name: str, *, next_offset: int) -> Op[tuple[int, int]]:
    """Deliver from ``next_offset`` on; leases of before are void. Returns the next offset before and after."""
    yield from spent.retire_these([(stream_id, name)])
    yield from lag.sweep(stream_id, name)
    while True:
        moved = yield group_script("group_seek", stream_id, name, [keys.wake(stream_id), next_offset])
        if moved:
            before, after = moved
            return before, after
        yield from trim.expire(stream_id)


def pause(stream_id: str, name: str, *, until_ms: int | None) -> Op[None]:
    """Deliver nothing until a time, or until ``resume`` (None). Answers still count.

    Raises:
        GroupNotFound.
    """
    yield _pause(stream_id, name, -1 if until_ms is None else until_ms)


def resume(stream_id: str, name: str) -> Op[None]:
    """Deliver again at once. Errors as ``pause``."""
    yield _pause(stream_id, name, "")


def _pause(stream_id: str, name: str, until_ms: int | str) -> Script:
    return group_script("group_pause", stream_id, name, [keys.wake(stream_id), until_ms])
