"""What a token that is narrowed to streams sees of what a whole workspace has: of it, the inside alone."""

from typing import Any

import pytest
from django.utils import timezone

from streams.models import Alert, AlertRule, Run
from streams.services.history import run_finish
from tests.streams.api.conftest import Api, caller, code

RULE: dict[str, Any] = {"watch": "lag", "limit": 2}


@pytest.fixture
def shop(owner: Api) -> Api:
    """Narrowed, with every right."""
    return caller(owner.workspace, streams=["shop-*"])


@pytest.fixture
def two(owner: Api) -> None:
    """A stream inside and one outside."""
    owner.post("streams/", [{"name": "shop-eu"}, {"name": "orders"}])


def policies(owner: Api) -> None:
    for name, users in (("shared", ["shop-eu"]), ("theirs", ["orders"]), ("unused", [])):
        owner.post("policies/", {"name": name, "ttl": 60, "description": f"for {users}"})
        for stream in users:
            owner.patch(f"streams/{stream}", {"policy": name})


def test_it_sees_the_policies_that_its_streams_use(owner: Api, shop: Api, two: None) -> None:
    policies(owner)
    owner.post("streams/", {"name": "bills", "policy": "shared"})
    assert [(each["name"], each["streams"]) for each in shop.get("policies").json()] == [("shared", 1)]
    owner.post("streams/", {"name": "shop-us", "policy": "shared"})
    assert [(each["name"], each["streams"]) for each in shop.get("policies").json()] == [("shared", 2)]
    assert shop.get("policies/shared").json()["streams"] == 2
    assert owner.get("policies/shared").json()["streams"] == 3
    for name in ("theirs", "unused", "not-there"):
        assert code(shop.get(f"policies/{name}")) == "policy_not_found"


def test_policies_come_in_pages_of_those_it_sees(owner: Api, shop: Api) -> None:
    for name in ("a", "b", "c", "d"):
        owner.post("policies/", {"name": name, "ttl": 60})
    for stream, policy in (("orders", "a"), ("shop-b", "b"), ("bills", "c"), ("shop-d", "d")):
        owner.post("streams/", {"name": stream, "policy": policy})
    first = shop.get("policies?limit=1")
    assert [each["name"] for each in first.json()] == ["b"]
    link = first.headers["Link"]
    second = shop.client.get(link[1 : link.index(">")], headers={"authorization": shop.secret})
    assert [each["name"] for each in second.json()] == ["d"]
    assert "Link" not in second.headers


def test_it_changes_no_policy(owner: Api, shop: Api, two: None) -> None:
    policies(owner)
    owner.patch("streams/shop-eu", {"policy": "shared"})
    for method, path, body in (
        ("POST", "policies", {"name": "x", "ttl": 5}),
        ("PATCH", "policies/shared", {"ttl": 5}),
        ("DELETE", "policies/shared", None),
        ("POST", "policies/shared/preview", {"ttl": 5}),
        ("POST", "policies/shared/apply", {"streams": ["shop-eu"]}),
    ):
        assert code(shop.call(method, path, body)) == "forbidden"
    assert owner.get("policies/shared").json()["ttl"] == 60


def test_it_sees_what_fired_about_its_streams(owner: Api, shop: Api, two: None) -> None:
    owner.post("alerts/rules/", {"name": "all", "stream": "*", **RULE})
    rule = AlertRule.objects.get(workspace=owner.workspace, name="all")
    for stream in ("shop-eu", "orders"):
        Alert.objects.create(rule=rule, stream=stream, began_at=timezone.now(), value=3, sentence=stream)
    assert [each["stream"] for each in shop.get("alerts").json()] == ["shop-eu"]
    assert len(owner.get("alerts").json()) == 2


def test_it_sees_the_rules_that_reach_no_further(owner: Api, shop: Api) -> None:
    for name, stream in (("all", "*"), ("one", "shop-eu"), ("outside", "orders"), ("some", "shop-e*")):
        owner.post("alerts/rules/", {"name": name, "stream": stream, **RULE})
    assert [each["name"] for each in shop.get("alerts/rules").json()] == ["one", "some"]
    assert shop.get("alerts/rules/some").json()["stream"] == "shop-e*"
    for name in ("all", "outside", "not-there"):
        assert code(shop.get(f"alerts/rules/{name}")) == "alert_rule_not_found"


def test_it_tries_rules_inside_and_makes_none(owner: Api, shop: Api, two: None) -> None:
    owner.post("alerts/rules/", {"name": "one", "stream": "shop-eu", **RULE})
    assert shop.post("alerts/try", {"stream": "shop-*", **RULE}).status_code == 200
    for method, path, body in (
        ("POST", "alerts/try", {"stream": "*", **RULE}),
        ("POST", "alerts/try", {"stream": "orders", **RULE}),
        ("POST", "alerts/rules", {"name": "x", "stream": "shop-eu", **RULE}),
        ("PATCH", "alerts/rules/one", {"limit": 5}),
        ("DELETE", "alerts/rules/one", None),
    ):
        assert code(shop.call(method, path, body)) == "forbidden"
    assert AlertRule.objects.get(workspace=owner.workspace).limit == 2


def test_it_sees_the_tokens_that_it_rules(owner: Api, shop: Api) -> None:
    for name, streams in (("inside", ["shop-eu"]), ("outside", ["orders"]), ("both", ["shop-eu", "orders"])):
        owner.post("tokens/", {"name": name, "scopes": ["read"], "streams": streams})
    assert {tuple(each["streams"]) for each in shop.get("tokens").json()} == {("shop-*",), ("shop-eu",)}
    assert len(owner.get("tokens").json()) == 5


def test_labels_lead_to_its_streams_only(owner: Api, shop: Api) -> None:
    owner.post("streams/", [{"name": name, "labels": {"team": "eu"}} for name in ("shop-eu", "orders")])
    assert [each["name"] for each in shop.get("streams?label=team:eu").json()] == ["shop-eu"]


def test_events_without_a_stream_are_not_its_to_see(owner: Api, shop: Api, two: None) -> None:
    policies(owner)
    owner.post("tokens/", {"name": "x", "scopes": ["read"]})
    seen = shop.get("events?limit=100").json()
    assert {each["stream"] for each in seen} == {"shop-eu"}
    assert None in {each["stream"] for each in owner.get("events?limit=100").json()}


@pytest.mark.parametrize("narrow", [False, True])
def test_what_a_run_met_is_shown_to_who_sees_every_stream(ruler: Api, narrow: bool) -> None:
    run = Run.objects.create(job="archive", state="running")
    run_finish(run, counts={"messages": 7}, error="orders: no room")
    asker = caller(ruler.workspace, streams=["shop-*"]) if narrow else ruler
    (seen,) = [each for each in asker.get("analytics/runs").json() if each["id"] == run.pk]
    assert seen["counts"] == ({} if narrow else {"messages": 7})
    assert ("orders" in seen["error"]) is not narrow
