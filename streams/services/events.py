"""Recording what happened: at the end of the chain, in the transaction of what is recorded.

The lock of the chain's head is held until the transaction ends, so a service locks its own rows first and records
last: two that wait for each other's rows and for the head would be a deadlock.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from streams import store
from streams.access import SYSTEM, Actor
from streams.log import anchors
from streams.models import Event, EventHead, Workspace


def event_record(
    workspace: Workspace | None,
    *,
    kind: str,
    actor: Actor,
    summary: str,
    stream: str = "",
    group: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> Event:
    """Write one event; part of the caller's transaction, so that nothing happens unrecorded."""
    event = event_of(
        workspace,
        kind=kind,
        actor=actor,
        summary=summary,
        stream=stream,
        group=group,
        before=before,
        after=after,
    )
    events_append([event])
    return event


def event_of(
    workspace: Workspace | None,
    *,
    kind: str,
    actor: Actor,
    summary: str,
    stream: str = "",
    group: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> Event:
    """An event that is not written yet; for ``events_append`` of many."""
    return Event(
        kind=kind,
        workspace=workspace.name if workspace else "",
        workspace_id=workspace.pk if workspace else None,
        actor=actor.name[:200],
        address=actor.address[:64],
        stream=stream,
        group=group,
        before=before,
        after=after,
        summary=summary,
    )


@transaction.atomic
def events_append(events: Sequence[Event]) -> None:
    """Write events after the last one, in the given order; gives each its id, time and hash."""
    if not events:
        return
    head, now = head_locked(), timezone.now()
    for event in events:
        event.id, event.time, event.previous = head.last + 1, now, head.hash
        event.hash = event.digest()
        head.last, head.hash = event.id, event.hash
    Event.objects.bulk_create(events, batch_size=500)
    head.save(update_fields=["last", "hash"])
    # A second place knows how far the chain went; should the store be away, the next event tells it.
    transaction.on_commit(lambda: head_anchor(head), robust=True)


def head_locked() -> EventHead:
    """The chain's head, locked until the transaction ends; made with the first event."""
    head = EventHead.objects.select_for_update().first()
    if head is None:
        fresh = secrets.token_hex(32)
        head = EventHead.objects.create(chain=fresh, hash=fresh)
    return head


def head_anchor(head: EventHead) -> None:
    """Write down in the message store how far the chain goes."""
    store.log().run(anchors.put(head.chain, event_id=head.last, digest=head.hash))


@transaction.atomic
def events_anchor_anew() -> None:
    """Take the chain as it stands for whole, after a backup was brought back; an event says so."""
    head = head_locked()
    store.log().run(anchors.begin(head.chain, event_id=head.last, digest=head.hash))
    event_record(
        None,
        kind="events.anchored",
        actor=SYSTEM,
        after={"last": head.last, "hash": head.hash},
        summary=f"The events up to {head.last} were taken as they stand.",
    )
