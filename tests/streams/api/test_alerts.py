"""Alert rules over HTTP, what fires by them, and how it is told."""

import dataclasses
import json
import re
import threading
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone

from streams import store, webhooks
from streams.log import groups, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import (
    DEFAULT_WORKSPACE,
    Alert,
    AlertRule,
    Event,
    Notification,
    Rollup,
    StandingRollup,
    Stream,
    Workspace,
)
from streams.services import notifications
from streams.services.dispatch import notifications_deliver
from streams.services.installation import METRICS_STREAM
from streams.services.streams import internal_stream
from streams.upkeep.alerting import Alerting
from streams.webhooks import WebhookRefused, signature
from tests.streams.api.conftest import Api, caller
from tests.streams.test_webhooks import Receiver, receiver  # noqa: F401

RULE: dict[str, Any] = {"name": "lags", "stream": "orders", "watch": "lag", "limit": 2, "for_seconds": 20}


@pytest.fixture(autouse=True)
def _alone(owner: Api) -> None:
    """No rule of another test is judged here, and nothing of it waits to be told."""
    AlertRule.objects.all().delete()


@pytest.fixture
def orders(owner: Api) -> Stream:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "billing"})
    return Stream.objects.get(workspace=owner.workspace, name="orders")


def publish(stream: Stream, *ids: int) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id=str(n), body=b"1") for n in ids]))


def firing() -> list[tuple[str, str, str]]:
    return [(each.rule.name, each.stream, each.group) for each in Alert.objects.filter(ended_at=None)]


def test_a_first_webhook_that_a_change_brings_tells_its_secret_once(owner: Api) -> None:
    owner.post("alerts/rules/", RULE)
    assert "webhook_secret" not in owner.patch("alerts/rules/lags", {"limit": 5}).json()
    changed = owner.patch("alerts/rules/lags", {"webhook_url": "https://example.org/hook"}).json()
    assert changed["webhook_secret"] == AlertRule.objects.get(workspace=owner.workspace).webhook_secret
    for change in ({"webhook_url": "https://example.org/other"}, {"limit": 6}):
        assert "webhook_secret" not in owner.patch("alerts/rules/lags", change).json()


def test_a_rule_is_made_seen_changed_and_deleted(owner: Api) -> None:
    made = owner.post("alerts/rules/", RULE | {"webhook_url": "https://example.org/hook"})
    assert made.status_code == 201
    assert made.json()["webhook_secret"].startswith("whsec_")
    assert "webhook_secret" not in owner.get("alerts/rules/lags").json()
    assert owner.patch("alerts/rules/lags", {"limit": 5}).json()["limit"] == 5
    assert [rule["name"] for rule in owner.get("alerts/rules/").json()] == ["lags"]
    assert owner.post("alerts/rules/", RULE).json()["error"]["code"] == "alert_rule_exists"
    assert owner.delete("alerts/rules/lags").status_code == 204
    assert owner.get("alerts/rules/lags").json()["error"]["code"] == "alert_rule_not_found"
    kinds = Event.objects.filter(workspace_id=owner.workspace.pk, kind__startswith="alert").order_by("id")
    assert [event.kind for event in kinds] == [
        "alert_rule.created",
        "alert_rule.changed",
        "alert_rule.deleted",
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"limit": None}, "limit"),
        ({"limit": -1}, "limit"),
        ({"watch": "mood"}, "watch"),
        ({"watch": "status"}, "statuses"),
        ({"statuses": ["stalled"]}, "statuses"),
        ({"clear": 3}, "clear"),
        ({"watch": "rate_above", "group": "billing"}, "group"),
        ({"watch": "rate_below", "clear": 1}, "clear"),
        ({"webhook_url": "ftp://example.org"}, "webhook_url"),
        ({"webhook_url": "http://10.0.0.1/"}, "webhook_url"),
        ({"email": "nobody"}, "email"),
        ({"limits": 3}, "limits"),
        ({"for_seconds": -1}, "for_seconds"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_at_its_field(
    owner: Api, changes: dict[str, Any], field: str
) -> None:
    answer = owner.post("alerts/rules/", RULE | changes)
    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]["fields"]
    assert not AlertRule.objects.exists()


