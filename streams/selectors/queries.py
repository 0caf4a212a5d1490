"""Queries that were asked, and those that are kept."""

from django.db.models import QuerySet

from streams.access import Caller
from streams.models import Query, SavedQuery


def queries_latest(caller: Caller, *, limit: int = 20) -> list[Query]:
    """The newest queries of the workspace that a caller may see, without their answers."""
    found: QuerySet[Query] = Query.objects.filter(workspace=caller.workspace).defer("rows", "columns")
    newest = found.order_by("-id")[: limit if not caller.streams else 500]
    wanted = sorted(caller.streams)
    return [query for query in newest if not wanted or sorted(query.streams) == wanted][:limit]


def queries_saved(caller: Caller) -> list[SavedQuery]:
    """The saved queries of the workspace, by name; none for a narrowed caller, as they may name any stream."""
    if caller.streams:
        return []
    return list(SavedQuery.objects.filter(workspace=caller.workspace).order_by("name"))
