"""Retention policies, and how many streams use them."""

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from streams.models import Policy, Stream, Workspace


def policies_page(workspace: Workspace, *, after: str, limit: int) -> tuple[list[Any], bool]:
    """A page of a workspace's policies by name, each with its ``stream_count``; and whether there are more."""
    rows = list(_counted().filter(workspace=workspace, name__gt=after).order_by("name")[: limit + 1])
    return rows[:limit], len(rows) > limit


def policy_view(policy: Policy) -> Any:
    """One policy with its ``stream_count``."""
    return _counted().get(pk=policy.pk)


def _counted() -> QuerySet[Any]:
    users = Stream.objects.filter(workspace=OuterRef("workspace"), policy=OuterRef("name"), internal=False)
    counts = users.order_by().values("policy").annotate(count=Count("pk")).values("count")
    return Policy.objects.alias().annotate(
        stream_count=Coalesce(Subquery(counts, output_field=IntegerField()), 0)
    )
