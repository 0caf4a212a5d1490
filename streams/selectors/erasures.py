"""Erasures of a workspace."""

from collections.abc import Collection

from django.db.models import QuerySet

from streams import bearer
from streams.access import Caller
from streams.models import Erasure, Event, Stream

MOST_LOOKED_AT = 500


def erasures_latest(caller: Caller, *, limit: int = 100) -> list[Erasure]:
    """The newest erasures in the streams that a caller may see."""
    newest = Erasure.objects.filter(workspace=caller.workspace).order_by("-id")[:MOST_LOOKED_AT]
    return [each for each in newest if bearer.streams_cover(caller.streams, each.stream)][:limit]


def erasures_of(stream: Stream) -> QuerySet[Erasure]:
    """The erasures from the history of a stream and of deleted ones that had its name, newest first."""
    found = Erasure.objects.filter(workspace=stream.workspace, stream=stream.name, deleted_workspace="")
    return found.order_by("-id")


def erasure_events(stream: Stream, erasures: Collection[Erasure]) -> dict[int, list[Event]]:
    """The events of erasures from a stream's history, by the erasure, oldest first."""
    asked = Event.objects.filter(workspace_id=stream.workspace_id, stream=stream.name)
    numbers = [each.pk for each in erasures]
    found: dict[int, list[Event]] = {number: [] for number in numbers}
    told = asked.filter(kind__startswith="history.erasure_", after__erasure__in=numbers).order_by("id")
    for event in told:
        found[(event.after or {})["erasure"]].append(event)
    return found
