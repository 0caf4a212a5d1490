"""A dry run of an alert rule has an address: of what it judges by, and of none of its receivers."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from streams.access import SYSTEM
from streams.models import AlertRule
from streams.services.alerts import rule_change
from tests.dashboard.conftest import MakeStream

PAGE = "/alerts/lags/"
SECRET = "https://example.org/hook?key=secret"
FORM = {"stream": "orders", "watch": "lag", "limit": "2", "lasting": "90 s", "webhook_url": SECRET}


@pytest.fixture
def rule(owner: Client, make_stream: MakeStream) -> AlertRule:
    make_stream("orders")
    owner.post("/alerts/", FORM | {"name": "lags", "most_minutes": "10"})
    return AlertRule.objects.get()


def link(answer: Any) -> str:
    found = re.findall(r'<a href="([^"]*)">Link to this dry run</a>', answer.content.decode())
    (address,) = map(unescape, found)
    return str(address)


def tried(answer: Any) -> str:
    told = re.sub(r"<[^>]+>", "", answer.content.decode())
    return re.sub(r"\s+", " ", unescape(told)).partition("Dry run of")[2].partition(".")[0]


def opened(owner: Client, path: str = PAGE) -> dict[str, str]:
    """The form of a page as it is, with what it was opened with."""
    form = owner.get(path).context["form"]
    return {**FORM, "lasting": "90 s", "most_minutes": "10", "opened": form.opened}


def test_what_a_rule_was_tried_with_is_tried_again_by_its_address(
    owner: Client, viewer: Client, rule: AlertRule
) -> None:
    answer = owner.post(PAGE, opened(owner) | {"limit": "7", "try": "1"})
    assert link(answer) == f"{PAGE}?limit=7&try=1"
    for shown, address in (answer, SECRET), (viewer.get(link(answer)), "https://example.org/…"):
        assert "“lag above 7” for at least 1 min 30 s" in tried(shown)
        assert "Not saved yet" in shown.content.decode()
        assert shown.context["form"]["limit"].value() == "7"
        assert shown.context["form"]["webhook_url"].value() == address
    rule.refresh_from_db()
    assert rule.limit == 2.0


def test_a_rule_that_is_not_made_yet_is_tried_again_too(
    owner: Client, viewer: Client, rule: AlertRule
) -> None:
    sent = FORM | {"name": "edges", "watch": "status", "statuses": ["slow", "losing"], "limit": ""}
    answer = owner.post("/alerts/", sent | {"try": "1"})
    address = link(answer)
    assert "secret" not in address
    again = viewer.get(address)
    assert tried(again) == tried(answer) != ""
    form = again.context["form"]
    assert [form[each].value() for each in ("name", "statuses")] == ["edges", ["slow", "losing"]]
    assert AlertRule.objects.count() == 1


def test_what_was_saved_meanwhile_of_the_rest_holds(owner: Client, rule: AlertRule) -> None:
    address = link(owner.post(PAGE, opened(owner) | {"limit": "7", "try": "1"}))
    rule_change(rule, changes={"for_seconds": 30, "group": "billing"}, actor=SYSTEM)
    again = owner.get(address)
    assert "“lag above 7” for at least 30 s, on orders / billing" in tried(again)


def test_a_rule_as_it_is_saved_can_be_tried_by_its_address(owner: Client, rule: AlertRule) -> None:
    answer = owner.post(PAGE, opened(owner) | {"try": "1"})
    assert link(answer) == f"{PAGE}?try=1"
    assert "“lag above 2”" in tried(owner.get(link(answer)))
    assert "Not saved yet" not in owner.get(link(answer)).content.decode()


def test_an_address_puts_no_receiver_into_a_form(owner: Client, rule: AlertRule) -> None:
    planted = "webhook_url=https%3A%2F%2Fevil.example%2F&email=eve%40evil.example&muted=1+d"
    for path in (PAGE, "/alerts/"):
        answer = owner.get(f"{path}?try=1&name=lags&stream=orders&watch=lag&limit=7&{planted}")
        assert "lag above 7" in tried(answer)
        form = answer.context["form"]
        assert [form[each].value() or "" for each in ("webhook_url", "email")] in ([SECRET, ""], ["", ""])
        assert "muted" not in form.fields or not form["muted"].value()


@pytest.mark.parametrize("query", ["limit=many", "watch=status", "lasting=soon", "watch=none"])
def test_an_address_with_what_makes_no_rule_says_so(owner: Client, rule: AlertRule, query: str) -> None:
    answer = owner.get(f"{PAGE}?try=1&{query}")
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert tried(answer) == ""
