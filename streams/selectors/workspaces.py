"""Workspaces, and their tokens."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Count, Q, QuerySet

from streams import naming
from streams.access import Caller
from streams.errors import Refusal
from streams.models import DemoRun, Token, Workspace


def tokens_page(caller: Caller, *, workspace: Workspace, after: int, limit: int) -> tuple[list[Token], bool]:
    """A page of a workspace's tokens, oldest first, and whether there are more.

    A narrowed caller sees those that reach no further than itself.
    """
    found = Token.objects.select_related("workspace").filter(workspace=workspace, id__gt=after)
    seen = (token for token in found.order_by("id").iterator() if caller.reaches(token.streams))
    rows = list(islice(seen, limit + 1))
    return rows[:limit], len(rows) > limit


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """A workspace and how many streams it has."""

    name: str
    plan: str
    rate_limit: int | None
    rate_burst: int | None
    streams: int
    created_at: datetime


def workspaces_page(*, after: str, limit: int) -> tuple[list[WorkspaceView], bool]:
    """A page of all workspaces by name, and whether there are more."""
    rows = list(_workspaces_counted().filter(name__gt=after)[: limit + 1])
    return [_workspace_view(row) for row in rows[:limit]], len(rows) > limit


def workspace_view(workspace: Workspace) -> WorkspaceView:
    """One workspace with its count of streams."""
    return _workspace_view(_workspaces_counted().get(pk=workspace.pk))


def workspace_named(name: str) -> Workspace:
    """Raises Refusal ``workspace_not_found``."""
    found = Workspace.objects.filter(name=name).first() if naming.is_name(name) else None
    if found is None:
        raise Refusal("workspace_not_found", "There is no such workspace.", workspace=name)
    return found


def demo_of(workspace: Workspace) -> DemoRun | None:
    """The demonstration that is under way in a workspace."""
    return DemoRun.objects.select_related("stream").filter(stream__workspace=workspace).first()


def _workspaces_counted() -> QuerySet[Any]:
    return (
        Workspace.objects.alias()
        .annotate(stream_count=Count("streams", filter=Q(streams__internal=False)))
        .order_by("name")
    )


def _workspace_view(row: Any) -> WorkspaceView:
    return WorkspaceView(row.name, row.plan, row.rate_limit, row.rate_burst, row.stream_count, row.created_at)
