"""Workspaces: made and deleted by the admin of the default one; what an account holds."""

from typing import Any

import pytest

from streams import store
from streams.log import config
from streams.models import Stream, Workspace
from tests.streams.api.conftest import Api, caller, code, fields


def test_a_workspace_is_made_listed_and_deleted_with_everything(ruler: Api, unique: str) -> None:
    made = ruler.post("workspaces/", {"name": unique, "plan": "pro"})
    assert made.status_code == 201
    assert made.json() == {
        "name": unique,
        "plan": "pro",
        "streams": 0,
        "created_at": made.json()["created_at"],
    }
    inside = caller(Workspace.objects.get(name=unique))
    assert inside.post("streams/", {"name": "orders"}).status_code == 201
    stream = Stream.objects.get(workspace=inside.workspace)
    assert {"name": unique, "streams": 1}.items() <= {
        row["name"]: row for row in ruler.get("workspaces").json()
    }[unique].items()
    assert ruler.delete(f"workspaces/{unique}").status_code == 204
    assert code(inside.get("streams")) == "unauthorized"
    assert store.log().run(config.stream_settings(stream.stream_id)) is None
    assert store.log().run(config.names_in(inside.workspace.pk)) == {}
    assert code(ruler.delete(f"workspaces/{unique}")) == "workspace_not_found"


def test_a_name_is_taken_once(ruler: Api, owner: Api) -> None:
    answer = ruler.post("workspaces/", {"name": owner.workspace.name})
    assert (answer.status_code, code(answer)) == (409, "workspace_exists")


def test_default_stays(ruler: Api) -> None:
    answer = ruler.delete("workspaces/default")
    assert (answer.status_code, code(answer)) == (403, "operation_denied")


@pytest.mark.parametrize(
    ("field", "value"), [("name", "a b"), ("name", None), ("plan", "gold"), ("plan", None), ("bogus", 1)]
)
def test_a_wrong_field_is_named(ruler: Api, unique: str, field: str, value: Any) -> None:
    answer = ruler.post("workspaces/", {"name": unique, field: value})
    assert (answer.status_code, fields(answer)) == (400, [field])
    assert not Workspace.objects.filter(name=unique).exists()


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("DELETE", "{}")])
def test_an_admin_of_another_workspace_has_no_say(owner: Api, method: str, path: str) -> None:
    body = {"name": "x"} if method == "POST" else None
    answer = owner.call(method, f"workspaces/{path.format(owner.workspace.name)}", body)
    assert (answer.status_code, code(answer)) == (403, "forbidden")


@pytest.mark.parametrize("name", ["%00", "a%0A", "find", "%2e%2e", "x" * 300])
def test_no_such_workspace(ruler: Api, name: str) -> None:
    assert code(ruler.delete(f"workspaces/{name}")) == "workspace_not_found"


def test_an_account_tells_plan_limits_and_usage(owner: Api) -> None:
    Workspace.objects.filter(pk=owner.workspace.pk).update(plan="free")
    owner.post("streams/", {"name": "orders"})
    assert owner.get("account/").json() == {
        "workspace": owner.workspace.name,
        "plan": "free",
        "limits": {"default_ttl": 86_400, "longest_ttl": 604_800},
        "usage": {"streams": 1, "messages": 0, "bytes": 0},
        "scopes": ["admin", "consume", "manage", "publish", "read"],
        "streams": [],
    }
