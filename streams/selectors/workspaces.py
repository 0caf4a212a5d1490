"""Workspaces, and their tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Count, Q, QuerySet

from streams import naming
from streams.access import Caller
from streams.errors import Refusal
from streams.models import DemoRun, Token, Workspace
from streams.selectors.streams import streams_of


def tokens_of(caller: Caller, *, workspace: Workspace | None = None, after: int = 0) -> Iterator[Token]:
    """A workspace's tokens, by default the caller's, oldest first, those after an id.

    A narrowed caller sees those that reach no further than itself.
    """
    found = Token.objects.select_related("workspace").filter(
        workspace=workspace or caller.workspace, id__gt=after
    )
    return (token for token in found.order_by("id").iterator() if caller.reaches(token.streams))


def tokens_page(caller: Caller, *, workspace: Workspace, after: int, limit: int) -> tuple[list[Token], bool]:
    """A page of what ``tokens_of`` finds, and whether there are more."""
    rows = list(islice(tokens_of(caller, workspace=workspace, after=after), limit + 1))
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


def demo_of(caller: Caller) -> DemoRun | None:
    """The demonstration that is under way in a workspace, in a stream that the caller may see."""
    return DemoRun.objects.select_related("stream").filter(stream__in=streams_of(caller)).first()


def _workspaces_counted() -> QuerySet[Any]:
    return (
        Workspace.objects.alias()
        .annotate(stream_count=Count("streams", filter=Q(streams__internal=False)))
        .order_by("name")
    )


def _workspace_view(row: Any) -> WorkspaceView:
    return WorkspaceView(row.name, row.plan, row.rate_limit, row.rate_burst, row.stream_count, row.created_at)
