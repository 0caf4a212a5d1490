"""The page of alerts: what fires, the rules, and what a rule would have done."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from streams.models import Alert, AlertRule
from streams.upkeep.alerting import Alerting
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, make_group

FORM = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": ""}


def test_a_rule_is_made_and_what_fires_stands_on_every_page(
    owner: Client, viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    assert "There is no rule yet" in owner.get("/alerts/").content.decode()
    assert owner.post("/alerts/", FORM)["Location"] == "/alerts/"
    Alerting().look(now_s=0)
    page = viewer.get("/alerts/").content.decode()
    assert "Group billing of orders: lag 20, above 2." in page
    badge = '1<span class="visually-hidden"> firing</span>'
    assert badge in viewer.get("/").content.decode()
    assert badge not in stranger.get("/").content.decode()
    assert "Group billing" not in stranger.get("/alerts/").content.decode()


def test_what_fires_is_muted_with_one_click_and_heard_again_with_another(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/alerts/", FORM)
    Alerting().look(now_s=0)
    badge = "firing</span>"
    page = viewer.get("/alerts/").content.decode()
    assert 'name="seconds" value="3600" disabled' in page
    before = timezone.now()
    sent = {"seconds": "3600", "reason": "moving the warehouse"}
    assert owner.post("/alerts/lags/mute/", sent)["Location"] == "/alerts/"
    until = AlertRule.objects.get().muted_until
    assert until is not None
    assert 3600 <= (until - before).total_seconds() < 3660
    page = owner.get("/alerts/").content.decode()
    assert "Group billing of orders: lag 20, above 2." in page, "it fires on, and is listed"
    assert "muted until" in page
    assert ">moving the warehouse</bdi>" in page
    assert badge not in page, "and counts on no page"
    owner.post("/alerts/lags/mute/", {"seconds": "0"})
    rule = AlertRule.objects.get()
    assert (rule.muted_until, rule.mute_reason) == (None, "")
    assert badge in viewer.get("/").content.decode()


@pytest.mark.parametrize("seconds", ["", "-1", "7", "soon", "99999999999999999999"])
def test_what_is_no_time_to_mute_for_is_refused(owner: Client, make_stream: MakeStream, seconds: str) -> None:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    assert owner.post("/alerts/lags/mute/", {"seconds": seconds}).status_code == 400
    assert AlertRule.objects.get().muted_until is None


def test_a_reason_without_a_mute_or_without_end_is_refused(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    answer = owner.post("/alerts/", FORM | {"mute_reason": "moving"})
    assert (answer.status_code, "mute_reason" in answer.context["form"].errors) == (422, True)
    owner.post("/alerts/", FORM)
    assert owner.post("/alerts/lags/mute/", {"seconds": "3600", "reason": "x" * 201}).status_code == 400
    assert AlertRule.objects.get().muted_until is None


def test_a_rule_is_tried_without_being_made(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    page = owner.post("/alerts/", FORM | {"try": "1"})
    assert page.context["tried"].spans == []
    assert "There are no samples yet" in page.content.decode()
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"limit": ""}, "limit"),
        ({"watch": "status"}, "statuses"),
        ({"clear": "3"}, "clear"),
        ({"webhook_url": "ftp://x"}, "webhook_url"),
        ({"lasting": "soon"}, "lasting"),
        ({"muted": "soon"}, "muted"),
        ({"name": "<b>"}, "name"),
    ],
)
def test_what_makes_no_rule_is_said_at_its_field(owner: Client, changes: dict[str, Any], field: str) -> None:
    answer = owner.post("/alerts/", FORM | changes)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not AlertRule.objects.exists()


def test_the_secret_of_a_webhook_is_shown_once(owner: Client) -> None:
    owner.post("/alerts/", FORM | {"webhook_url": "https://example.org/hook"})
    secret = AlertRule.objects.get().webhook_secret
    assert secret in owner.get("/alerts/").content.decode()
    for path in ("/alerts/", "/alerts/lags/"):
        assert secret not in owner.get(path).content.decode()


def test_a_rule_is_saved_muted_switched_off_and_deleted(owner: Client) -> None:
    owner.post("/alerts/", FORM)
    shown = owner.get("/alerts/lags/").context["form"]
    sent = {name: shown[name].value() for name in shown.fields if shown[name].value() not in (None, "", [])}
    owner.post("/alerts/lags/", sent | {"limit": "7", "muted": "2 h"})
    rule = AlertRule.objects.get()
    assert (rule.limit, rule.for_seconds, rule.muted_until is not None) == (7.0, 0, True)
    owner.post("/alerts/lags/switch/")
    assert AlertRule.objects.get().enabled is False
    owner.post("/alerts/lags/delete/")
    assert not AlertRule.objects.exists()


def test_a_viewer_changes_no_rule(owner: Client, viewer: Client, stranger: Client) -> None:
    owner.post("/alerts/", FORM)
    for path in ("/alerts/", "/alerts/lags/", "/alerts/lags/switch/", "/alerts/lags/delete/"):
        assert viewer.post(path, FORM | {"name": "more"}).status_code == 403
    assert stranger.post("/alerts/lags/delete/").status_code == 404
    assert (AlertRule.objects.count(), Alert.objects.count()) == (1, 0)
