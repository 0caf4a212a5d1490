"""Alert rules and what they found: the values that they watch now."""

from django.utils import timezone

from streams import bearer
from streams.access import Caller
from streams.alarms import FALLS, Limit
from streams.models import Alert, AlertRule, Workspace
from streams.selectors.groups import GroupView
from streams.selectors.narrowing import inside


def limit_of(rule: AlertRule) -> Limit:
    """When a rule's value is bad, and when it is good again."""
    if rule.watch == "status":
        return Limit(limit=0.5, clear=0.5, for_s=rule.for_seconds)
    limit = rule.limit or 0.0
    clear = limit if rule.clear is None else rule.clear
    return Limit(limit=limit, clear=clear, for_s=rule.for_seconds, falls=rule.watch in FALLS)


def is_about(rule: AlertRule, stream: str, group: str = "") -> bool:
    """Whether a rule watches this stream, or this group of it."""
    if not bearer.streams_cover((rule.stream,), stream):
        return False
    return not group or not rule.group or bearer.streams_cover((rule.group,), group)


def value_of(rule: AlertRule, view: GroupView) -> float | None:
    """What a rule looks at, of a group now; None while it is not known."""
    state, health = view.state, view.health
    match rule.watch:
        case "status":
            return None if health.status == "unknown" else float(health.status in rule.statuses)
        case "lag":
            return float(state.lag)
        case "lag_seconds":
            return view.lag_seconds
        case "dead_letters":
            return float(state.dead_letters)
        case "no_consumer":
            since_ms = max(state.fetched_ms or 0, state.acked_ms or 0) or state.made_ms
            return 0.0 if view.waiting else None if since_ms is None else (state.steady_ms - since_ms) / 1000
        case "retention_edge":
            return float("inf") if view.edge_seconds is None else view.edge_seconds
        case _:
            return None


def alerts_firing(workspace: Workspace) -> list[Alert]:
    """What fires now, the newest first."""
    return list(Alert.objects.filter(rule__workspace=workspace, ended_at=None).select_related("rule")[:500])


def alerts_firing_count(workspace: Workspace) -> int:
    """How many alerts fire now by rules that are not muted."""
    firing = Alert.objects.filter(rule__workspace=workspace, ended_at=None)
    return firing.exclude(rule__muted_until__gt=timezone.now()).count()


def alerts_latest(caller: Caller, *, limit: int = 100) -> list[Alert]:
    """What fired last, the newest first; for a narrowed caller, about its streams."""
    found = Alert.objects.filter(rule__workspace=caller.workspace).select_related("rule")
    if caller.streams:
        found = found.filter(inside(caller.streams, "stream"))
    return list(found[:limit])


def rules_of(caller: Caller) -> list[AlertRule]:
    """The rules by name; for a narrowed caller, those that reach no further than it does."""
    rules = AlertRule.objects.filter(workspace=caller.workspace)
    return [rule for rule in rules if caller.reaches((rule.stream,))]
