"""Alerts: rules made, changed, muted, deleted; an alert that begins or ends is recorded and told to whom it is for."""

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from streams import durations, webhooks
from streams.access import SYSTEM, Actor
from streams.alarms import FALLS
from streams.errors import Refusal
from streams.findings import Finding, kept
from streams.models import Alert, AlertRule, Notification, Workspace
from streams.services import digests
from streams.services.events import event_record
from streams.services.notifications import moment, notifications_make, notifications_readdress
from streams.services.summaries import listed

SETTINGS = (
    "stream",
    "group",
    "watch",
    "statuses",
    "limit",
    "clear",
    "for_seconds",
    "muted_until",
    "mute_reason",
    "webhook_url",
    "webhook_format",
    "email",
    "most_messages",
    "most_minutes",
    "enabled",
)
HOW_TOLD = {
    *("muted_until", "mute_reason", "webhook_url", "webhook_format", "email", "most_messages", "most_minutes")
}
"""What changes nothing of what fires."""
OF_STREAMS = frozenset({"rate_above", "rate_below"})
MOST_RULES = 200
KEPT = timedelta(days=30)
"""Ended alerts are forgotten after so long; their events stay."""


class RuleMoved(Exception):
    """A rule was changed since whoever wants to change it looked at it; nothing was done."""


def rule_check(rule: AlertRule) -> None:
    """Refuse what could never fire, or never be told.

    Raises:
        Refusal: ``validation_error``, naming the field.
    """
    if rule.watch == "status":
        if not rule.statuses:
            raise _invalid("statuses", "Specify which statuses are bad.")
        if rule.limit is not None or rule.clear is not None:
            raise _invalid("limit", "A status has no limit.")
    else:
        if rule.statuses:
            raise _invalid("statuses", "Only the watch 'status' takes them.")
        if rule.limit is None:
            raise _invalid("limit", f"The watch {rule.watch!r} needs a limit.")
        falls = rule.watch in FALLS
        if rule.clear is not None and (rule.clear < rule.limit if falls else rule.clear > rule.limit):
            raise _invalid("clear", "It must not be on the bad side of the limit.")
    if rule.watch in OF_STREAMS and rule.group:
        raise _invalid("group", "A rate is per stream; leave out the group.")
    if rule.webhook_url and (fault := webhooks.url_fault(rule.webhook_url)):
        raise _invalid("webhook_url", fault)
    if rule.mute_reason and rule.muted_until is None:
        raise _invalid("mute_reason", "Specify until when it is muted as well.")
    if rule.email and not _can_mail():
        raise _invalid("email", "This installation has no mail server (OKMQ_MAIL_URL).")


@transaction.atomic
def rule_create(workspace: Workspace, *, name: str, settings: Mapping[str, Any], actor: Actor) -> AlertRule:
    """Make a rule; what it watches begins to be watched within ten seconds.

    Raises:
        Refusal: ``alert_rule_exists``, or ``validation_error`` as ``rule_check``.
    """
    rule = AlertRule(workspace=workspace, name=name, **settings)
    rule_check(rule)
    _webhook_check(rule)
    if AlertRule.objects.filter(workspace=workspace, name=name).exists():
        raise Refusal("alert_rule_exists", f"Alert rule {name!r} already exists.", rule=name)
    if AlertRule.objects.filter(workspace=workspace).count() >= MOST_RULES:
        raise Refusal(
            "quota_exceeded", f"A workspace has at most {MOST_RULES} alert rules.", rules=MOST_RULES
        )
    if rule.webhook_url:
        rule.webhook_secret = f"whsec_{secrets.token_urlsafe(32)}"
    rule.save(force_insert=True)
    _recorded(rule, "created", actor=actor, after=_plain(_held(rule)))
    return rule


@transaction.atomic
def rule_change(
    rule: AlertRule, *, changes: Mapping[str, Any], actor: Actor, as_of: datetime | None = None
) -> AlertRule:
    """Change a rule; what fires by it ends, which is told, and is judged anew. A first webhook gets its secret now.

    A new receiver is tried at once with what the one before has not taken yet.

    Args:
        as_of: its ``updated_at`` when it was looked at.

    Raises:
        RuleMoved: it is another by now.
    """
    rule = AlertRule.objects.select_for_update().select_related("workspace").get(pk=rule.pk)
    if as_of is not None and rule.updated_at != as_of:
        raise RuleMoved
    before, webhook_url, email = _held(rule), rule.webhook_url, rule.email
    if "muted_until" in changes:
        rule.mute_reason = ""
    for field, value in changes.items():
        setattr(rule, field, value)
    rule_check(rule)
    if rule.webhook_url != webhook_url:
        _webhook_check(rule)
        notifications_readdress(rule, "webhook")
    if rule.email != email:
        notifications_readdress(rule, "email")
    if rule.webhook_url and not rule.webhook_secret:
        rule.webhook_secret = f"whsec_{secrets.token_urlsafe(32)}"
    rule.save()
    after = _held(rule)
    changed = [field for field in SETTINGS if before[field] != after[field]]
    if changed:
        _recorded(
            rule,
            "changed",
            f": {listed(changed)}",
            actor=actor,
            before=_plain({field: before[field] for field in changed}),
            after=_plain({field: after[field] for field in changed}),
        )
    if {"most_messages", "most_minutes"} & set(changed):
        digests.let_go(rule)
    if rule.is_muted:
        digests.take_apart(Notification.objects.filter(alert__rule=rule, due_at__isnull=False))
    if set(changed) - HOW_TOLD:
        _end_all(rule, why="its rule was changed")
    return rule


