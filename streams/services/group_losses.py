"""Recording what groups never finished: messages that went before they acknowledged them, and dead letters."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from streams import store
from streams.access import SYSTEM
from streams.log import standing
from streams.log.keys import GroupName
from streams.log.standing import GroupState
from streams.models import Event, Group, GroupLoss
from streams.services.events import event_of, events_append
from streams.services.summaries import counted, group_named, was

PERIOD = timedelta(hours=1)
"""At most one event of each kind a group in so long."""


AT_ONCE = 100
"""Groups asked together how they stand."""


def group_losses_close(groups: Iterable[Group]) -> None:
    """Record what these groups, which are about to be deleted, have lost and given up and no event tells of yet."""
    named = [(group.stream.stream_id, group.name) for group in groups]
    for first in range(0, len(named), AT_ONCE):
        states = store.log().run(standing.inspect_these(named[first : first + AT_ONCE]))
        group_losses_record(states, at_last=True)


@transaction.atomic
def group_losses_record(states: Mapping[GroupName, GroupState], *, at_last: bool = False) -> set[GroupName]:
    """Record what groups have lost and given up since events last told of it, at most once a ``PERIOD`` each.

    Args:
        at_last: whether nothing is to be told later, so that it is told now whatever was told when.

    Returns:
        The groups that are up to date; the others are to be shown again when their period is over.
    """
    settled, events, now = set(states), list[Event](), timezone.now()
    period = timedelta() if at_last else PERIOD
    rows = (
        Group.objects.select_for_update(of=("self",), no_key=True)
        .select_related("stream__workspace")
        .filter(
            stream__stream_id__in={stream_id for stream_id, _ in states},
            name__in={name for _, name in states},
        )
        .order_by("pk")
    )
    groups = {(group.stream.stream_id, group.name): group for group in rows}
    losses = {loss.group_id: loss for loss in GroupLoss.objects.filter(group__in=groups.values())}
    for named in states.keys() & groups.keys():
        group, state = groups[named], states[named]
        loss = losses.get(group.pk) or GroupLoss(group=group)
        has_less = _taken_back(loss, state)
        lost = [_lost(group, loss, state, now, period), _dead_lettered(group, loss, state, now, period)]
        if None in lost:
            settled.discard(named)
        fresh = [event for each in lost if each is not None for event in each]
        if fresh or has_less or loss.pk is None:
            loss.save()
        events += fresh
    events_append(events)
    return settled


def _taken_back(loss: GroupLoss, state: GroupState) -> bool:
    """Count from where the group stands if that is below what events told: a removal was undone, or a server in memory
    lost the count. Else what the group loses next would be passed over.
    """
    counts = (
        ("undelivered", state.lost),
        ("unanswered", state.unfinished),
        ("dead_lettered", state.dead_lettered),
    )
    lower = {field: count for field, count in counts if count < getattr(loss, field)}
    for field, count in lower.items():
        setattr(loss, field, count)
    return bool(lower)


def _lost(
    group: Group, loss: GroupLoss, state: GroupState, now: datetime, period: timedelta
) -> list[Event] | None:
    """The event of what went before it was acknowledged, if there is one; None where it is not yet time."""
    undelivered, unanswered = state.lost - loss.undelivered, state.unfinished - loss.unanswered
    if undelivered <= 0 and unanswered <= 0:
        return []
    if _is_early(loss.lost_told_at, now, period):
        return None
    since = loss.lost_told_at or group.created_at
    loss.undelivered, loss.unanswered, loss.lost_told_at = state.lost, state.unfinished, now
    messages = max(0, undelivered) + max(0, unanswered)
    return [
        event_of(
            group.stream.workspace,
            kind="group.lost",
            actor=SYSTEM,
            stream=group.stream.name,
            group=group.name,
            after={
                "messages": messages,
                "undelivered": max(0, undelivered),
                "unanswered": max(0, unanswered),
                "since": since.isoformat(timespec="milliseconds"),
            },
            summary=f"{counted(messages)} of {group.stream.name} {was(messages)} removed before group {group.name} "
            f"acknowledged {'it' if messages == 1 else 'them'}.",
        )
    ]


def _dead_lettered(
    group: Group, loss: GroupLoss, state: GroupState, now: datetime, period: timedelta
) -> list[Event] | None:
    """The event of what was delivered too often, if there is one; None where it is not yet time."""
    messages = state.dead_lettered - loss.dead_lettered
    if messages <= 0:
        return []
    if _is_early(loss.dead_told_at, now, period):
        return None
    since = loss.dead_told_at or group.created_at
    loss.dead_lettered, loss.dead_told_at = state.dead_lettered, now
    became = "became a dead letter" if messages == 1 else "became dead letters"
    return [
        event_of(
            group.stream.workspace,
            kind="group.dead_lettered",
            actor=SYSTEM,
            stream=group.stream.name,
            group=group.name,
            after={
                "messages": messages,
                "dead_letters": state.dead_letters,
                "since": since.isoformat(timespec="milliseconds"),
            },
            summary=f"{counted(messages)} of {group_named(group)} {became}: max deliveries reached.",
        )
    ]


def _is_early(told_at: datetime | None, now: datetime, period: timedelta) -> bool:
    return told_at is not None and now < told_at + period
