"""Recording what happened."""

from typing import Any

from streams.access import Actor
from streams.models import Event, Workspace


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
    return Event.objects.create(
        workspace=workspace,
        kind=kind,
        actor=actor.name,
        address=actor.address,
        stream=stream,
        group=group,
        before=before,
        after=after,
        summary=summary,
    )
