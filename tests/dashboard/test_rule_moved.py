"""An alert rule that somebody else changes while its form is open: nothing of that is taken back unseen."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.views import alerts as view
from streams.access import SYSTEM
from streams.models import AlertRule, Event
from streams.services.alerts import rule_change
from tests.dashboard.conftest import MakeStream

PAGE = "/alerts/lags/"
FORM = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": "90 s"}


@pytest.fixture
def rule(owner: Client, make_stream: MakeStream) -> AlertRule:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    return AlertRule.objects.get()


def filled(answer: Any) -> dict[str, Any]:
    """What a browser sends back of the form of the page, unless somebody changes it."""
    form = answer.context["form"]
    values = {name: form[name].value() for name in form.fields if name != "name"}
    told = {name: value for name, value in values.items() if value is not None}
    hidden = re.search(r'name="opened" value="([^"]*)"', answer.content.decode())
    assert hidden
    return told | {"opened": unescape(hidden[1])}


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", answer.content.decode())))


def test_what_was_saved_meanwhile_stays_and_is_told(owner: Client, rule: AlertRule) -> None:
    opened = filled(owner.get(PAGE))
    owner.post("/alerts/lags/mute/", {"seconds": "3600", "reason": "moving"})
    rule_change(rule, changes={"limit": 9.0, "statuses": []}, actor=SYSTEM)
    answer = owner.post(PAGE, opened | {"email": "", "group": "billing"})
    assert answer.status_code == 409
    told = text_of(answer)
    assert "Nothing was saved" in told
    assert "Limit: 2 → 9" in told
    assert "Reason for muting: – → moving" in told
    rule.refresh_from_db()
    assert (rule.group, rule.limit, rule.is_muted, rule.mute_reason) == ("", 9.0, True, "moving")
    again = filled(answer)
    assert (again["group"], again["limit"]) == ("billing", "9")
    assert owner.post(PAGE, again).status_code == 302
    rule.refresh_from_db()
    assert (rule.group, rule.limit, rule.is_muted, rule.mute_reason) == ("billing", 9.0, True, "moving")


def test_what_both_changed_is_as_it_was_entered_once_it_was_seen(owner: Client, rule: AlertRule) -> None:
    opened = filled(owner.get(PAGE))
    changes = {"watch": "status", "limit": None, "statuses": ["slow", "stalled"]}
    rule_change(rule, changes=changes, actor=SYSTEM)
    answer = owner.post(PAGE, opened | {"limit": "7"})
    assert answer.status_code == 409
    assert "Bad statuses: – → stalled, slow" in text_of(answer)
    rule.refresh_from_db()
    limits = [rule.limit]
    assert filled(answer)["limit"] == "7"
    assert owner.post(PAGE, filled(answer) | {"watch": "lag"}).status_code == 302
    rule.refresh_from_db()
    assert (rule.watch, [*limits, rule.limit]) == ("lag", [None, 7.0])
    assert rule.statuses == []


def test_a_change_at_the_last_moment_is_noticed(
    owner: Client, rule: AlertRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = filled(owner.get(PAGE))

    def changed_before(found: AlertRule, **options: Any) -> AlertRule:
        rule_change(found, changes={"limit": 9.0}, actor=SYSTEM)
        return rule_change(found, **options)

    monkeypatch.setattr(view, "rule_change", changed_before)
    answer = owner.post(PAGE, opened | {"group": "billing"})
    assert (answer.status_code, "Limit: 2 → 9" in text_of(answer)) == (409, True)
    rule.refresh_from_db()
    assert (rule.group, rule.limit) == ("", 9.0)


def test_a_save_changes_only_what_the_form_changed(owner: Client, rule: AlertRule) -> None:
    owner.post("/alerts/lags/mute/", {"seconds": "3600", "reason": "moving"})
    rule.refresh_from_db()
    until = rule.muted_until
    owner.post(PAGE, filled(owner.get(PAGE)) | {"limit": "7"})
    changed = Event.objects.filter(kind="alert_rule.changed").order_by("-id")[0]
    assert list(changed.after or {}) == ["rule", "limit"]
    owner.post(PAGE, filled(owner.get(PAGE)) | {"mute_reason": "still moving"})
    rule.refresh_from_db()
    assert (rule.muted_until, rule.mute_reason) == (until, "still moving")


def test_turning_a_rule_off_twice_leaves_it_off(owner: Client, rule: AlertRule) -> None:
    page = owner.get("/alerts/").content.decode()
    assert 'name="enabled" value="off"' in page
    for _ in range(2):
        owner.post("/alerts/lags/switch/", {"enabled": "off"})
        rule.refresh_from_db()
        assert rule.enabled is False
    assert 'name="enabled" value="on"' in owner.get("/alerts/").content.decode()
    assert owner.post("/alerts/lags/switch/").status_code == 400
    owner.post("/alerts/lags/switch/", {"enabled": "on"})
    rule.refresh_from_db()
    assert rule.enabled is True
