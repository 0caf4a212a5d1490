"""Forms of settings that somebody else has saved meanwhile: nothing of that is taken back unseen."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from streams.access import SYSTEM
from streams.models import Group, Stream, Workspace
from streams.services.groups import group_change, group_create
from streams.services.streams import stream_change
from streams.services.workspaces import settings_of, workspace_change
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.test_stream_settings import filled

GROUP = "/streams/orders/groups/billing/settings/"
RETENTION = "/streams/orders/retention/"
SETTINGS = "/streams/orders/settings/"
WORKSPACE = "/settings/workspaces/elsewhere/"
OF_GROUP = {"ack": "explicit", "ack_wait": "30", "max_deliver": "5", "max_ack_pending": "1000"}
LIMITS = {"discard": "old", "retention": "limits"}


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", answer.content.decode())))


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    return make_stream("orders", bodies=[b"12"] * 20, archive=False)


@pytest.fixture
def billing(stream: Stream) -> Group:
    return group_create(stream, name="billing", settings={}, actor=SYSTEM)[0]


def test_saving_a_group_leaves_what_was_saved_meanwhile_and_tells_of_it(
    owner: Client, billing: Group
) -> None:
    opened = sent_back(owner.get(GROUP))
    group_change(billing, changes={"ack_wait": 300.0, "max_deliver": -1}, actor=SYSTEM)
    answer = owner.post(GROUP, {**OF_GROUP, "description": "bills", "max_deliver": "7", **opened})
    told = text_of(answer)
    assert answer.status_code == 409
    assert "Nothing was saved" in told
    assert "Ack wait (seconds): 30 → 300" in told
    assert "Max deliveries: 5 → no limit" in told
    billing.refresh_from_db()
    assert (billing.ack_wait, billing.max_deliver, billing.description) == (300, -1, "")
    form = answer.context["form"]
    shown = {name: form[name].value() for name in ("ack_wait", "max_deliver", "description")}
    assert shown == {"ack_wait": "300", "max_deliver": "7", "description": "bills"}
    again = {**OF_GROUP, **shown, **sent_back(answer)}
    assert owner.post(GROUP, again).status_code == 302
    billing.refresh_from_db()
    assert (billing.ack_wait, billing.max_deliver, billing.description) == (300, 7, "bills")


def test_a_switch_that_somebody_set_meanwhile_stays_set(owner: Client, billing: Group) -> None:
    opened = sent_back(owner.get(GROUP))
    group_change(billing, changes={"ordered_by_key": True}, actor=SYSTEM)
    answer = owner.post(GROUP, {**OF_GROUP, "description": "bills", **opened})
    assert (answer.status_code, "in order: off → on" in text_of(answer)) == (409, True)
    assert answer.context["form"]["ordered_by_key"].value()
    assert owner.post(GROUP, {**OF_GROUP, "ordered_by_key": "on", **sent_back(answer)}).status_code == 302


def test_a_question_that_stood_meanwhile_is_asked_anew(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 3, retention="interest")
    billing = group_create(stream, name="billing", settings={}, actor=SYSTEM)[0]
    wanted = {**OF_GROUP, "filter_keys": "us.>", **sent_back(owner.get(GROUP))}
    asked = owner.post(GROUP, wanted)
    group_change(billing, changes={"ack_wait": 300.0}, actor=SYSTEM)
    answer = owner.post(GROUP, {**wanted, **sent_back(asked), "confirm": "orders"})
    assert (answer.status_code, "30 → 300" in text_of(answer)) == (409, True)
    billing.refresh_from_db()
    assert (billing.filter_keys, billing.ack_wait) == ([], 300)


def test_what_the_retention_editor_shows_follows_what_was_saved_meanwhile_and_tells_of_it(
    owner: Client, stream: Stream
) -> None:
    opened = sent_back(owner.get(RETENTION))
    stream_change(stream, changes={"ttl": 86400, "max_bytes": 1024, "discard": "new"}, actor=SYSTEM)
    wanted = {**LIMITS, "max_messages": "100", **opened}
    for headers in ({}, {"HX-Request": "true"}):
        shown = owner.get(RETENTION, wanted, headers=headers)
        told = text_of(shown)
        for changed in (
            "Max age: no limit → 1 d",
            "Max size: no limit → 1 KiB",
            "When full: Discard oldest → Refuse new",
        ):
            assert changed in told
    assert owner.post(RETENTION, {**wanted, **agreed(shown)}).status_code == 302
    stream.refresh_from_db()
    held = (stream.ttl, stream.max_bytes, stream.discard, stream.max_messages)
    assert held == (86400, 1024, "new", 100)


def agreed(page: Any) -> dict[str, Any]:
    """Everything that the form beside the effect sends."""
    form = page.content.decode().partition('action="/streams/orders/retention/')[2].partition("</form>")[0]
    return {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}


def test_limits_saved_after_the_effect_was_shown_are_told_before_anything_is_saved(
    owner: Client, stream: Stream
) -> None:
    shown = owner.get(RETENTION, {**LIMITS, "max_messages": "100", **sent_back(owner.get(RETENTION))})
    stream_change(stream, changes={"ttl": 86400}, actor=SYSTEM)
    answer = owner.post(RETENTION, agreed(shown))
    assert (answer.status_code, "Max age: no limit → 1 d" in text_of(answer)) == (409, True)
    assert "Nothing was saved" in text_of(answer)
    stream.refresh_from_db()
    assert (stream.ttl, stream.max_messages) == (86400, None)
    assert owner.post(RETENTION, agreed(answer)).status_code == 302
    stream.refresh_from_db()
    assert (stream.ttl, stream.max_messages) == (86400, 100)


def test_saving_a_streams_settings_leaves_what_was_saved_meanwhile_and_tells_of_it(
    owner: Client, stream: Stream
) -> None:
    stream_change(stream, changes={"archive": True}, actor=SYSTEM)
    opened = sent_back(owner.get(SETTINGS))
    stream_change(stream, changes={"labels": {"env": "production"}, "keys": ["a.>"]}, actor=SYSTEM)
    answer = owner.post(SETTINGS, {**filled(description="late"), **opened})
    assert answer.status_code == 409
    assert "Labels: – → env:production" in text_of(answer)
    assert "Key patterns: any key → a.>" in text_of(answer)
    again = filled(description="late", labels="env:production", keys="a.>")
    assert owner.post(SETTINGS, {**again, **sent_back(answer)}).status_code == 302
    stream.refresh_from_db()
    assert (stream.labels, stream.keys, stream.description) == ({"env": "production"}, ["a.>"], "late")


def of_workspace(**more: Any) -> dict[str, Any]:
    return {"plan": "unlimited", "rate_limit": "", "rate_burst": "", "do": "save", **more}


def test_saving_a_workspace_leaves_what_was_saved_meanwhile_and_tells_of_it(
    owner: Client, elsewhere: Workspace
) -> None:
    opened = sent_back(owner.get(WORKSPACE))
    workspace_change(elsewhere, changes={"plan": "pro", "rate_limit": 50}, actor=SYSTEM)
    answer = owner.post(WORKSPACE, {**of_workspace(rate_burst="70"), **opened})
    told = text_of(answer)
    assert answer.status_code == 409
    assert "Nothing was saved" in told
    assert "Plan: Unlimited → Pro" in told
    assert "Requests per second: no limit → 50" in told
    elsewhere.refresh_from_db()
    assert settings_of(elsewhere) == {"plan": "pro", "rate_limit": 50, "rate_burst": None}
    form = answer.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    assert shown == {"plan": "pro", "rate_limit": "50", "rate_burst": "70"}
    again = {**of_workspace(**shown), **sent_back(answer)}
    assert owner.post(WORKSPACE, again).status_code == 302
    elsewhere.refresh_from_db()
    assert settings_of(elsewhere) == {"plan": "pro", "rate_limit": 50, "rate_burst": 70}


def test_a_preview_of_a_plan_tells_what_was_saved_meanwhile_and_keeps_ones_own(
    owner: Client, elsewhere: Workspace
) -> None:
    opened = sent_back(owner.get(WORKSPACE))
    workspace_change(elsewhere, changes={"rate_limit": 50}, actor=SYSTEM)
    answer = owner.post(WORKSPACE, {**of_workspace(plan="free", do="look"), **opened})
    told = text_of(answer)
    assert (answer.status_code, "Nothing was saved" in told) == (200, False)
    assert "Requests per second: no limit → 50" in told
    assert "Plan free changes no stream" in told
    assert owner.post(WORKSPACE, {**of_workspace(plan="free", rate_limit="50"), **sent_back(answer)})
    elsewhere.refresh_from_db()
    assert settings_of(elsewhere) == {"plan": "free", "rate_limit": 50, "rate_burst": None}


def test_a_plan_that_was_looked_at_is_not_saved_over_what_was_saved_meanwhile(
    owner: Client, elsewhere: Workspace
) -> None:
    shown = owner.post(WORKSPACE, {**of_workspace(plan="free", do="look"), **sent_back(owner.get(WORKSPACE))})
    workspace_change(elsewhere, changes={"rate_limit": 50}, actor=SYSTEM)
    answer = owner.post(WORKSPACE, {**of_workspace(plan="free"), **sent_back(shown)})
    assert (answer.status_code, "no limit → 50" in text_of(answer)) == (409, True)
    elsewhere.refresh_from_db()
    assert settings_of(elsewhere) == {"plan": "unlimited", "rate_limit": 50, "rate_burst": None}


@pytest.mark.parametrize("opened", ["", "x", "[1]", '{"ack_wait": 7}', '{"stranger": "7"}'])
def test_what_no_page_has_sent_is_no_reason_to_fail(owner: Client, billing: Group, opened: str) -> None:
    answer = owner.post(GROUP, {**OF_GROUP, "description": "bills", "opened": opened})
    assert answer.status_code in (302, 409)
