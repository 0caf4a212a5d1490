"""Messages in flight, settled by a person instead of the consumer that has them; each time an event."""

from collections.abc import Sequence
from typing import Any, Literal

from streams import selectors
from streams.access import Actor
from streams.errors import refusal_of
from streams.log import groups
from streams.log.client import Op
from streams.log.errors import DoneInPart
from streams.log.notes import unsure
from streams.log.pending import InFlight, Wanted
from streams.models import Group
from streams.services.events import event_record
from streams.services.on_record import on_record
from streams.services.summaries import counted, group_named, was

Settling = Literal["ack", "nack", "term"]

KINDS: dict[Settling, tuple[str, str, str]] = {
    "ack": ("group.acknowledged", "acknowledged", "acknowledged"),
    "nack": ("group.released", "nacked", "nacked"),
    "term": ("group.terminated", "made a dead letter", "made dead letters"),
}
"""The kind of event, and what became of one message, and of several."""

MOST_TOLD = 100
"""Offsets that an event lists; the rest is in its count."""

LOOKED_AT = 1000
"""Messages in flight that one call looks at for those that were chosen."""

MOST_AT_ONCE = 10_000
"""Messages in flight that one call settles when it is asked for all that match."""


def deliveries_settle(
    group: Group,
    settling: Settling,
    *,
    offsets: Sequence[int],
    actor: Actor,
    delay_s: float = 0.0,
    reason: str = "",
) -> int:
    """Settle what is in flight at these offsets: ``ack``, ``nack`` after a delay, ``term`` with a reason.

    Under ``ack: all`` an acknowledgement settles everything before it, too. Returns how many messages it settled; those
    that were settled meanwhile are passed over.

    Raises:
        Refusal: it was refused, or cut off, after some of them.
    """
    op = _op(group, settling, offsets, delay_ms=round(delay_s * 1000), reason=reason)
    kind, *became = KINDS[settling]
    how: dict[Settling, dict[str, Any]] = {"ack": {}, "nack": {"delay": delay_s}, "term": {"reason": reason}}
    asked = {"offsets": list(offsets[:MOST_TOLD]), "count": 0, **how[settling]}
    with on_record(group.stream, kind=kind, actor=actor, asked=asked, group=group.name) as deed:
        cut_off: DoneInPart | None = None
        try:
            count, told = deed.run(op)
        except DoneInPart as error:
            cut_off, count, told = error, error.messages, error.offsets
        if count:
            after = asked | {"offsets": list(told[:MOST_TOLD]), "count": count}
            event_record(
                group.stream.workspace,
                kind=kind,
                actor=actor,
                stream=group.stream.name,
                group=group.name,
                after=after if cut_off is None else {**after, **unsure(cut_off.why)},
                summary=f"{counted(count)} in flight of {group_named(group)} {was(count)} {became[count != 1]} "
                "by hand.",
            )
        if cut_off is not None:
            raise refusal_of(cut_off, stream=group.stream.name, group=group.name)
    return count


def deliveries_matching(group: Group, wanted: Wanted) -> tuple[list[InFlight], bool]:
    """What is in flight and matches, at most ``MOST_AT_ONCE``, and whether there is more."""
    found, following = selectors.in_flight(group, wanted=wanted, limit=MOST_AT_ONCE)
    return found, following is not None


def deliveries_chosen(group: Group, offsets: Sequence[int], wanted: Wanted | None = None) -> list[int]:
    """Which of these ascending offsets are in flight, and match."""
    found: set[int] = set()
    start: int | None = offsets[0] if offsets else None
    while start is not None and start <= offsets[-1]:
        page, start = selectors.in_flight(group, wanted=wanted, start=start, limit=LOOKED_AT)
        found.update(row.offset for row in page)
    return [offset for offset in offsets if offset in found]


def deliveries_at_last(group: Group, offsets: Sequence[int]) -> list[int]:
    """Which of these ascending offsets are in flight for the last time: a nack makes dead letters of them."""
    if group.max_deliver == -1:
        return []
    return deliveries_chosen(group, offsets, Wanted(deliveries=group.max_deliver))


def deliveries_covered(group: Group, offsets: Sequence[int]) -> tuple[list[int], bool]:
    """What acknowledging these ascending offsets settles under ``ack: all``: all in flight up to the last of them.

    Returns at most ``MOST_AT_ONCE`` offsets from the first on, and whether the last of these offsets lies behind them.
    """
    found, following = selectors.in_flight(group, limit=MOST_AT_ONCE)
    covered = [row.offset for row in found if row.offset <= offsets[-1]]
    return covered, following is not None and following <= offsets[-1]


def _op(
    group: Group, settling: Settling, offsets: Sequence[int], *, delay_ms: int, reason: str
) -> Op[tuple[int, Sequence[int]]]:
    """Settle them; how many, and which: those ended, else those that were asked for."""
    stream_id, name = group.stream.stream_id, group.name
    match settling:
        case "ack":
            return (yield from groups.ack(stream_id, name, "offsets", offsets)), offsets
        case "nack":
            return (yield from groups.nack(stream_id, name, "offsets", offsets, delay_ms=delay_ms)), offsets
        case "term":
            ended = yield from groups.term(stream_id, name, "offsets", offsets, reason=reason)
            return len(ended), sorted(ended)
