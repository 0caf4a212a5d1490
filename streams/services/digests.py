"""Notifications that are told together: a rule may bound how many messages its receivers get in some minutes.

Within the bound each goes by itself. What comes more is held back until there is room again, and then is one message, a
digest (``docs/adr/0043-what-comes-more-is-told-together.md``). Who waits and what goes together is in the database, so
another worker goes on with it.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from streams.models import AlertRule, Notification
from streams.services.summaries import counted, listed

MOST_TOGETHER = 200
"""Notifications in one digest; what is left waits for the next."""

WORDS = {"fired": "is firing", "ended": "is resolved", "test": "is being tested"}


def free_at(notification: Notification) -> datetime | None:
    """Until when the bound of its rule holds a notification back; None: it may be told now.

    Each message that was tried within the minutes counts, taken or not, so that a receiver that is away gets no more
    of them when it is back.
    """
    rule = notification.alert.rule
    if rule.most_messages is None:
        return None
    window = timedelta(minutes=rule.most_minutes)
    tried = _to_receiver_of(notification).filter(
        told_with=None, attempts__gt=0, tried_at__gt=timezone.now() - window
    )
    others = tried.exclude(pk=notification.pk).order_by("-tried_at")
    newest = list(others.values_list("tried_at", flat=True)[: rule.most_messages])
    return newest[-1] + window if len(newest) == rule.most_messages and newest[-1] else None


def hold_back(notification: Notification, *, until: datetime) -> None:
    """Let it wait, and with it what of its rule is for the same receiver and was not tried yet."""
    now = timezone.now()
    alike = Q(alert__rule=notification.alert.rule, channel=notification.channel, attempts=0)
    of_it = Q(pk=notification.pk) | Q(told_with=notification) | alike & Q(told_with=None)
    Notification.objects.filter(of_it, due_at__lte=now).update(due_at=until)


@transaction.atomic
def together_with(notification: Notification) -> list[Notification]:
    """What is told in one message, in the order in which it came; the first one names the message.

    That is fixed before it is tried, so that each try tells the same: what is not tried yet goes together where some of
    it was held back.
    """
    members = [notification, *_held_by(notification)]
    if notification.alert.rule.most_messages is None or notification.attempts or len(members) > 1:
        return members
    waiting = list(
        _to_receiver_of(notification)
        .filter(
            ~Exists(Notification.objects.filter(told_with=OuterRef("pk"))),
            alert__rule__most_messages__isnull=False,
            told_with=None,
            attempts=0,
            due_at__isnull=False,
        )
        .exclude(alert__rule__muted_until__gt=timezone.now())
        .select_related("alert__rule__workspace")
        .order_by("pk")[:MOST_TOGETHER]
    )
    waiting = _after_what_comes_first(waiting)
    if len(waiting) < 2 or not any(_was_held_back(each) for each in waiting):
        return members
    first, *others = waiting
    first.due_at = timezone.now()
    Notification.objects.filter(pk__in=[each.pk for each in waiting]).update(due_at=first.due_at)
    Notification.objects.filter(pk__in=[each.pk for each in others]).update(told_with=first)
    return waiting


def take_apart(waiting: QuerySet[Notification]) -> None:
    """Take what waits out of the messages in which it was to be told: it, and what was to go behind it, goes anew."""
    ids = list(waiting.filter(told_with__isnull=False).values_list("pk", flat=True))
    firsts = list(waiting.filter(others__due_at__isnull=False).values_list("pk", flat=True))
    of_them = Q(pk__in=[*ids, *firsts]) | Q(told_with__in=firsts)
    Notification.objects.filter(of_them, due_at__isnull=False).update(
        told_with=None, attempts=0, due_at=timezone.now()
    )


def let_go(rule: AlertRule) -> None:
    """What a rule held back is looked at again by its bound of now."""
    held = Notification.objects.filter(alert__rule=rule, attempts=0, due_at__gt=timezone.now())
    held.update(due_at=timezone.now())


def body_of(members: Sequence[Notification]) -> str:
    """What is sent, as JSON text: of one its own words, of several a digest with the words of each."""
    first = members[0]
    if len(members) == 1:
        return first.body
    messages = [json.loads(each.body) for each in members]
    rules = list(dict.fromkeys(each["rule"] for each in messages))
    how = [
        f"{number} {words}"
        for number, words in (
            (sum(each["what"] == "fired" for each in messages), "began"),
            (sum(each["what"] == "ended" for each in messages), "ended"),
        )
        if number
    ]
    told = {
        "what": "digest",
        "rule": first.alert.rule.name,
        "workspace": first.alert.rule.workspace.name,
        "sentence": f"{counted(len(messages))} of {listed(rules)}, sent together: {listed(how)}.",
        "messages": messages,
    }
    return json.dumps(told)


def mail_of(told: dict[str, Any]) -> tuple[str, str]:
    """The subject and the text of an e-mail that tells it."""
    if told["what"] == "digest":
        lines = [_line(each) for each in told["messages"]]
        subject = f"{len(lines)} notifications in one"
        text = "\n".join([told["sentence"], "", *lines, "", f"Workspace {told['workspace']}."])
    else:
        since = f", since {told['began_at']}" if told["began_at"] else ""
        subject = f"{told['rule']} {WORDS[told['what']]}"
        text = f"{told['sentence']}\n\nRule {told['rule']} of workspace {told['workspace']}{since}."
    return f"[OKMQ {told['workspace']}] {subject}", f"{text}\n"


def _line(each: dict[str, Any]) -> str:
    if each["what"] == "ended":
        return f"{each['ended_at']}  {each['rule']} was resolved, firing since {each['began_at']}: {each['sentence']}"
    return f"{each['began_at']}  {each['rule']} {WORDS[each['what']]}: {each['sentence']}"


def _to_receiver_of(notification: Notification) -> QuerySet[Notification]:
    """All that the receiver of a notification got or will get of its workspace, by whichever rule."""
    rule = notification.alert.rule
    to = (
        {"alert__rule__webhook_url": rule.webhook_url}
        if notification.channel == "webhook"
        else {"alert__rule__email": rule.email}
    )
    return Notification.objects.filter(
        alert__rule__workspace=rule.workspace, channel=notification.channel, **to
    )


def _held_by(notification: Notification) -> list[Notification]:
    """What goes with it, in order."""
    members = Notification.objects.filter(told_with=notification, due_at__isnull=False)
    return list(members.select_related("alert__rule__workspace").order_by("pk"))


def _after_what_comes_first(waiting: Sequence[Notification]) -> list[Notification]:
    """Without the end of an alert whose beginning is in another message, which has to be taken first."""
    alerts = {each.alert_id for each in waiting}
    untold: dict[int, set[int]] = defaultdict(set)
    for pk, alert_id in Notification.objects.filter(
        alert__in=alerts, channel__in={each.channel for each in waiting}, delivered_at=None
    ).values_list("pk", "alert_id"):
        untold[alert_id].add(pk)
    kept: dict[int, Notification] = {}
    for each in waiting:
        if all(pk >= each.pk or pk in kept for pk in untold[each.alert_id]):
            kept[each.pk] = each
    return list(kept.values())


def _was_held_back(notification: Notification) -> bool:
    """Whether it was put off after it was made, to be tried at once."""
    return notification.due_at is not None and notification.due_at > notification.created_at
