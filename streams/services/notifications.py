"""What alerts tell their receivers: made, sent by webhook or e-mail, tried again; and a test of it.

Which of it is sent when is the matter of ``streams.services.dispatch``.
"""

import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from streams import webhooks
from streams.access import SYSTEM, Actor
from streams.errors import Refusal
from streams.models import Alert, AlertRule, Notification
from streams.services import digests, webhook_formats
from streams.services.events import event_record
from streams.webhooks import WebhookRefused

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 12
FIRST_RETRY_S, LONGEST_RETRY_S = 10, 3600
BEFORE = Notification.objects.filter(
    alert=OuterRef("alert"), channel=OuterRef("channel"), pk__lt=OuterRef("pk"), delivered_at=None
)
"""What the same receiver has not taken of the same alert, though it comes first: of an end its beginning."""
_testing = threading.BoundedSemaphore(4)
"""Who tests waits for the receiver, which may take its time: so many in this process at once."""


@dataclass(frozen=True, slots=True)
class Tested:
    """How one receiver took a test: ``webhook`` or ``email``, and what went wrong in a sentence, or nothing."""

    channel: str
    error: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one try to send a message ended: what went wrong in a sentence, or nothing, and how long it took."""

    error: str
    took_s: float


def rule_test(rule: AlertRule, *, actor: Actor) -> list[Tested]:
    """Tell each receiver of a rule that this is a test: signed, checked and given ten seconds as what fires is, once.

    A mute holds it back from nobody, as somebody asked for it.

    Raises:
        Refusal: ``validation_error`` where the rule tells nobody, ``rate_limited`` while others wait for theirs.
    """
    if not rule.channels:
        sentence = "webhook_url: The rule notifies no one; set a webhook or an e-mail address first."
        raise Refusal("validation_error", sentence, fields=["webhook_url"])
    if not _testing.acquire(blocking=False):
        raise Refusal(
            "rate_limited",
            "Several tests are waiting for their receivers; try again in a few seconds.",
            headers={"Retry-After": "5"},
        )
    try:
        tested = [Tested(channel, _tested(rule, channel)) for channel in rule.channels]
    finally:
        _testing.release()
    how = [
        f"The {each.channel} did not accept it: {each.error}"
        if each.error
        else f"The {each.channel} accepted it."
        for each in tested
    ]
    event_record(
        rule.workspace,
        kind="alert_rule.tested",
        actor=actor,
        after={"rule": rule.name, **{each.channel: each.error[:500] or "taken" for each in tested}},
        summary=f"Alert rule {rule.name} was tested. {' '.join(how)}"[:500],
    )
    return tested


def _tested(rule: AlertRule, channel: str) -> str:
    """Why a receiver did not take a test, or nothing."""
    sentence = f"This is a test of the rule {rule.name}: nothing has happened."
    body = json.dumps(_told(rule, "test", stream=rule.stream, group=rule.group, sentence=sentence))
    try:
        _send(rule, channel, body, delivery=f"test-{uuid4()}")
    except (WebhookRefused, OSError) as error:
        return str(error) or type(error).__name__
    return ""


def notifications_readdress(rule: AlertRule, channel: str) -> None:
    """What waits for a receiver that was changed goes to the new one at once, or to nobody."""
    waiting = Notification.objects.filter(alert__rule=rule, channel=channel, due_at__isnull=False)
    digests.take_apart(waiting)
    if channel in rule.channels:
        waiting.update(due_at=timezone.now(), attempts=0)
    else:
        waiting.delete()


def notifications_due(by: datetime | None = None) -> QuerySet[Notification]:
    """The messages that are due by a time, or now, and may be sent; of a digest the first of it.

    What is due of a muted rule waits until it is heard again. The end of an alert waits until its beginning is taken,
    and goes with it where that is given up.
    """
    now = timezone.now()
    due = Notification.objects.filter(~Exists(BEFORE), due_at__lte=by or now, told_with=None)
    return due.exclude(alert__rule__muted_until__gt=now)


def ends_withdraw() -> None:
    """Who could not be told that an alert began is not told that it ended."""
    untold = Notification.objects.filter(Exists(BEFORE.filter(due_at=None)), due_at__isnull=False)
    if untold.exists():  # nothing waits for the database where there is nothing to delete, as nearly always
        untold.delete()


def attempt_begin(members: Sequence[Notification]) -> bool:
    """Note that what goes in one message is tried; not where it was withdrawn or readdressed meanwhile.

    It is on record before, as from then on its receiver may have heard of it.
    """
    first = members[0]
    first.attempts += 1
    first.tried_at = timezone.now()
    return _tried(first, due_at=first.due_at, error=first.error)


def attempt(members: Sequence[Notification]) -> Attempt:
    """Send one message; without the database, so that any thread can."""
    first, began_s = members[0], time.monotonic()
    error = ""
    try:
        _send(first.alert.rule, first.channel, digests.body_of(members), delivery=str(first.pk))
    except (WebhookRefused, OSError) as refused:
        error = str(refused) or type(refused).__name__
    except Exception as fault:
        log.exception("An alert could not be sent.")
        error = type(fault).__name__
    return Attempt(error, time.monotonic() - began_s)


def attempt_end(members: Sequence[Notification], how: Attempt) -> None:
    """Note how it ended; what fails is tried again later, ever more seldom."""
    if how.error:
        _failed(members, how.error)
    else:
        _tried(members[0], due_at=None, delivered_at=timezone.now())


def _send(rule: AlertRule, channel: str, body: str, *, delivery: str) -> None:
    if channel == "webhook":
        webhooks.post(
            rule.webhook_url,
            webhook_formats.shaped(body, rule.webhook_format).encode(),
            secret=rule.webhook_secret,
            timestamp=int(timezone.now().timestamp()),
            delivery=delivery,
            allow_private=settings.ENV.webhook_private,
        )
        return
    subject, text = digests.mail_of(json.loads(body))
    send_mail(subject, text, None, [rule.email])


def _failed(members: Sequence[Notification], why: str) -> None:
    first = members[0]
    wait_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** (first.attempts - 1))
    is_last = first.attempts >= MOST_ATTEMPTS
    due_at = None if is_last else timezone.now() + timedelta(seconds=wait_s)
    if _tried(first, due_at=due_at, error=why[:500]) and is_last:
        ends_withdraw()
        for each in members:
            alert = each.alert
            event_record(
                alert.rule.workspace,
                kind="alert.not_told",
                actor=SYSTEM,
                stream=alert.stream,
                group=alert.group,
                after={"rule": alert.rule.name, "channel": each.channel, "error": why[:500]},
                summary=f"Alert {alert.rule.name} could not be sent by {each.channel}: {why[:200]}",
            )


def _tried(
    notification: Notification,
    *,
    due_at: datetime | None,
    delivered_at: datetime | None = None,
    error: str = "",
) -> bool:
    """Keep that it is tried, or how that ended, of all that is told with it, too; whether it was kept.

    It is not where its receiver was changed meanwhile, whose turn it is then.
    """
    how = {
        "attempts": notification.attempts,
        "tried_at": notification.tried_at,
        "due_at": due_at,
        "delivered_at": delivered_at,
        "error": error,
    }
    with transaction.atomic():
        unchanged = Notification.objects.filter(pk=notification.pk, due_at=notification.due_at)
        if not unchanged.update(**how):
            return False
        Notification.objects.filter(told_with=notification, due_at__isnull=False).update(**how)
    return True


def notifications_make(alert: Alert, what: str) -> None:
    """What each receiver of an alert's rule is to be told of it: that it ``fired``, or ``ended``.

    That it ended is for those who were told that it began, or still will be.
    """
    rule = alert.rule
    told = _told(rule, what, stream=alert.stream, group=alert.group, sentence=alert.sentence) | {
        "alert": alert.pk,
        "value": alert.value,
        "began_at": moment(alert.began_at),
        "ended_at": None if alert.ended_at is None else moment(alert.ended_at),
    }
    channels = rule.channels
    if what == "ended":
        began = set(alert.notifications.values_list("channel", flat=True))
        channels = [channel for channel in channels if channel in began]
    Notification.objects.bulk_create(
        Notification(alert=alert, channel=channel, body=json.dumps(told), due_at=timezone.now())
        for channel in channels
    )


def _told(rule: AlertRule, what: str, *, stream: str, group: str, sentence: str) -> dict[str, Any]:
    """What a receiver is told, but for what an alert has: null in a test."""
    return {
        "what": what,
        "alert": None,
        "rule": rule.name,
        "workspace": rule.workspace.name,
        "stream": stream,
        "group": group or None,
        "watch": rule.watch,
        "value": None,
        "limit": rule.limit,
        "sentence": sentence,
        "began_at": None,
        "ended_at": None,
    }


def moment(at: datetime) -> str:
    """A time as receivers and events are told it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
