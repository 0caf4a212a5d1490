"""What the pages of alert rules ask before a rule goes, let viewers try, and say of what was tried."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from streams.access import SYSTEM
from streams.models import Alert, AlertRule, Notification
from streams.services.alerts import rule_change
from tests.dashboard.browser_forms import untouched
from tests.dashboard.conftest import MakeStream

PAGE, DELETE = "/alerts/lags/", "/alerts/lags/delete/"
FORM = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": "90 s"}


@pytest.fixture
def rule(owner: Client, make_stream: MakeStream) -> AlertRule:
    make_stream("orders")
    owner.post("/alerts/", FORM | {"webhook_url": "https://example.org/hook"})
    return AlertRule.objects.get()


def alert(rule: AlertRule, *, stream: str, ended: bool = False) -> Alert:
    now = timezone.now()
    return Alert.objects.create(
        rule=rule, stream=stream, began_at=now, ended_at=now if ended else None, value=3, sentence="It lags."
    )


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_deleting_a_rule_says_what_goes_with_it_and_asks_for_its_name(owner: Client, rule: AlertRule) -> None:
    fires = alert(rule, stream="a")
    Notification.objects.create(alert=fires, channel="webhook", body="{}", due_at=timezone.now())
    alert(rule, stream="b", ended=True)
    alert(rule, stream="c", ended=True)
    assert f'href="{DELETE}"' in owner.get(PAGE).content.decode()
    told = text_of(owner.get(DELETE))
    for said in (
        "the rule itself: lag above 2",
        "1 alert that is firing: nobody is notified that they are over",
        "2 resolved alerts of the last 30 days",
        "1 notification that has not been accepted yet",
        "the secret that signs its webhooks",
        "Type lags to confirm",
    ):
        assert said in told
    for typed in ({}, {"confirm": "lag"}):
        assert owner.post(DELETE, {"seen_alerts": "3"} | typed).status_code == 422
    assert AlertRule.objects.exists()
    sent = {"seen_alerts": "3", "confirm": "lags"}
    assert owner.post(DELETE, sent)["Location"] == "/alerts/"
    assert not AlertRule.objects.exists()


def test_a_rule_that_fired_once_more_is_looked_at_once_more(owner: Client, rule: AlertRule) -> None:
    seen = owner.get(DELETE).context["form"]["seen_alerts"].value()
    alert(rule, stream="a")
    answer = owner.post(DELETE, {"seen_alerts": seen, "confirm": "lags"})
    assert (answer.status_code, AlertRule.objects.count()) == (409, 1)
    assert "Nothing was deleted" in text_of(answer)


def test_a_rule_with_nothing_that_goes_with_it_needs_no_name_typed(owner: Client) -> None:
    owner.post("/alerts/", FORM)
    page = owner.get(DELETE)
    assert "to confirm" not in text_of(page)
    assert re.search(r'href="/alerts/lags/" autofocus>Cancel<', page.content.decode())
    assert AlertRule.objects.exists(), "looking at it deletes nothing"
    owner.post(DELETE)
    assert not AlertRule.objects.exists()


def test_a_dry_run_says_of_which_values_it_is(owner: Client, rule: AlertRule) -> None:
    for path in ("/alerts/", PAGE):
        tried = {"try": "1", "group": "billing", "limit": "1234", "clear": "5"}
        told = text_of(owner.post(path, FORM | tried))
        said = "Dry run of “lag above 1,234” for at least 1 min 30 s, on orders / billing ; resolves at 5"
        assert said in told
    rule.refresh_from_db()
    assert rule.limit == 2.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3600, "1 h"),
        (3650, "1 h 50 s"),
        (90_061, "1 d 1 h 1 min 1 s"),
        (86_401, "1 d 1 s"),
        (0, "0 s"),
        (0.5, "0.5 s"),
    ],
)
def test_a_limit_in_seconds_is_told_exactly(owner: Client, seconds: float, said: str) -> None:
    form = FORM | {"watch": "lag_seconds", "limit": str(seconds), "lasting": "3650 s"}
    told = text_of(owner.post("/alerts/", form | {"try": "1"}))
    assert f"Dry run of “time lag above {said}” for at least 1 h 50 s" in told
    owner.post("/alerts/", form)
    for path in ("/alerts/", DELETE):
        assert re.search(rf"time lag above {re.escape(said)}\s", text_of(owner.get(path)))


def test_who_may_read_tries_a_rule_as_over_the_api(viewer: Client, rule: AlertRule) -> None:
    for path in ("/alerts/", PAGE):
        page = viewer.get(path).content.decode()
        assert re.search(r'<button [^>]*name="try" value="1">', page), "it is not disabled"
        answer = viewer.post(path, FORM | {"name": "mine", "limit": "7", "try": "1"})
        assert (answer.status_code, "Dry run of “lag above 7”" in text_of(answer)) == (200, True)
        assert viewer.post(path, FORM | {"name": "mine"}).status_code == 403
    assert AlertRule.objects.get().limit == 2.0


def test_only_who_may_manage_sees_the_whole_address_of_a_webhook(
    owner: Client, viewer: Client, rule: AlertRule
) -> None:
    secret = "https://hooks.slack.com/services/T000/SECRET?key=SECRET"
    rule_change(rule, changes={"webhook_url": secret}, actor=SYSTEM)
    assert owner.get(PAGE).context["form"]["webhook_url"].value() == secret
    tried = untouched(viewer.get(PAGE)) | {"limit": "7", "try": "1", "webhook_url": "https://x.example/y"}
    for path in (PAGE, f"{PAGE}?try=1&limit=7", "/alerts/", "/events/"):
        assert "SECRET" not in viewer.get(path).content.decode()
    for answer in (viewer.get(PAGE), viewer.post(PAGE, tried)):
        assert answer.status_code == 200
        assert answer.context["form"]["webhook_url"].value() == "https://hooks.slack.com/…"
        assert "SECRET" not in answer.content.decode()
    assert "It would have fired" in text_of(answer) or "no samples yet" in text_of(answer)