def test_a_rule_of_another_workspace_is_not_there(owner: Api, stranger: Api) -> None:
    owner.post("alerts/rules/", RULE)
    assert stranger.get("alerts/rules/lags").status_code == 404
    assert stranger.get("alerts/rules/").json() == []


def test_a_lag_fires_after_its_time_and_ends_when_it_is_done(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE)
    alerting = Alerting()
    publish(orders, 1, 2, 3)
    alerting.look(now_s=0)
    alerting.look(now_s=10)
    assert firing() == []
    alerting.look(now_s=20)
    assert firing() == [("lags", "orders", "billing")]
    fired = owner.get("alerts/").json()
    assert [(each["value"], each["ended_at"]) for each in fired] == [(3.0, None)]
    assert fired[0]["sentence"] == "Group billing of orders: lag 3, above 2."
    publish(orders, 4)
    alerting.look(now_s=30)
    [later] = owner.get("alerts/").json()
    assert (later["value"], later["newest_sentence"]) == (3.0, "Group billing of orders: lag 4, above 2.")
    assert later["newest_at"] > later["began_at"]
    store.log().run(groups.fetch(orders.stream_id, "billing", limit=10))
    alerting.look(now_s=40)
    assert firing() == []
    kinds = list(
        Event.objects.filter(kind__startswith="alert.").order_by("id").values_list("kind", flat=True)
    )
    assert kinds == ["alert.fired", "alert.ended"]


def test_another_worker_goes_on_with_what_fires(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    Alerting().look(now_s=0)
    assert Alert.objects.count() == 1
    orders.groups.all().delete()
    Alerting().look(now_s=0)
    assert firing() == []


@pytest.mark.parametrize(
    ("rule", "fires"),
    [
        ({"watch": "lag_seconds", "limit": 3600}, False),
        ({"watch": "dead_letters", "limit": 0}, True),
        ({"watch": "no_consumer", "limit": 3600}, False),
        ({"watch": "retention_edge", "limit": 3600}, True),
        ({"watch": "retention_edge", "limit": 5}, False),
        ({"watch": "lag", "limit": 0, "group": "audit*"}, False),
        ({"watch": "lag", "limit": 0, "stream": "other*"}, False),
        ({"watch": "lag", "limit": 0, "stream": "or*", "group": "bill*"}, True),
        ({"watch": "status", "limit": None, "statuses": ["paused"]}, True),
        ({"watch": "lag", "limit": 0, "enabled": False}, False),
    ],
)
def test_each_watch_sees_what_it_is_for(
    owner: Api, orders: Stream, rule: dict[str, Any], fires: bool
) -> None:
    owner.patch("streams/orders", {"ttl": 600})
    publish(orders, 1, 2)
    store.log().run(groups.fetch(orders.stream_id, "billing", limit=1))
    store.log().run(groups.term(orders.stream_id, "billing", "offsets", [1], reason="bad"))
    owner.post("streams/orders/groups/billing/pause", {})
    assert owner.post("alerts/rules/", RULE | {"for_seconds": 0} | rule).status_code == 201
    Alerting().look(now_s=0)
    assert bool(firing()) is fires


def test_a_rate_is_told_from_two_looks(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"watch": "rate_above", "limit": 0.1, "for_seconds": 0})
    alerting = Alerting()
    alerting.look(now_s=0)
    publish(orders, 1, 2, 3)
    alerting.look(now_s=10.07)
    assert [each.sentence for each in Alert.objects.all()] == ["Stream orders: rate 0.298/s, above 0.1/s."]


