"""The end of an alert is told after its beginning, and never without it: of each alert and receiver."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from streams import webhooks
from streams.models import AlertRule, Notification
from streams.services.alerts import alert_begin, alert_end
from streams.services.notifications import MOST_ATTEMPTS
from tests.findings import over
from tests.streams.api.conftest import Api
from tests.streams.api.notified import deliver
from tests.streams.test_webhooks import Receiver

pytestmark = pytest.mark.usefixtures("alone")

HOUR = timedelta(hours=1)


def made(owner: Api, **chosen: Any) -> AlertRule:
    rule = {"name": "lags", "stream": "orders*", "watch": "lag", "limit": 2}
    assert owner.post("alerts/rules/", rule | chosen).status_code == 201
    return AlertRule.objects.get(name="lags")


def begins(rule: AlertRule, number: int = 1) -> Any:
    return alert_begin(rule, value=3.0, finding=over("lag", 3.0, limit=2.0, stream=f"orders-{number}"))


def whats(hook: Receiver) -> list[Any]:
    """What was sent: of a digest the list of what it holds."""
    return [_short(json.loads(body)) for _, _, body in hook.taken]


def _short(sent: dict[str, Any]) -> Any:
    return [_short(each) for each in sent["messages"]] if sent["what"] == "digest" else sent["what"]


def test_an_end_waits_until_its_beginning_is_taken(owner: Api, hook: Receiver) -> None:
    alert = begins(made(owner, webhook_url=hook.url))
    hook.status = 503
    deliver()
    alert_end(alert)
    hook.status = 200
    deliver()
    assert whats(hook) == ["fired"], "its beginning is tried again later, and its end not before"
    deliver(after=HOUR)
    assert whats(hook) == ["fired", "fired", "ended"]
    assert not Notification.objects.filter(delivered_at=None).exists()


def test_what_fires_waits_for_no_other_alert(owner: Api, hook: Receiver) -> None:
    rule = made(owner, webhook_url=hook.url)
    first = begins(rule)
    hook.status = 503
    deliver()
    hook.status = 200
    alert_end(first)
    alert_end(begins(rule, 2))
    deliver()
    assert whats(hook) == ["fired", "fired", "ended"]
    assert {json.loads(body)["stream"] for _, _, body in hook.taken[1:]} == {"orders-2"}


def test_an_end_goes_into_no_digest_before_its_beginning_is_taken(owner: Api, hook: Receiver) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=1, most_minutes=1)
    alert = begins(rule)
    hook.status = 503
    deliver()
    alert_end(alert)
    alert_end(begins(rule, 2))
    hook.status = 200
    Notification.objects.filter(attempts=1).update(due_at=timezone.now() + 3 * HOUR)
    deliver()
    deliver(after=HOUR)
    assert whats(hook) == ["fired", ["fired", "ended"]]
    deliver(after=HOUR)
    assert len(hook.taken) == 2
    deliver(after=HOUR)
    deliver(after=HOUR)
    assert whats(hook)[2:] == ["fired", "ended"]


def test_what_could_not_be_told_is_not_told_to_be_over(owner: Api, hook: Receiver) -> None:
    alert = begins(made(owner, webhook_url=hook.url))
    hook.status = 503
    deliver()
    alert_end(alert)
    for _ in range(MOST_ATTEMPTS):
        deliver(after=2 * HOUR)
    hook.status = 200
    deliver(after=2 * HOUR)
    assert whats(hook) == ["fired"] * MOST_ATTEMPTS
    assert not Notification.objects.filter(due_at__isnull=False).exists()


def test_each_receiver_is_told_of_what_it_was_told_that_it_began(owner: Api, hook: Receiver) -> None:
    alert = begins(made(owner, webhook_url=hook.url))
    deliver()
    owner.patch("alerts/rules/lags", {"email": "late@example.org"})
    alert.rule.refresh_from_db()
    alert_end(alert)
    deliver()
    assert (whats(hook), mail.outbox) == (["fired", "ended"], [])


def test_what_one_receiver_never_heard_is_withdrawn_in_a_mute_for_it_alone(
    owner: Api, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = begins(made(owner, webhook_url=hook.url, email="night@example.org"))
    Notification.objects.filter(channel="email").update(due_at=timezone.now() + HOUR)
    deliver()
    owner.patch("alerts/rules/lags", {"muted_until": (timezone.now() + HOUR).isoformat()})
    alert.rule.refresh_from_db()
    alert_end(alert)
    owner.patch("alerts/rules/lags", {"muted_until": None})
    deliver(after=HOUR)
    assert (whats(hook), mail.outbox) == (["fired", "ended"], [])


@pytest.mark.parametrize("status", [200, 503])
def test_who_may_have_heard_of_a_beginning_hears_of_its_end_though_it_ended_in_a_mute(
    owner: Api, hook: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    alert = begins(made(owner, webhook_url=hook.url))
    post = webhooks.post

    def mute_and_end_meanwhile(*args: Any, **options: Any) -> None:
        sent: Callable[..., None] = post
        owner.patch("alerts/rules/lags", {"muted_until": (timezone.now() + HOUR).isoformat()})
        alert.rule.refresh_from_db()
        alert_end(alert)
        sent(*args, **options)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(webhooks, "post", mute_and_end_meanwhile)
        hook.status = status
        deliver()
    hook.status = 200
    owner.patch("alerts/rules/lags", {"muted_until": None})
    deliver(after=HOUR)
    assert whats(hook) == ["fired", *(["fired"] if status == 503 else []), "ended"]
