"""Receivers that get no more than so many messages in so many minutes: what comes more is told together."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from streams import webhooks
from streams.models import Alert, AlertRule, Event, Notification
from streams.services.alerts import alert_begin, alert_end
from streams.services.notifications import MOST_ATTEMPTS
from streams.webhooks import signature
from tests.findings import over
from tests.streams.api.conftest import Api
from tests.streams.api.notified import deliver
from tests.streams.test_webhooks import Receiver

pytestmark = pytest.mark.usefixtures("alone")

MINUTE = timedelta(minutes=1)
RULE: dict[str, Any] = {"name": "lags", "stream": "orders*", "watch": "lag", "limit": 2}


def made(owner: Api, **chosen: Any) -> AlertRule:
    answer = owner.post("alerts/rules/", RULE | chosen)
    assert answer.status_code == 201, answer.content
    return AlertRule.objects.get(name=answer.json()["name"])


def fires(rule: AlertRule, *numbers: int) -> list[Alert]:
    return [
        alert_begin(rule, value=3.0, finding=over("lag", 3.0, limit=2.0, stream=f"orders-{n}"))
        for n in numbers
    ]


def told(hook: Receiver) -> list[Any]:
    """What was sent: of a digest the list of what it holds."""
    return [_short(json.loads(body)) for _, _, body in hook.taken]


def _short(sent: dict[str, Any]) -> Any:
    if sent["what"] == "digest":
        return [_short(each) for each in sent["messages"]]
    return f"{sent['what']} {sent['stream'].removeprefix('orders-')}"


def deliveries(owner: Api) -> Sequence[tuple[int, int, bool]]:
    """Of each alert, the oldest first: how often its last message was tried, how many it told, whether it was taken."""
    rows = [alert["deliveries"] for alert in reversed(owner.get("alerts/").json())]
    return [(row["attempts"], row["together"], bool(row["delivered_at"])) for [row] in rows]


def test_without_a_bound_each_message_goes_by_itself(owner: Api, hook: Receiver) -> None:
    rule = made(owner, webhook_url=hook.url)
    assert (rule.most_messages, rule.most_minutes) == (None, 10)
    fires(rule, *range(1, 6))
    deliver()
    assert told(hook) == [f"fired {n}" for n in range(1, 6)]
    assert deliveries(owner) == [(1, 1, True)] * 5


def test_what_comes_more_is_told_together_in_its_order_once_there_is_room(
    owner: Api,
    hook: Receiver,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=2, most_minutes=5)
    alerts = fires(rule, 1, 2, 3, 4)
    deliver()
    alert_end(alerts[0])
    deliver()
    assert told(hook) == ["fired 1", "fired 2"]
    assert deliveries(owner)[1:] == [(1, 1, True), (0, 1, False), (0, 1, False)]
    deliver(after=4 * MINUTE)
    fires(rule, 5)
    deliver()
    assert len(hook.taken) == 2
    deliver(after=1.1 * MINUTE)
    together = ["fired 3", "fired 4", "ended 1", "fired 5"]
    assert told(hook)[2:] == [together]
    _, headers, body = hook.taken[-1]
    sent = json.loads(body)
    assert (
        signature(rule.webhook_secret, timestamp=int(headers["Okmq-Timestamp"]), body=body)
        == (headers["Okmq-Signature"])
    )
    assert (sent["rule"], sent["workspace"]) == ("lags", owner.workspace.name)
    assert sent["sentence"] == "4 messages of lags, sent together: 1 ended and 3 began."
    assert [bool(each["began_at"]) and bool(each["ended_at"]) for each in sent["messages"]] == [
        each.startswith("ended") for each in together
    ]
    assert deliveries(owner) == [(1, 4, True), (1, 1, True), *[(1, 4, True)] * 3]
    assert not Notification.objects.filter(delivered_at=None).exists()
    fires(rule, 6, 7, 8)
    deliver()
    deliver(after=5.1 * MINUTE)
    assert told(hook)[3:] == ["fired 6", ["fired 7", "fired 8"]]


def test_what_is_not_taken_is_tried_again_as_it_was_though_more_came(
    owner: Api,
    hook: Receiver,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=1, most_minutes=1)
    fires(rule, 1, 2, 3)
    deliver()
    hook.status = 500
    deliver(after=1.1 * MINUTE)
    fires(rule, 4)
    hook.status = 200
    deliver(after=0.5 * MINUTE)
    assert told(hook) == ["fired 1", ["fired 2", "fired 3"], ["fired 2", "fired 3"]]
    assert len({headers["Okmq-Delivery"] for _, headers, _ in hook.taken[1:]}) == 1
    deliver(after=1.1 * MINUTE)
    assert told(hook)[3:] == ["fired 4"]
    assert deliveries(owner) == [(1, 1, True), (2, 2, True), (2, 2, True), (1, 1, True)]


def test_what_is_given_up_is_on_record_for_each_that_was_to_be_told(
    owner: Api,
    hook: Receiver,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=1, most_minutes=1)
    fires(rule, 1, 2, 3)
    deliver()
    hook.status = 500
    for _ in range(MOST_ATTEMPTS):
        deliver(after=61 * MINUTE)
    assert told(hook)[1:] == [["fired 2", "fired 3"]] * MOST_ATTEMPTS
    events = Event.objects.filter(workspace_id=owner.workspace.pk, kind="alert.not_told").order_by("id")
    assert [event.stream for event in events] == ["orders-2", "orders-3"]


def test_a_receiver_that_is_away_finds_no_more_than_its_bound_when_it_is_back(
    owner: Api,
    hook: Receiver,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=2, most_minutes=10)
    hook.status = 500
    fires(rule, *range(1, 9))
    deliver()
    hook.status = 200
    deliver(after=1 * MINUTE)
    assert told(hook) == ["fired 1", "fired 2"] * 2
    deliver(after=10.1 * MINUTE)
    assert told(hook)[4:] == [[f"fired {n}" for n in range(3, 9)]]


def test_who_ends_before_it_is_told_leaves_it_to_the_next_worker(
    owner: Api,
    hook: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=1, most_minutes=1)
    fires(rule, 1, 2, 3)
    deliver()

    def end(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as away:
        away.setattr(webhooks, "post", end)
        with pytest.raises(SystemExit):
            deliver(after=1.1 * MINUTE)
    fires(rule, 4)
    deliver()
    deliver(after=1.1 * MINUTE)
    assert told(hook) == ["fired 1", ["fired 2", "fired 3"], "fired 4"]


def test_rules_that_tell_the_same_receiver_share_its_messages_and_others_do_not(
    owner: Api,
    hook: Receiver,
) -> None:
    bounded = {"webhook_url": hook.url, "most_messages": 1, "most_minutes": 1}
    first, second = made(owner, **bounded), made(owner, name="dead", **bounded)
    loud = made(owner, name="loud", webhook_url=f"{hook.url}&loud")
    fires(first, 1)
    fires(second, 2)
    fires(first, 3)
    fires(loud, 4)
    deliver()
    assert told(hook) == ["fired 1", "fired 4"]
    deliver(after=1.1 * MINUTE)
    assert told(hook)[2:] == [["fired 2", "fired 3"]]
    _, headers, body = hook.taken[-1]
    assert json.loads(body)["rule"] == "dead"
    timestamp = int(headers["Okmq-Timestamp"])
    assert headers["Okmq-Signature"] == signature(second.webhook_secret, timestamp=timestamp, body=body)


def test_a_mail_tells_them_line_by_line(owner: Api) -> None:
    rule = made(owner, email="ops@example.org", most_messages=1)
    [first] = fires(rule, 1)
    deliver()
    alert_end(first)
    fires(rule, 2)
    deliver()
    deliver(after=10.1 * MINUTE)
    one, several = mail.outbox
    assert one.subject.endswith("] lags is firing")
    assert several.subject.endswith("] 2 notifications in one")
    said = several.body.splitlines()
    assert said[0] == "2 messages of lags, sent together: 1 began and 1 ended."
    assert [line.split("  ")[1].split(",")[0] for line in said[2:4]] == [
        "lags was resolved",
        "lags is firing: Group billing of orders-2: lag 3",
    ]


def test_a_mute_takes_what_is_its_own_out_of_what_is_told_together(
    owner: Api,
    hook: Receiver,
) -> None:
    bounded = {"webhook_url": hook.url, "most_messages": 1, "most_minutes": 1}
    first, second = made(owner, **bounded), made(owner, name="dead", **bounded)
    fires(first, 1, 2)
    fires(second, 3)
    fires(first, 4)
    deliver()
    hook.status = 500
    deliver(after=1.1 * MINUTE)
    assert told(hook)[1:] == [["fired 2", "fired 3", "fired 4"]]
    owner.patch("alerts/rules/lags", {"muted_until": (timezone.now() + timedelta(hours=1)).isoformat()})
    hook.status = 200
    deliver(after=1.1 * MINUTE)
    assert told(hook)[2:] == ["fired 3"]
    owner.patch("alerts/rules/lags", {"muted_until": None})
    deliver(after=1.1 * MINUTE)
    assert told(hook)[3:] == [["fired 2", "fired 4"]]


def test_a_new_address_gets_what_was_held_back_and_a_higher_bound_lets_it_go(
    owner: Api,
    hook: Receiver,
) -> None:
    rule = made(owner, webhook_url=hook.url, most_messages=1, most_minutes=60)
    alerts = fires(rule, 1, 2, 3)
    deliver()
    owner.patch("alerts/rules/lags", {"most_messages": 2})
    deliver()
    assert told(hook) == ["fired 1", ["fired 2", "fired 3"]]
    alert_end(alerts[0])
    deliver()
    assert len(hook.taken) == 2
    owner.patch("alerts/rules/lags", {"most_messages": None, "webhook_url": f"{hook.url}&new=1"})
    deliver()
    assert told(hook)[2:] == ["ended 1"]
    assert "new=1" in hook.taken[-1][0]
    assert len(Alert.objects.filter(ended_at=None)) == 2, "how it is told ends nothing"


@pytest.mark.parametrize(
    "wrong", [{"most_messages": 0}, {"most_messages": 1001}, {"most_minutes": 0}, {"most_minutes": None}]
)
def test_a_bound_that_is_none_is_refused(owner: Api, wrong: dict[str, Any]) -> None:
    answer = owner.post("alerts/rules/", RULE | wrong)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["fields"] == list(wrong)
