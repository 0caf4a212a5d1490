"""Retention policies, and how many streams use them."""

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from streams.access import Caller
from streams.models import Policy, Stream
from streams.selectors.narrowing import inside


def policies_page(caller: Caller, *, after: str, limit: int) -> tuple[list[Any], bool]:
    """A page of a workspace's policies by name, each with its ``stream_count``; and whether there are more.

    A narrowed caller sees those that its streams use.
    """
    found = _counted(caller).filter(workspace=caller.workspace, name__gt=after)
    if caller.streams:
        found = found.filter(stream_count__gt=0)
    rows = list(found.order_by("name")[: limit + 1])
    return rows[:limit], len(rows) > limit


def policy_names(caller: Caller) -> list[str]:
    """The names of the policies that a caller may see."""
    found = _counted(caller).filter(workspace=caller.workspace)
    if caller.streams:
        found = found.filter(stream_count__gt=0)
    return list(found.order_by("name").values_list("name", flat=True))


def policy_view(caller: Caller, policy: Policy) -> Any:
    """One policy with its ``stream_count``."""
    return _counted(caller).get(pk=policy.pk)


def _counted(caller: Caller) -> QuerySet[Any]:
    users = Stream.objects.filter(workspace=OuterRef("workspace"), policy=OuterRef("name"), internal=False)
    if caller.streams:
        users = users.filter(inside(caller.streams, "name"))
    counts = users.order_by().values("policy").annotate(count=Count("pk")).values("count")
    return Policy.objects.alias().annotate(
        stream_count=Coalesce(Subquery(counts, output_field=IntegerField()), 0)
    )
