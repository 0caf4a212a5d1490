"""Events: who did what, ascending, from an id on."""

from typing import Any

import pytest

from tests.streams.api.conftest import Api, code


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


def test_a_deleted_workspace_is_known_to_the_default_one_only(ruler: Api, owner: Api, unique: str) -> None:
    ruler.post("workspaces/", {"name": f"{unique}-gone"})
    ruler.delete(f"workspaces/{unique}-gone")
    assert "workspace.deleted" in kinds(ruler.get("events"))
    assert "workspace.deleted" not in kinds(owner.get("events"))


@pytest.mark.parametrize("query", ["after=x", "after=-1", "limit=0", "stream=%00", "kind=%00", "before=1"])
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
