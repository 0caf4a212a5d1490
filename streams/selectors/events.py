"""What happened."""

from django.db.models import Q, QuerySet

from streams.access import Caller
from streams.models import (
    DEFAULT_WORKSPACE,
    Event,
    Workspace,
)
from streams.selectors.narrowing import inside


def events_latest(workspace: Workspace, *, stream: str = "", kind: str = "", limit: int = 20) -> list[Event]:
    """The newest events of a workspace, newest first."""
    return list(_events(workspace, stream=stream, kind=kind).order_by("-id")[:limit])


def events_page(
    caller: Caller, *, after: int | None, limit: int, stream: str = "", kind: str = ""
) -> tuple[list[Event], bool]:
    """Events that a caller may see, ascending by id: those after an id, or the newest; and whether more came later.

    A narrowed caller sees those of its streams only.
    """
    found = _events(caller.workspace, stream=stream, kind=kind)
    if caller.streams:
        found = found.filter(inside(caller.streams, "stream")).exclude(stream="")
    if after is None:
        return list(found.order_by("-id")[:limit])[::-1], False
    rows = list(found.filter(id__gt=after).order_by("id")[: limit + 1])
    return rows[:limit], len(rows) > limit


def _events(workspace: Workspace, *, stream: str, kind: str) -> QuerySet[Event]:
    """Events of a workspace. Those of none, of the whole system, are shown in the default one."""
    mine = Q(workspace=workspace)
    if workspace.name == DEFAULT_WORKSPACE:
        mine |= Q(workspace=None)
    found = Event.objects.select_related("workspace").filter(mine)
    if stream:
        found = found.filter(stream=stream)
    if kind:
        found = found.filter(kind=kind)
    return found
