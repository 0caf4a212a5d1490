"""A mute on the page of its rule: in the person's zone, to come, and over by itself."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from streams.access import SYSTEM
from streams.models import AlertRule
from streams.services.alerts import rule_change
from tests.dashboard.browser_forms import untouched
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_rule_pages import text_of

PAGE = "/alerts/lags/"
FORM = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": "90 s"}
LATER = datetime(2126, 11, 21, 9, tzinfo=UTC)


@pytest.fixture
def rule(owner: Client, make_stream: MakeStream) -> AlertRule:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    return AlertRule.objects.get()


def mute(rule: AlertRule, until: datetime | None, reason: str = "moving") -> None:
    rule_change(rule, changes={"muted_until": until, "mute_reason": reason}, actor=SYSTEM)


def opened_while_muted(owner: Client, rule: AlertRule, *, until: datetime) -> dict[str, Any]:
    """What the page of a rule sends that was opened before its mute ended, which it has by now."""
    mute(rule, LATER)
    sent = untouched(owner.get(PAGE))
    shown = until.isoformat(" ", "seconds")
    sent["muted"] = [shown]
    sent["opened"] = [json.dumps(json.loads(sent["opened"][0]) | {"muted": shown})]
    mute(rule, until)
    return sent


def saved(rule: AlertRule) -> tuple[float | None, bool, str]:
    rule.refresh_from_db()
    return rule.limit, rule.is_muted, rule.mute_reason if rule.is_muted else ""


def test_a_mute_that_ran_out_while_the_page_was_open_is_nobodys_change(
    owner: Client, rule: AlertRule
) -> None:
    sent = opened_while_muted(owner, rule, until=timezone.now() - timedelta(minutes=1))
    answer = owner.post(PAGE, sent | {"limit": "7"})
    assert answer.status_code == 302, text_of(answer)
    assert saved(rule) == (7.0, False, "")


def test_a_mute_that_somebody_took_back_or_prolonged_is_told(owner: Client, rule: AlertRule) -> None:
    mute(rule, LATER)
    sent = untouched(owner.get(PAGE))
    mute(rule, None, "")
    answer = owner.post(PAGE, sent | {"limit": "7"})
    assert (answer.status_code, "Muted until: 2126-11-21 09:00:00+00:00 → –" in text_of(answer)) == (
        409,
        True,
    )
    sent = opened_while_muted(owner, rule, until=timezone.now() - timedelta(minutes=1))
    mute(rule, LATER)
    answer = owner.post(PAGE, sent | {"limit": "7"})
    assert (answer.status_code, "→ 2126-11-21 09:00:00+00:00" in text_of(answer)) == (409, True)
    assert saved(rule) == (2.0, True, "moving")


def test_a_reason_for_a_mute_that_ran_out_meanwhile_asks_until_when(owner: Client, rule: AlertRule) -> None:
    sent = opened_while_muted(owner, rule, until=timezone.now() - timedelta(minutes=1))
    answer = owner.post(PAGE, sent | {"mute_reason": "still moving"})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["mute_reason"])
    assert owner.post(PAGE, untouched(answer) | {"muted": "2 h"}).status_code == 302
    assert saved(rule) == (2.0, True, "still moving")


def test_a_mute_is_shown_and_read_in_the_zone_of_the_page(owner: Client, rule: AlertRule) -> None:
    mute(rule, LATER)
    owner.cookies["okmq_zone"] = "Asia/Tokyo"
    sent = untouched(owner.get(PAGE))
    assert sent["muted"] == ["2126-11-21 18:00:00+09:00"]
    owner.post(PAGE, sent | {"muted": "2126-11-21 19:00"})
    rule.refresh_from_db()
    assert rule.muted_until == LATER + timedelta(hours=1)


def test_another_zone_is_no_change_of_a_mute(owner: Client, rule: AlertRule) -> None:
    mute(rule, LATER + timedelta(milliseconds=123))
    sent = untouched(owner.get(PAGE))
    owner.cookies["okmq_zone"] = "Asia/Tokyo"
    assert owner.post(PAGE, sent | {"limit": "7"}).status_code == 302
    rule.refresh_from_db()
    assert (rule.limit, rule.muted_until) == (7.0, LATER + timedelta(milliseconds=123))


@pytest.mark.parametrize("typed", ["2020-01-01 00:00", "15 min ago", "1577836800000"])
def test_a_rule_is_not_muted_until_a_time_that_has_passed(owner: Client, rule: AlertRule, typed: str) -> None:
    answer = owner.post(PAGE, untouched(owner.get(PAGE)) | {"muted": typed})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["muted"])
    assert "That time has passed" in text_of(answer)
    rule.refresh_from_db()
    assert rule.muted_until is None
