"""Alert rules and what they found: the values that they watch now."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery, Value, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from streams import bearer, webhooks
from streams.access import Caller
from streams.alarms import FALLS, Limit
from streams.findings import InStatus
from streams.models import Alert, AlertRule, Notification
from streams.selectors.groups import GroupView
from streams.selectors.narrowing import inside
from streams.selectors.paging import Numbered
from streams.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule, and the last try at each of its receivers that there was one at; ``together`` says of how many.

    ``webhook_url`` is whole for who may change the rule, and shortened for others.
    """

    rule: AlertRule
    deliveries: list[Notification]
    webhook_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHoldings:
    """What goes with a rule: its alerts, notifications that were not taken yet, what signs its webhooks."""

    firing: int
    resolved: int
    waiting: int
    has_secret: bool

    @property
    def alerts(self) -> int:
        return self.firing + self.resolved


@dataclass(frozen=True, slots=True)
class AlertView:
    """What fired, and the last try at each receiver to tell of it, or that it is held back."""

    alert: Alert
    deliveries: list[Notification]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPage(Numbered):
    """Some of the alerts, in order."""

    alerts: list[AlertView]
    number: int
    size: int
    total: int

    @property
    def shown(self) -> int:
        return len(self.alerts)


@dataclass(frozen=True, slots=True)
class Firing:
    """How many alerts fire by rules that are not muted; ``mark`` differs once others fire, or a rule is muted."""

    loud: int = 0
    mark: str = ""


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


def in_status(stream: str, group: str, verdict: Verdict) -> InStatus:
    """That a group has a status, and why, as an alert on it says it."""
    return InStatus(stream=stream, group=group, status=verdict.status, text=verdict.text, why=verdict.why)


def alerts_page(caller: Caller, *, firing: bool, number: int = 1, size: int) -> AlertPage:
    """A page of what fires now, by when it began, or of what is resolved, by when it ended; the newest first.

    Past the last page it is the last one.
    """
    found = _alerts_of(caller).filter(ended_at__isnull=firing)
    total = found.count()
    number = max(1, min(number, -(-total // size)))
    ordered = found.order_by(*(("-began_at", "-pk") if firing else ("-ended_at", "-pk")))
    shown = _with_deliveries(caller, ordered[(number - 1) * size : number * size])
    return AlertPage(alerts=shown, number=number, size=size, total=total)


def firing_by_workspace() -> dict[int, Firing]:
    """What fires now in each workspace where something does."""
    return _firing(Alert.objects.all())


def firing_for(caller: Caller) -> Firing:
    """What fires now in the caller's workspace; for a narrowed caller, about its streams."""
    return _firing(_alerts_of(caller)).get(caller.workspace.pk, Firing())


def _firing(alerts: QuerySet[Alert]) -> dict[int, Firing]:
    loud = Count("pk", filter=~Q(rule__muted_until__gt=timezone.now()))
    found = alerts.filter(ended_at=None).order_by().values_list("rule__workspace_id")
    return {
        workspace_id: Firing(loud, f"{every} {loud} {newest}")
        for workspace_id, every, loud, newest in found.annotate(
            every=Count("pk"), loud=loud, newest=Max("pk")
        )
    }


def alerts_latest(
    caller: Caller, *, firing: bool | None = None, after: int | None = None, limit: int
) -> tuple[list[AlertView], bool]:
    """What fired last, the newest first, and whether there is more; for a narrowed caller, about its streams.

    Args:
        firing: what fires only, or what is resolved only.
        after: an alert's id: those before it.
    """
    found = _alerts_of(caller).order_by("-pk")
    if firing is not None:
        found = found.filter(ended_at__isnull=firing)
    if after is not None:
        found = found.filter(pk__lt=after)
    views = _with_deliveries(caller, found[: limit + 1])
    return views[:limit], len(views) > limit


def _alerts_of(caller: Caller) -> QuerySet[Alert]:
    found = Alert.objects.filter(rule__workspace=caller.workspace)
    return found.filter(inside(caller.streams, "stream")) if caller.streams else found


def rule_view(caller: Caller, rule: AlertRule) -> RuleView:
    """A rule with the last tries at its receivers, as a caller may see it."""
    return _rule_views(caller, [rule])[0]


def rule_holdings(rule: AlertRule) -> RuleHoldings:
    """What a rule has that goes with it."""
    alerts = rule.alerts.aggregate(firing=Count("pk", filter=Q(ended_at=None)), every=Count("pk"))
    waiting = Notification.objects.filter(alert__rule=rule, due_at__isnull=False)
    return RuleHoldings(
        firing=alerts["firing"],
        resolved=alerts["every"] - alerts["firing"],
        waiting=waiting.count(),
        has_secret=bool(rule.webhook_secret),
    )


def rules_of(caller: Caller) -> list[RuleView]:
    """The rules by name; for a narrowed caller, those that reach no further than it does."""
    rules = AlertRule.objects.filter(workspace=caller.workspace)
    return _rule_views(caller, [rule for rule in rules if caller.reaches((rule.stream,))])


def webhook_url_for(caller: Caller, rule: AlertRule) -> str:
    """Where a rule posts to; for who may not change the rule, shortened."""
    return rule.webhook_url if caller.may_change_rules else webhooks.shortened(rule.webhook_url)


def _rule_views(caller: Caller, rules: list[AlertRule]) -> list[RuleView]:
    found = Notification.objects.filter(alert__rule__in=rules, tried_at__isnull=False)
    tried = _last_tries(caller, found, each="alert__rule_id")
    return [
        RuleView(
            rule,
            [each for each in tried[rule.pk] if each.channel in rule.channels],
            webhook_url_for(caller, rule),
        )
        for rule in rules
    ]


def _with_deliveries(caller: Caller, found: QuerySet[Alert]) -> list[AlertView]:
    alerts = list(found.select_related("rule"))
    is_held_back = Q(attempts=0, due_at__gt=timezone.now())
    found_or_held = Notification.objects.filter(Q(tried_at__isnull=False) | is_held_back, alert__in=alerts)
    tried = _last_tries(caller, found_or_held, each="alert_id")
    return [AlertView(alert, tried[alert.pk]) for alert in alerts]


def _others(first: str) -> Coalesce:
    """How many are told with the first of them, apart from it."""
    of_it = Notification.objects.filter(told_with=OuterRef(first)).order_by().values("told_with")
    return Coalesce(Subquery(of_it.annotate(count=Count("pk")).values("count")), 0)


def _last_tries(
    caller: Caller, notifications: QuerySet[Notification], *, each: str
) -> dict[int, list[Notification]]:
    """Of each what was tried last, a row a channel.

    A narrowed caller is not told how many went together: they may be about other streams.
    """
    together = Value(1) if caller.streams else _others("pk") + _others("told_with") + 1
    newest_first = Window(
        RowNumber(),
        partition_by=[F(each), F("channel")],
        order_by=[Coalesce("tried_at", "created_at").desc(), F("pk").desc()],
    )
    ranked = notifications.annotate(of=F(each), rank=newest_first, together=together)
    found: dict[int, list[Notification]] = defaultdict(list)
    for tried in ranked.filter(rank=1).order_by("-channel"):
        found[tried.of].append(tried)
    return found
