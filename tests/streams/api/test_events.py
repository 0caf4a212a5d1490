"""Events: who did what, ascending, from an id on."""

from typing import Any
from urllib.parse import urlencode

import pytest

from streams.models import Event
from tests.streams.api.conftest import Api, caller, code


def kinds(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [event["kind"] for event in answer.json()]


def test_what_was_done_is_told_with_before_and_after(owner: Api) -> None:
    owner.post("streams/", {"name": "orders", "ttl": 60})
    owner.patch("streams/orders", {"ttl": 5})
    event = owner.get("events?stream=orders&kind=stream.changed").json()[0]
    assert event == {
        "id": event["id"],
        "time": event["time"],
        "kind": "stream.changed",
        "workspace": owner.workspace.name,
        "stream": "orders",
        "group": None,
        "actor": "token test",
        "address": "127.0.0.1",
        "before": {"ttl": 60},
        "after": {"ttl": 5},
        "summary": "Stream orders was changed: ttl.",
    }


def test_without_an_id_the_newest_come_in_order(owner: Api) -> None:
    owner.post("streams/", {"name": "a"})
    owner.delete("streams/a")
    assert kinds(owner.get("events?limit=2")) == ["stream.created", "stream.deleted"]


def test_with_an_id_what_came_later_page_by_page(owner: Api) -> None:
    first = owner.get("events").json()[-1]["id"]
    owner.post("streams/", [{"name": "a"}, {"name": "b"}, {"name": "c"}])
    page = owner.get(f"events?after={first}&limit=2")
    assert [event["stream"] for event in page.json()] == ["a", "b"]
    link = page.headers["Link"]
    rest = owner.client.get(link[1 : link.index(">")], headers={"authorization": owner.secret})
    assert [event["stream"] for event in rest.json()] == ["c"]
    assert "Link" not in rest.headers


def test_events_are_narrowed_by_group_actor_and_the_beginning_of_their_kind(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    for name in ("billing", "audit"):
        owner.post("streams/orders/groups/", {"name": name})
    assert kinds(owner.get("events?group=billing")) == ["group.created"]
    assert kinds(owner.get("events?kind=group.")) == ["group.created"] * 2
    assert kinds(owner.get("events?kind=group")) == []
    assert kinds(owner.get("events?stream=orders&actor=TOKEN")) == ["stream.created", *["group.created"] * 2]
    assert kinds(owner.get("events?actor=nobody")) == []


def test_events_of_a_span_begin_with_its_begin_and_end_before_its_end(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.delete("streams/orders")
    made, gone = Event.objects.filter(workspace=owner.workspace.name, stream="orders").order_by("id")
    span = urlencode({"from": made.time.isoformat(), "to": gone.time.isoformat()})
    assert kinds(owner.get(f"events?stream=orders&{span}")) == ["stream.created"]


def test_a_narrowed_token_finds_no_more_by_asking_for_it(owner: Api, unique: str) -> None:
    for name in ("mine", "other"):
        owner.post("streams/", {"name": name})
    narrowed = caller(owner.workspace, streams=["mine"])
    assert [event["stream"] for event in narrowed.get("events?kind=stream.&actor=token").json()] == ["mine"]


def test_a_deleted_workspace_is_known_to_the_default_one_only(ruler: Api, owner: Api, unique: str) -> None:
    ruler.post("workspaces/", {"name": f"{unique}-gone"})
    ruler.delete(f"workspaces/{unique}-gone")
    assert "workspace.deleted" in kinds(ruler.get("events"))
    assert "workspace.deleted" not in kinds(owner.get("events"))


@pytest.mark.parametrize(
    "query", ["after=x", "after=-1", "limit=0", "stream=%00", "kind=%00", "actor=%00", "from=1", "before=1"]
)
def test_a_wrong_query_is_refused(owner: Api, query: str) -> None:
    assert code(owner.get(f"events?{query}")) == "validation_error"


def test_what_happened_in_another_workspace_is_told_to_who_rules_all(
    ruler: Api, owner: Api, unique: str
) -> None:
    ruler.post("workspaces/", {"name": f"{unique}-gone"})
    ruler.delete(f"workspaces/{unique}-gone")
    assert kinds(ruler.get(f"events?workspace={unique}-gone")) == ["workspace.created"]
    assert code(owner.get(f"events?workspace={unique}-gone")) == "forbidden"
    assert owner.get(f"events?workspace={owner.workspace.name}").status_code == 200


def test_what_is_about_one_rule_or_token_is_found_by_its_name(owner: Api) -> None:
    rule = {"name": "lags", "stream": "orders", "watch": "lag", "limit": 2, "for_seconds": 20}
    owner.post("alerts/rules/", rule)
    owner.patch("alerts/rules/lags", {"limit": 7})
    owner.delete("alerts/rules/lags")
    owner.post("tokens/", {"name": "shop", "scopes": ["read"]})
    wanted = ["alert_rule.created", "alert_rule.changed", "alert_rule.deleted"]
    assert kinds(owner.get("events?about=lags")) == wanted
    assert kinds(owner.get("events?about=lags&kind=alert.,alert_rule.")) == wanted
    assert kinds(owner.get("events?about=shop")) == ["token.created"]
    assert kinds(owner.get("events?about=lag")) == []
