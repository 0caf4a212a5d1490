"""The page of alerts: what fires, the rules, and what a rule would have done."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from streams import store
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Alert, AlertRule, Notification
from streams.services.dispatch import notifications_deliver
from streams.upkeep.alerting import Alerting
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, make_group

FORM = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": ""}


BADGE = re.compile(
    r'data-field="alerts" data-format="differs" data-value="0"( hidden)?>.*?>([^<]*)</span>', re.DOTALL
)


def firing(client: Client) -> str | None:
    """What stands beside the menu's word; None where it is hidden."""
    found = BADGE.search(client.get("/alerts/").content.decode())
    assert found
    return None if found[1] else found[2]


def test_open_pages_hear_what_fires(
    owner: Client, viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/alerts/", FORM)

    def beat(client: Client) -> tuple[int, str]:
        (told,) = client.get("/live/now/?topic=overview").json()["events"]
        return told["event"]["alerts"], told["event"]["alerts_mark"]

    quiet = beat(viewer)
    assert (quiet[0], beat(stranger)[0]) == (0, 0)
    assert f'data-field="alerts_mark" data-format="differs" data-value="{quiet[1]}"' in shown(viewer)
    Alerting().look(now_s=0)
    loud = beat(viewer)
    assert loud[0] == 1
    assert loud[1] != quiet[1]
    assert f'data-value="{loud[1]}"' in shown(viewer)
    owner.post("/alerts/lags/mute/", {"seconds": "3600"})
    muted = beat(viewer)
    assert muted[0] == 0
    assert muted[1] not in {quiet[1], loud[1]}
    assert beat(stranger) == quiet


def shown(client: Client) -> str:
    return client.get("/alerts/").content.decode()


def test_a_rule_is_made_and_what_fires_stands_on_every_page(
    owner: Client, viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    assert "No rules yet" in owner.get("/alerts/").content.decode()
    assert owner.post("/alerts/", FORM)["Location"] == "/alerts/"
    Alerting().look(now_s=0)
    page = viewer.get("/alerts/").content.decode()
    assert "Group billing of orders: lag 20, above 2." in page
    assert firing(viewer) == "1"
    assert "An alert is firing." in viewer.get("/").content.decode()
    assert firing(stranger) is None
    assert "Group billing" not in stranger.get("/alerts/").content.decode()


def text_of(client: Client) -> str:
    """What the page of alerts says, without its markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", shown(client)).split())


def test_what_fires_says_its_newest_figure_and_the_one_it_began_with(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=BODIES)
    make_group(stream)
    owner.post("/alerts/", FORM)
    alerting = Alerting()
    alerting.look(now_s=0)
    assert "when it began" not in text_of(viewer), "the figure is still that of its beginning"
    store.log().run(append(stream.stream_id, [NewMessage(id=f"more-{n}", body=b"1") for n in range(5)]))
    alerting.look(now_s=10)
    Alert.objects.update(began_at=timezone.now() - timedelta(minutes=7))
    page = text_of(viewer)
    assert "Group billing of orders: lag 25, above 2. lag 20 when it began 7 min ago" in page
    assert "last evaluated" not in page
    Alert.objects.update(newest_at=timezone.now() - timedelta(minutes=5))
    assert "last evaluated 5 min ago" in text_of(viewer)
    owner.post("/alerts/lags/switch/", {"enabled": "off"})
    page = text_of(viewer)
    assert "When it began Started Ended" in page
    assert "Group billing of orders: lag 20, above 2." in page


def test_an_alert_that_the_version_before_began_says_that_its_figure_is_of_then(
    owner: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/alerts/", FORM)
    Alerting().look(now_s=0)
    began_at = timezone.now() - timedelta(minutes=7)
    Alert.objects.update(began_at=began_at, began_with="", newest="", newest_at=None)
    assert "Group billing of orders: lag 20, above 2. when it began 7 min ago" in text_of(owner)


def test_what_fires_is_muted_with_one_click_and_heard_again_with_another(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/alerts/", FORM)
    Alerting().look(now_s=0)
    page = viewer.get("/alerts/").content.decode()
    assert 'name="seconds" value="3600" disabled' in page
    assert "Mute this rule for</span>" in page, "not only the alert beside it"
    before = timezone.now()
    sent = {"seconds": "3600", "reason": "moving the warehouse"}
    assert owner.post("/alerts/lags/mute/", sent)["Location"] == "/alerts/"
    until = AlertRule.objects.get().muted_until
    assert until is not None
    assert 3600 <= (until - before).total_seconds() < 3660
    page = owner.get("/alerts/").content.decode()
    assert "Group billing of orders: lag 20, above 2." in page, "it fires on, and is listed"
    assert "muted until" in page
    assert "Unmute this rule" in page
    assert ">moving the warehouse</bdi>" in page
    assert firing(owner) is None, "and counts on no page"
    owner.post("/alerts/lags/mute/", {"seconds": "0"})
    rule = AlertRule.objects.get()
    assert (rule.muted_until, rule.mute_reason) == (None, "")
    assert firing(viewer) == "1"


@pytest.mark.parametrize("seconds", ["", "-1", "7", "soon", "99999999999999999999"])
def test_what_is_no_time_to_mute_for_is_refused(owner: Client, make_stream: MakeStream, seconds: str) -> None:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    assert owner.post("/alerts/lags/mute/", {"seconds": seconds}).status_code == 400
    assert AlertRule.objects.get().muted_until is None


def test_a_reason_without_a_mute_or_without_end_is_refused(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    for sent, field in ({"mute_reason": "moving"}, "mute_reason"), ({"muted": "soon"}, "muted"):
        answer = owner.post("/alerts/lags/", FORM | sent)
        assert (answer.status_code, field in answer.context["form"].errors) == (422, True)
    assert owner.post("/alerts/lags/mute/", {"seconds": "3600", "reason": "x" * 201}).status_code == 400
    assert AlertRule.objects.get().muted_until is None


def test_a_rule_is_tried_without_being_made(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    page = owner.post("/alerts/", FORM | {"try": "1"})
    assert page.context["tried"].spans == []
    assert "There are no samples yet" in page.content.decode()
    assert not AlertRule.objects.exists()


def test_what_a_rule_would_have_done_is_told_as_it_is_typed(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    owner.post("/alerts/", FORM)
    by_htmx = {"HX-Request": "true"}
    for page in ("/alerts/", "/alerts/lags/"):
        for sent in (FORM, FORM | {"name": ""}):
            told = owner.post(page, sent | {"limit": "7", "try": "1"}, headers=by_htmx)
            assert (told.status_code, told.context["tried_rule"].limit) == (200, 7)
            assert "There are no samples yet" in told.content.decode()
            assert "<form" not in told.content.decode()
        unfinished = owner.post(page, FORM | {"limit": "", "try": "1"}, headers=by_htmx)
        assert (unfinished.status_code, unfinished.content.strip()) == (200, b"")
    assert AlertRule.objects.get().limit == float(FORM["limit"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"limit": ""}, "limit"),
        ({"watch": "status"}, "statuses"),
        ({"clear": "3"}, "clear"),
        ({"webhook_url": "ftp://x"}, "webhook_url"),
        ({"webhook_url": "http://127.1/"}, "webhook_url"),
        ({"lasting": "soon"}, "lasting"),
        ({"name": "<b>"}, "name"),
    ],
)
def test_what_makes_no_rule_is_said_at_its_field(owner: Client, changes: dict[str, Any], field: str) -> None:
    answer = owner.post("/alerts/", FORM | changes)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert f"{field}: " not in answer.content.decode(), "what the API calls it"
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize("later", [False, True])
def test_the_secret_of_a_webhook_is_shown_once(owner: Client, later: bool) -> None:
    if later:
        owner.post("/alerts/", FORM)
    address = "/alerts/lags/" if later else "/alerts/"
    owner.post(address, FORM | {"webhook_url": "https://example.org/hook"})
    secret = AlertRule.objects.get().webhook_secret
    assert secret in owner.get("/alerts/").content.decode()
    for path in ("/alerts/", "/alerts/lags/"):
        assert secret not in owner.get(path).content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"watch": "lag", "limit": "12345"}, "lag above 12,345"),
        ({"watch": "lag_seconds", "limit": "90"}, "time lag above 1 min 30 s"),
        ({"watch": "retention_edge", "limit": "0.5"}, "retention edge nearer than 0.5 s"),
        ({"watch": "rate_above", "limit": "0.1"}, "published above 0.1/s"),
        ({"watch": "status", "statuses": ["stalled", "slow"]}, "status is stalled or slow"),
    ],
)
def test_the_list_says_in_the_words_of_the_form_when_a_rule_fires(
    owner: Client, changes: dict[str, Any], words: str
) -> None:
    owner.post("/alerts/", FORM | changes)
    page = owner.get("/alerts/").content.decode()
    assert f">{words}</td>" in page
    assert not re.search(r'name="mute', page), "a new rule is not muted"
    assert re.search(r'name="mute', owner.get("/alerts/lags/").content.decode())


def test_a_test_says_why_a_receiver_did_not_take_it(owner: Client, viewer: Client) -> None:
    owner.post("/alerts/", FORM)
    assert "Send a test" not in owner.get("/alerts/lags/").content.decode(), "it tells nobody"
    owner.post("/alerts/", FORM | {"name": "told", "webhook_url": "https://okmq.invalid/hook"})
    assert "Send a test" in owner.get("/alerts/told/").content.decode()
    page = owner.post("/alerts/told/test/", follow=True)
    assert page.redirect_chain[-1][0] == "/alerts/told/"
    assert "was not accepted: The name okmq.invalid has no address." in page.content.decode()
    assert viewer.post("/alerts/told/test/").status_code == 403


def test_pages_say_how_telling_went(owner: Client, make_stream: MakeStream) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/alerts/", FORM | {"webhook_url": "https://okmq.invalid/hook"})
    Alerting().look(now_s=0)
    notifications_deliver()
    for path, times in ("/alerts/", 2), ("/alerts/lags/", 1):
        page = owner.get(path).content.decode()
        assert page.count("The name okmq.invalid has no address.") == times
        assert page.count("1 attempt,") == times
    Notification.objects.update(due_at=None)
    assert "Gave up after 1 attempt." in owner.get("/alerts/lags/").content.decode()
    Notification.objects.update(delivered_at=timezone.now())
    assert "not accepted" not in owner.get("/alerts/").content.decode()


def test_pages_say_what_is_held_back_and_what_was_told_together(
    owner: Client, make_stream: MakeStream
) -> None:
    for name in ("orders", "orders.eu", "orders.us"):
        make_group(make_stream(name, bodies=BODIES))
    bounded = {"webhook_url": "https://okmq.invalid/hook", "most_messages": "1", "most_minutes": "5"}
    owner.post("/alerts/", FORM | {"stream": "orders*"} | bounded)
    form = owner.get("/alerts/lags/").context["form"]
    assert [form[name].value() for name in ("most_messages", "most_minutes")] == [1, 5]
    Alerting().look(now_s=0)
    notifications_deliver()
    page = owner.get("/alerts/").content.decode()
    assert (page.count("rate-limited until"), page.count("as a digest")) == (2, 3), "its field says it, too"
    _, *held = Notification.objects.order_by("pk")
    now = timezone.now()
    for each in held:
        each.told_with = held[0] if each != held[0] else None
        each.attempts, each.tried_at, each.delivered_at, each.due_at = 1, now, now, None
        each.save()
    assert owner.get("/alerts/").content.decode().count("in a digest of 2") == 3, (
        "of two alerts and of the rule"
    )
    owner.post("/alerts/lags/", FORM | {"stream": "orders*", "most_messages": "", "most_minutes": ""})
    rule = AlertRule.objects.get()
    assert (rule.most_messages, rule.most_minutes) == (None, 10)


@pytest.mark.parametrize(("lasting", "for_seconds"), [("", 0), ("0 s", 0), ("0 min", 0), ("90 s", 90)])
def test_a_rule_may_fire_at_once_as_over_the_api(
    owner: Client, make_stream: MakeStream, lasting: str, for_seconds: int
) -> None:
    make_stream("orders")
    owner.post("/alerts/", FORM | {"lasting": lasting})
    assert AlertRule.objects.get().for_seconds == for_seconds
    shown = owner.get("/alerts/lags/").context["form"]["lasting"].value()
    assert shown == f"{for_seconds} s"
    assert owner.post("/alerts/lags/", FORM | {"lasting": shown, "limit": "7"}).status_code == 302
    rule = AlertRule.objects.get()
    assert (rule.limit, rule.for_seconds) == (7.0, for_seconds)


@pytest.mark.parametrize("lasting", ["0", "0.5 s", "2 d", "-1 s"])
def test_what_is_no_time_for_a_rule_is_said_at_its_field(
    owner: Client, make_stream: MakeStream, lasting: str
) -> None:
    make_stream("orders")
    answer = owner.post("/alerts/", FORM | {"lasting": lasting})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["lasting"])


def test_a_rule_is_saved_muted_switched_off_and_deleted(owner: Client) -> None:
    owner.post("/alerts/", FORM)
    shown = owner.get("/alerts/lags/").context["form"]
    sent = {name: shown[name].value() for name in shown.fields if shown[name].value() not in (None, "", [])}
    owner.post("/alerts/lags/", sent | {"limit": "7", "muted": "2 h"})
    rule = AlertRule.objects.get()
    assert (rule.limit, rule.for_seconds, rule.muted_until is not None) == (7.0, 0, True)
    owner.post("/alerts/lags/switch/", {"enabled": "off"})
    assert AlertRule.objects.get().enabled is False
    owner.post("/alerts/lags/delete/")
    assert not AlertRule.objects.exists()


def test_a_viewer_changes_no_rule(owner: Client, viewer: Client, stranger: Client) -> None:
    owner.post("/alerts/", FORM)
    for path in ("/alerts/", "/alerts/lags/", "/alerts/lags/switch/", "/alerts/lags/delete/"):
        assert viewer.post(path, FORM | {"name": "more"}).status_code == 403
    assert stranger.post("/alerts/lags/delete/").status_code == 404
    assert (AlertRule.objects.count(), Alert.objects.count()) == (1, 0)


def test_a_rule_about_the_status_ok_stays_so_when_it_is_saved(owner: Client) -> None:
    status = {"watch": "status", "limit": "", "statuses": ["ok", "stalled"]}
    assert owner.post("/alerts/", FORM | status).status_code == 302
    shown = owner.get("/alerts/lags/").context["form"]["statuses"].value()
    assert sorted(shown) == ["ok", "stalled"]
    owner.post("/alerts/lags/", FORM | status | {"statuses": shown, "lasting": "2 min"})
    rule = AlertRule.objects.get()
    assert (sorted(rule.statuses), rule.for_seconds) == (["ok", "stalled"], 120)
    owner.post("/alerts/lags/", FORM | status | {"statuses": ["ok"]})
    assert AlertRule.objects.get().statuses == ["ok"]