@transaction.atomic
def rule_delete(rule: AlertRule, *, actor: Actor) -> None:
    """Delete a rule with its alerts; the events stay, and say that what fired by it is over."""
    before = _plain(_held(rule))
    _end_all(rule, why="its rule was deleted")
    rule.delete()
    _recorded(rule, "deleted", actor=actor, before=before)


@transaction.atomic
def alert_begin(rule: AlertRule, *, value: float, finding: Finding) -> Alert:
    """Record that a rule fires, and tell it; while the rule is muted, once it is heard again."""
    now, sentence, figures = timezone.now(), finding.words(), kept(finding)
    alert = Alert.objects.create(
        rule=rule,
        stream=finding.stream,
        group=finding.group,
        began_at=now,
        value=value,
        sentence=sentence,
        began_with=figures,
        newest=figures,
        newest_at=now,
    )
    event_record(
        rule.workspace,
        kind="alert.fired",
        actor=SYSTEM,
        stream=finding.stream,
        group=finding.group,
        after={"rule": rule.name, "value": value},
        summary=f"Alert {rule.name} fired: {sentence}",
    )
    if not rule.is_muted:
        notifications_make(alert, "fired")
    return alert


def alerts_evaluated(found: Iterable[tuple[Alert, Finding]]) -> None:
    """Keep the newest figures of what goes on firing, in one statement for some hundred of them."""
    now, alerts = timezone.now(), []
    for alert, finding in found:
        alert.newest, alert.newest_at = kept(finding), now
        alerts.append(alert)
    Alert.objects.bulk_update(alerts, ["newest", "newest_at"], batch_size=200)


def _end_all(rule: AlertRule, *, why: str) -> None:
    for alert in rule.alerts.filter(ended_at=None):
        alert_end(alert, why=why)


@transaction.atomic
def alert_end(alert: Alert, *, why: str = "") -> None:
    """Record that it is over, and tell those who were told that it began, once the rule is not muted.

    Args:
        why: what ended it, where that is not what is watched.
    """
    now = timezone.now()
    if not Alert.objects.filter(pk=alert.pk, ended_at=None).update(ended_at=now):
        return  # somebody else ended it meanwhile, and told that
    alert.ended_at = now
    rule = alert.rule
    lasted = round((now - alert.began_at).total_seconds())
    over = f"was resolved after {durations.written(lasted)}" + (f", because {why}" if why else "")
    event_record(
        rule.workspace,
        kind="alert.ended",
        actor=SYSTEM,
        stream=alert.stream,
        group=alert.group,
        after={"rule": rule.name, "seconds": lasted},
        summary=f"Alert {rule.name} {over}: {alert.sentence}",
    )
    if rule.is_muted:
        alert.notifications.filter(tried_at=None).delete()  # nobody needs to hear of what came and went
    notifications_make(alert, "ended")


@transaction.atomic
def alerts_tell_unheard() -> None:
    """Tell what fires and began while its rule was muted, now that it is heard again."""
    firing = Alert.objects.filter(ended_at=None, notifications=None, rule__enabled=True)
    for alert in firing.exclude(rule__muted_until__gt=timezone.now()).select_related("rule__workspace"):
        notifications_make(alert, "fired")


def alerts_forget() -> None:
    """Forget alerts that ended long ago."""
    Alert.objects.filter(ended_at__lt=timezone.now() - KEPT).delete()


def _webhook_check(rule: AlertRule) -> None:
    """Refuse what the sender would refuse without asking anybody; a rule that has it already can still be changed."""
    fault = webhooks.literal_fault(rule.webhook_url, allow_private=settings.ENV.webhook_private)
    if fault:
        raise _invalid(
            "webhook_url", f"{fault} This installation sends only to public ones (OKMQ_WEBHOOK_PRIVATE)."
        )


def _can_mail() -> bool:
    is_smtp = settings.EMAIL_BACKEND == "django.core.mail.backends.smtp.EmailBackend"
    return bool(settings.EMAIL_HOST) or not is_smtp


def _held(rule: AlertRule) -> dict[str, Any]:
    found: dict[str, Any] = {field: getattr(rule, field) for field in SETTINGS}
    if rule.muted_until is not None:
        found["muted_until"] = moment(rule.muted_until)
    return found


def _plain(held: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as an event keeps them, for everybody who may read: of an address what names its receiver."""
    shown = {"webhook_url": webhooks.shortened(held["webhook_url"])} if "webhook_url" in held else {}
    return {**held, **shown}


def _recorded(rule: AlertRule, what: str, how: str = "", *, actor: Actor, **sides: dict[str, Any]) -> None:
    told = {side: {"rule": rule.name, **held} for side, held in sides.items()}
    event_record(
        rule.workspace,
        kind=f"alert_rule.{what}",
        actor=actor,
        before=told.get("before"),
        after=told.get("after"),
        summary=f"Alert rule {rule.name} was {what}{how}.",
    )


def _invalid(field: str, sentence: str) -> Refusal:
    return Refusal("validation_error", f"{field}: {sentence}", fields=[field])
