"""Workspaces: made and deleted by the admin of the default one; what an account holds."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from streams import bearer, store
from streams.log import config
from streams.log.client import Log
from streams.models import Stream, Workspace
from tests.streams.api.conftest import Api, caller, code, fields


def test_a_workspace_is_made_listed_and_deleted_with_everything(ruler: Api, unique: str) -> None:
    made = ruler.post("workspaces/", {"name": unique, "plan": "pro"})
    assert made.status_code == 201
    assert made.json() == {
        "name": unique,
        "plan": "pro",
        "rate_limit": None,
        "rate_burst": None,
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


def test_a_workspace_of_many_streams_is_deleted_with_few_questions(
    ruler: Api, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand took more than a minute one by one, and the writers of all workspaces waited."""
    asked: list[object] = []
    send = Log._send

    def counting(log: Log, command: Any) -> Any:
        asked.append(command)
        return send(log, command)

    monkeypatch.setattr(Log, "_send", counting)

    def cost_of_deleting(streams: int) -> tuple[int, int]:
        name = f"{unique[:40]}-{streams}"
        assert ruler.post("workspaces/", {"name": name}).status_code == 201
        inside = caller(Workspace.objects.get(name=name))
        made = inside.post("streams/", [{"name": f"s{n}"} for n in range(streams)])
        assert made.status_code == 201
        asked.clear()
        with CaptureQueriesContext(connection) as queries:
            assert ruler.delete(f"workspaces/{name}").status_code == 204
        assert store.log().run(config.names_in(inside.workspace.pk)) == {}
        return len(queries), len(asked)

    few, many = cost_of_deleting(2), cost_of_deleting(90)
    assert many[0] <= few[0] + 5
    assert many[1] <= few[1] + 5


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


def test_a_rate_limit_is_set_with_the_workspace(ruler: Api, unique: str) -> None:
    made = ruler.post("workspaces/", {"name": unique, "rate_limit": 50, "rate_burst": 200}).json()
    assert (made["rate_limit"], made["rate_burst"]) == (50, 200)


def test_what_is_not_sent_keeps_its_value(ruler: Api, owner: Api) -> None:
    path = f"workspaces/{owner.workspace.name}/"
    assert ruler.patch(path, {"rate_limit": 50, "rate_burst": 200}).status_code == 200
    changed = ruler.patch(path, {"rate_limit": None}).json()
    assert (changed["rate_limit"], changed["rate_burst"], changed["plan"]) == (None, 200, "unlimited")


def test_a_change_is_recorded_with_before_and_after(ruler: Api, owner: Api) -> None:
    path = f"workspaces/{owner.workspace.name}"
    ruler.patch(path, {"rate_limit": 50})
    ruler.patch(path, {"rate_limit": 50})
    events = owner.get("events?kind=workspace.changed").json()
    assert [(event["before"], event["after"]) for event in events] == [
        ({"rate_limit": None}, {"rate_limit": 50})
    ]


def test_the_data_plane_is_told_of_a_rate_limit(ruler: Api, owner: Api) -> None:
    ruler.patch(f"workspaces/{owner.workspace.name}", {"rate_limit": 50, "rate_burst": 200})
    grant = store.log().run(config.token_grant(bearer.digest(owner.secret)))
    assert grant is not None
    assert (grant.rate_limit, grant.rate_burst) == (50, 200)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate_limit", 0),
        ("rate_limit", 1.5),
        ("rate_limit", "5"),
        ("rate_burst", 1_000_001),
        ("name", "other"),
        ("bogus", 1),
    ],
)
def test_a_wrong_change_is_named_and_changes_nothing(ruler: Api, owner: Api, field: str, value: Any) -> None:
    answer = ruler.patch(f"workspaces/{owner.workspace.name}", {"rate_limit": 7, field: value})
    assert (answer.status_code, fields(answer)) == (400, [field])
    assert Workspace.objects.get(pk=owner.workspace.pk).rate_limit is None


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("PATCH", "{}"), ("DELETE", "{}")])
def test_an_admin_of_another_workspace_has_no_say(owner: Api, method: str, path: str) -> None:
    body = {"POST": {"name": "x"}, "PATCH": {"rate_limit": None}}.get(method)
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
        "limits": {
            "default_ttl": 86_400,
            "longest_ttl": 604_800,
            "largest_bytes": 2**30,
            "rate_limit": None,
            "rate_burst": None,
        },
        "usage": {"streams": 1, "messages": 0, "bytes": 0},
        "scopes": ["admin", "consume", "erase", "manage", "observe", "publish", "read"],
        "streams": [],
    }