@pytest.fixture
def told(owner: Api, orders: Stream, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:  # noqa: F811
    """A rule with a webhook on this machine, which the installation allows."""
    monkeypatch.setattr(settings, "ENV", dataclasses.replace(settings.ENV, webhook_private=True))
    owner.post("alerts/rules/", RULE | {"for_seconds": 0, "webhook_url": receiver.url})
    publish(orders, 1, 2, 3)
    return receiver


def test_a_test_is_sent_as_what_fires_is_and_says_how_it_was_taken(owner: Api, told: Receiver) -> None:
    owner.patch("alerts/rules/lags", {"muted_until": "2126-11-22T06:00:00Z", "email": "night@example.org"})
    answer = owner.post("alerts/rules/lags/test")
    assert (answer.status_code, answer.json()) == (
        200,
        [{"channel": "webhook", "error": ""}, {"channel": "email", "error": ""}],
    )
    [(_, headers, body)] = told.taken
    sent = json.loads(body)
    assert (sent["what"], sent["rule"], sent["alert"], sent["began_at"]) == ("test", "lags", None, None)
    secret, at = AlertRule.objects.get().webhook_secret, int(headers["Okmq-Timestamp"])
    assert headers["Okmq-Signature"] == signature(secret, timestamp=at, body=body)
    assert mail.outbox[-1].subject.endswith("lags is being tested")
    told.status = 500
    failed = owner.post("alerts/rules/lags/test")
    assert (failed.status_code, failed.json()[0]["error"]) == (200, "localhost answered 500.")
    events = Event.objects.filter(workspace_id=owner.workspace.pk, kind="alert_rule.tested").order_by("id")
    assert [event.summary for event in events] == [
        "Alert rule lags was tested. The webhook accepted it. The email accepted it.",
        "Alert rule lags was tested. The webhook did not accept it: localhost answered 500. The email accepted it.",
    ]
    assert owner.get("alerts/rules/lags").json()["deliveries"] == [], "it is no delivery of what fired"


def test_a_test_reaches_no_private_address_and_nobody_of_a_rule_that_tells_nobody(
    owner: Api, told: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENV", dataclasses.replace(settings.ENV, webhook_private=False))
    [tested] = owner.post("alerts/rules/lags/test").json()
    assert "not a public address" in tested["error"]
    assert told.taken == []
    owner.post("alerts/rules/", RULE | {"name": "silent"})
    refused = owner.post("alerts/rules/silent/test")
    assert refused.json()["error"]["details"]["fields"] == ["webhook_url"]


def test_a_test_needs_the_right_to_manage_and_waits_for_few_at_once(
    owner: Api, stranger: Api, told: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = caller(owner.workspace, scopes=["read", "publish", "consume"])
    assert reader.post("alerts/rules/lags/test").status_code == 403
    assert stranger.post("alerts/rules/lags/test").status_code == 404
    monkeypatch.setattr(notifications, "_testing", threading.BoundedSemaphore(1))
    with notifications._testing:
        assert owner.post("alerts/rules/lags/test").status_code == 429
    assert told.taken == []
    assert owner.post("alerts/rules/lags/test").status_code == 200


def test_a_webhook_is_told_that_it_began_and_that_it_ended(told: Receiver, orders: Stream) -> None:
    alerting = Alerting()
    alerting.look(now_s=0)
    notifications_deliver()
    store.log().run(groups.fetch(orders.stream_id, "billing", limit=10))
    alerting.look(now_s=10)
    notifications_deliver()
    assert [json.loads(body)["what"] for _, _, body in told.taken] == ["fired", "ended"]
    _, headers, body = told.taken[0]
    secret = AlertRule.objects.get().webhook_secret
    assert headers["Okmq-Signature"] == signature(secret, timestamp=int(headers["Okmq-Timestamp"]), body=body)
    assert not Notification.objects.filter(delivered_at=None).exists()


def test_what_is_not_taken_is_tried_again_ever_later_and_given_up_on_record(
    owner: Api, told: Receiver
) -> None:
    told.status = 500
    Alerting().look(now_s=0)
    waits = []
    for _ in range(notifications.MOST_ATTEMPTS):
        Notification.objects.update(due_at=timezone.now() - timedelta(seconds=1))
        notifications_deliver()
        kept = Notification.objects.get()
        if kept.due_at is not None:
            waits.append(round((kept.due_at - timezone.now()).total_seconds()))
    assert waits[:4] == [10, 20, 40, 80]
    assert max(waits) <= notifications.LONGEST_RETRY_S
    assert (len(told.taken), kept.due_at, kept.delivered_at) == (notifications.MOST_ATTEMPTS, None, None)
    assert "answered 500" in kept.error
    assert Event.objects.filter(workspace_id=owner.workspace.pk, kind="alert.not_told").count() == 1


def test_a_rule_and_what_fires_say_how_telling_went(owner: Api, told: Receiver) -> None:
    told.status = 500
    alerting = Alerting()
    alerting.look(now_s=0)
    assert owner.get("alerts/rules/lags").json()["deliveries"] == []
    before = timezone.now()
    notifications_deliver()
    [delivery] = owner.get("alerts/rules/lags").json()["deliveries"]
    assert (delivery["channel"], delivery["attempts"], delivery["delivered_at"]) == ("webhook", 1, None)
    assert delivery["error"] == "localhost answered 500."
    assert before.isoformat()[:23] <= delivery["tried_at"][:23] < delivery["next_try_at"][:23]
    assert owner.get("alerts/rules/").json()[0]["deliveries"] == [delivery]
    assert owner.get("alerts/").json()[0]["deliveries"] == [delivery]
    told.status = 200
    Notification.objects.update(due_at=timezone.now())
    notifications_deliver()
    [delivery] = owner.get("alerts/rules/lags").json()["deliveries"]
    assert (delivery["attempts"], delivery["error"], delivery["next_try_at"]) == (2, "", None)
    assert delivery["delivered_at"] >= delivery["tried_at"]
    owner.patch("alerts/rules/lags", {"webhook_url": ""})
    assert owner.get("alerts/rules/lags").json()["deliveries"] == [], "it tells nobody so any more"


def test_a_new_address_is_told_at_once_what_the_old_one_did_not_take(owner: Api, told: Receiver) -> None:
    told.status = 500
    Alerting().look(now_s=0)
    notifications_deliver()
    assert notifications_deliver() == 0, "it waits for the next try"
    told.status = 200
    owner.patch("alerts/rules/lags", {"webhook_url": f"{told.url}&new=1"})
    assert notifications_deliver() == 1
    assert "new=1" in told.taken[-1][0]


def test_who_is_told_no_more_is_not_tried_again(owner: Api, told: Receiver) -> None:
    told.status = 500
    Alerting().look(now_s=0)
    notifications_deliver()
    owner.patch("alerts/rules/lags", {"webhook_url": ""})
    assert not Notification.objects.exists()


@pytest.mark.parametrize(("url", "tries"), [("https://example.org/new", [0]), ("", [])])
def test_a_try_that_fails_after_its_receiver_was_changed_counts_for_none(
    owner: Api, told: Receiver, monkeypatch: pytest.MonkeyPatch, url: str, tries: list[int]
) -> None:
    def change_and_fail(*_: Any, **__: Any) -> None:
        owner.patch("alerts/rules/lags", {"webhook_url": url})
        raise WebhookRefused("It was away.")

    Alerting().look(now_s=0)
    monkeypatch.setattr(webhooks, "post", change_and_fail)
    notifications_deliver()
    waiting = Notification.objects.filter(due_at__lte=timezone.now())
    assert (list(waiting.values_list("attempts", flat=True)), Notification.objects.count()) == (
        tries,
        len(tries),
    )


def test_a_rule_with_an_address_of_before_can_be_muted_and_not_given_another_like_it(
    owner: Api, told: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENV", dataclasses.replace(settings.ENV, webhook_private=False))
    assert owner.patch("alerts/rules/lags", {"enabled": False, "webhook_url": told.url}).status_code == 200
    refused = owner.patch("alerts/rules/lags", {"webhook_url": "http://127.0.0.1/"})
    assert refused.json()["error"]["details"]["fields"] == ["webhook_url"]


def test_a_muted_rule_fires_and_tells_nobody(owner: Api, told: Receiver) -> None:
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    owner.patch("alerts/rules/lags", {"muted_until": until})
    Alerting().look(now_s=0)
    assert len(firing()) == 1
    assert not Notification.objects.exists()


def hush(owner: Api, *, seconds: int = 3600, **more: str) -> None:
    until = (timezone.now() + timedelta(seconds=seconds)).isoformat()
    owner.patch("alerts/rules/lags", {"muted_until": until} | more)


def whats(told: Receiver) -> list[str]:
    return [json.loads(body)["what"] for _, _, body in told.taken]


def test_what_still_fires_after_a_mute_is_told_then(owner: Api, told: Receiver) -> None:
    hush(owner)
    alerting = Alerting()
    alerting.look(now_s=0)
    owner.patch("alerts/rules/lags", {"muted_until": None})
    alerting.look(now_s=10)
    alerting.look(now_s=20)
    notifications_deliver()
    assert whats(told) == ["fired"], "once"


def test_what_began_and_ended_while_muted_is_told_to_nobody(
    owner: Api, told: Receiver, orders: Stream
) -> None:
    hush(owner)
    alerting = Alerting()
    alerting.look(now_s=0)
    store.log().run(groups.fetch(orders.stream_id, "billing", limit=10))
    alerting.look(now_s=10)
    owner.patch("alerts/rules/lags", {"muted_until": None})
    alerting.look(now_s=20)
    notifications_deliver()
    assert (whats(told), Alert.objects.filter(ended_at=None).count()) == ([], 0)


def test_what_is_on_its_way_waits_for_the_end_of_a_mute(owner: Api, told: Receiver) -> None:
    Alerting().look(now_s=0)
    hush(owner)
    assert notifications_deliver() == 0
    owner.patch("alerts/rules/lags", {"muted_until": None})
    assert notifications_deliver() == 1
    assert whats(told) == ["fired"]


def test_who_was_told_before_a_mute_hears_of_the_end_after_it(
    owner: Api, told: Receiver, orders: Stream
) -> None:
    alerting = Alerting()
    alerting.look(now_s=0)
    notifications_deliver()
    hush(owner)
    store.log().run(groups.fetch(orders.stream_id, "billing", limit=10))
    alerting.look(now_s=10)
    notifications_deliver()
    assert whats(told) == ["fired"]
    owner.patch("alerts/rules/lags", {"muted_until": None})
    notifications_deliver()
    assert whats(told) == ["fired", "ended"]


def test_a_mute_has_a_reason_as_long_as_it_lasts(owner: Api, told: Receiver) -> None:
    assert owner.patch("alerts/rules/lags", {"mute_reason": "moving"}).status_code == 400
    hush(owner, mute_reason="moving")
    assert owner.get("alerts/rules/lags").json()["mute_reason"] == "moving"
    owner.patch("alerts/rules/lags", {"muted_until": None})
    assert owner.get("alerts/rules/lags").json()["mute_reason"] == ""


def test_a_private_address_is_never_called(
    owner: Api, told: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENV", dataclasses.replace(settings.ENV, webhook_private=False))
    Alerting().look(now_s=0)
    notifications_deliver()
    assert "not a public address" in Notification.objects.get().error
    assert told.taken == []


def test_an_email_is_sent(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0, "email": "ops@example.org"})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    notifications_deliver()
    [message] = mail.outbox
    assert message.to == ["ops@example.org"]
    assert "Group billing of orders: lag 3, above 2." in message.body


def test_a_change_of_what_is_watched_ends_what_fires_and_a_mute_does_not(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    owner.patch("alerts/rules/lags", {"muted_until": None})
    assert len(firing()) == 1
    owner.patch("alerts/rules/lags", {"limit": 100})
    assert firing() == []
    [ended] = owner.get("events?kind=alert.ended").json()
    said = r"Alert lags was resolved after \d+ s, because its rule was changed: Group billing"
    assert re.match(said, ended["summary"])
    assert (ended["stream"], ended["group"]) == ("orders", "billing")


def test_how_long_an_alert_lasted_has_the_form_of_every_duration(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    Alert.objects.update(began_at=timezone.now() - timedelta(seconds=117))
    owner.patch("alerts/rules/lags", {"enabled": False})
    [ended] = owner.get("events?kind=alert.ended").json()
    assert "was resolved after 1 min 57 s" in ended["summary"]


def test_who_was_told_that_it_fires_is_told_that_a_change_of_the_rule_ended_it(
    owner: Api, orders: Stream
) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0, "email": "ops@example.org"})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    notifications_deliver()
    owner.patch("alerts/rules/lags", {"enabled": False})
    notifications_deliver()
    assert [message.subject.split("] ")[1] for message in mail.outbox] == [
        "lags is firing",
        "lags is resolved",
    ]
    Alerting().look(now_s=10)
    notifications_deliver()
    assert len(mail.outbox) == 2
    assert len(owner.get("events?kind=alert.ended").json()) == 1


def test_deleting_a_rule_leaves_an_event_that_what_fired_is_over(owner: Api, orders: Stream) -> None:
    owner.post("alerts/rules/", RULE | {"for_seconds": 0})
    publish(orders, 1, 2, 3)
    Alerting().look(now_s=0)
    owner.delete("alerts/rules/lags")
    [ended] = owner.get("events?kind=alert.ended").json()
    assert "because its rule was deleted" in ended["summary"]


def test_a_rule_is_tried_on_the_samples_that_are_kept(owner: Api, orders: Stream) -> None:
    Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    metrics = internal_stream(METRICS_STREAM, archive=False)
    start_ms = int(timezone.now().timestamp() * 1000) - 1_000_000
    records = []
    for number, lag in enumerate([0, 9, 9, 9, 0, 9, 9, 9, 9, 0]):
        group = {"billing": {"lag": lag, "status": "slow" if lag else "ok"}}
        at = start_ms + number * 10_000
        body = {"at": at, "streams": {}, "groups": {orders.stream_id: group}}
        records.append(NewMessage(id=f"{at}", body=json.dumps(body).encode()))
    store.log().run(append(metrics.stream_id, records))
    found = owner.post("alerts/try", {key: value for key, value in RULE.items() if key != "name"}).json()
    assert (found["subjects"], found["fired"], found["longest_seconds"]) == (1, 2, 20.0)
    assert found["since"] < found["until"]
    assert found["sampled_since"] == found["since"]
    tried = owner.post("alerts/try", {"stream": "orders", "watch": "status", "statuses": ["slow"]}).json()
    assert (tried["fired"], AlertRule.objects.count()) == (0, 0)


def test_a_rule_about_a_rate_is_tried_on_a_month_of_the_history(owner: Api, orders: Stream) -> None:
    long_ago = timezone.now().replace(second=0, microsecond=0) - timedelta(days=29)
    counted = {0: 600, 1: 6000, 2: 6000, 3: 6000, 4: 600, 90: 12_000}
    Rollup.objects.bulk_create(
        Rollup(
            stream_id=orders.stream_id,
            step="minute",
            start=long_ago + timedelta(minutes=minute),
            messages=messages,
            bytes=messages,
        )
        for minute, messages in counted.items()
    )
    rule = {"stream": "ord*", "watch": "rate_above", "limit": 50, "for_seconds": 0}
    found = owner.post("alerts/try", rule).json()
    assert (found["subjects"], found["fired"], found["longest_seconds"]) == (1, 2, 180.0)
    assert found["since"][:16] == long_ago.isoformat()[:16]
    silent = owner.post("alerts/try", rule | {"watch": "rate_below", "limit": 1, "for_seconds": 3600}).json()
    assert silent["fired"] == 2, "between the two bursts, and since the second"
    assert owner.post("alerts/try", rule | {"stream": "other"}).json()["subjects"] == 0


def test_a_rule_about_a_lag_is_tried_on_a_month_of_the_history(owner: Api, orders: Stream) -> None:
    long_ago = timezone.now().replace(second=0, microsecond=0) - timedelta(days=29)
    for minute, (lag, age_ms) in enumerate([(0, 0), (50, 90_000), (70, 30_000), (0, 0)]):
        for group in ("billing", "search", ""):
            StandingRollup.objects.create(
                stream_id=orders.stream_id,
                group=group,
                step="minute",
                start=long_ago + timedelta(minutes=minute),
                samples=6,
                last_ms=0,
                lag_max=lag,
                lag_ms_max=age_ms,
            )
    rule = {"stream": "orders", "group": "billing", "watch": "lag", "limit": 20, "for_seconds": 0}
    found = owner.post("alerts/try", rule).json()
    assert (found["subjects"], found["fired"], found["longest_seconds"]) == (1, 1, 120.0)
    found = owner.post("alerts/try", rule | {"watch": "lag_seconds", "limit": 60}).json()
    assert (found["fired"], found["longest_seconds"]) == (1, 60.0)
    assert owner.post("alerts/try", rule | {"group": ""}).json()["fired"] == 2


@pytest.mark.parametrize(
    ("rule", "fired"),
    [
        ({"watch": "rate_above", "limit": 5, "for_seconds": 30}, 1),
        ({"watch": "rate_above", "limit": 7, "for_seconds": 60}, 1),
        ({"watch": "rate_above", "limit": 15, "for_seconds": 0}, 0),
        ({"watch": "rate_below", "limit": 2, "for_seconds": 0}, 0),
    ],
)
def test_a_rate_is_tried_as_the_worker_judges_it_by_the_mean_of_ten_seconds(
    owner: Api, orders: Stream, rule: dict[str, Any], fired: int
) -> None:
    """Twenty-five messages each two and a half seconds, looked at each second or a little later."""
    now_ms = int(timezone.now().timestamp() * 1000)
    moments = range(now_ms - 150_000, now_ms, 1060)
    offsets = [25 * ((at - moments[0]) // 2500) for at in moments]
    Stream.objects.filter(pk=orders.pk).update(created_at=timezone.now() - timedelta(hours=1))
    sampled(
        (at, {orders.stream_id: {"offset": offset, "in": round((offset - before) / 1.06, 3)}})
        for at, offset, before in zip(moments, offsets, [0, *offsets], strict=False)
    )
    found = owner.post("alerts/try", rule | {"stream": "orders"}).json()
    assert (found["subjects"], found["fired"]) == (1, fired)


def test_a_stream_that_no_sample_tells_of_was_silent(owner: Api, orders: Stream) -> None:
    sampled([(int(timezone.now().timestamp() * 1000) - 300_000, {})])
    rule = {"stream": "orders", "watch": "rate_below", "limit": 1, "for_seconds": 60}
    made = Stream.objects.filter(pk=orders.pk)
    for minutes, fired in (10, 1), (0, 0):
        made.update(created_at=timezone.now() - timedelta(minutes=minutes))
        found = owner.post("alerts/try", rule).json()
        assert (found["subjects"], found["fired"]) == (1, fired)


def sampled(records: Iterable[tuple[int, dict[str, Any]]]) -> None:
    """Records of the worker's samples of streams, at moments (unix ms), instead of those that are kept."""
    Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    metrics = internal_stream(METRICS_STREAM, archive=False)
    store.log().run(trim.purge(metrics.stream_id, below=2**40))
    bodies = [json.dumps({"at": at, "streams": streams}).encode() for at, streams in records]
    store.log().run(append(metrics.stream_id, [NewMessage(id=uuid4().hex, body=body) for body in bodies]))


def test_what_the_samples_tell_goes_before_the_minutes_of_the_history(owner: Api, orders: Stream) -> None:
    start = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=30)
    sampled([(int(start.timestamp() * 1000), {orders.stream_id: {"offset": 1, "in": 1}})])
    for minute in (-10, 5):  # what the history counted since the samples begin is in them, too
        Rollup.objects.create(
            stream_id=orders.stream_id,
            step="minute",
            start=start + timedelta(minutes=minute),
            messages=60_000,
            bytes=1,
        )
    rule = {"stream": "orders", "watch": "rate_above", "limit": 50, "for_seconds": 0}
    found = owner.post("alerts/try", rule).json()
    assert (found["fired"], found["longest_seconds"]) == (1, 60.0)
    assert found["since"] < found["sampled_since"]
