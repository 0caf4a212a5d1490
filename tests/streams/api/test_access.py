"""Who gets in, and how far: tokens in the header, scopes, patterns, foreign workspaces."""

import sqlite3
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from streams import bearer
from streams.models import Membership, Role, Token
from tests.streams.api.conftest import Api, caller, code
from tests.waiting import Stopwatch

CALLS = [
    ("GET", "streams/", None, "observe"),
    ("POST", "streams/", {"name": "new"}, "manage"),
    ("GET", "streams/find?key=a", None, "observe"),
    ("GET", "streams/orders", None, "observe"),
    ("PATCH", "streams/orders", {"ttl": 5}, "manage"),
    ("DELETE", "streams/orders", None, "manage"),
    ("GET", "streams/orders/history", None, "read"),
    ("GET", "streams/orders/metrics", None, "observe"),
    ("GET", "events", None, "read"),
    ("GET", "account", None, "observe"),
    ("GET", "analytics/runs/", None, "read"),
    ("POST", "analytics/runs/", {}, "manage"),
    ("GET", "analytics/runs/1", None, "read"),
    ("GET", "analytics/replays", None, "read"),
    ("POST", "analytics/replays", {"source": "orders", "target": "orders"}, "manage"),
    ("GET", "analytics/replays/1", None, "read"),
    ("DELETE", "analytics/replays/1", None, "manage"),
    ("POST", "analytics/replays/1/start", None, "manage"),
    ("POST", "analytics/replays/1/pause", None, "manage"),
    ("GET", "analytics/erasures", None, "erase"),
    ("POST", "analytics/erasures", {"stream": "orders", "offset": 1}, "erase"),
    ("GET", "analytics/erasures/1", None, "erase"),
    ("GET", "tokens/", None, "admin"),
    ("POST", "tokens/", {"name": "x", "scopes": ["read"]}, "admin"),
    ("DELETE", "tokens/1", None, "admin"),
    ("GET", "users/", None, "admin"),
    ("POST", "users/", {"name": "x", "role": "viewer"}, "admin"),
    ("PATCH", "users/x", {"role": "admin"}, "admin"),
    ("DELETE", "users/x", None, "admin"),
    ("POST", "users/x/password", None, "admin"),
    ("GET", "workspaces/", None, "admin"),
    ("POST", "workspaces/", {"name": "x"}, "admin"),
    ("DELETE", "workspaces/x", None, "admin"),
    ("GET", "schema", None, "observe"),
    ("GET", "docs", None, "observe"),
]
OF_A_STREAM = [
    ("GET", "", None),
    ("PATCH", "", {"ttl": 5}),
    ("DELETE", "", None),
    ("GET", "/history", None),
    ("GET", "/metrics", None),
]


@pytest.mark.parametrize(("method", "path", "body", "scope"), CALLS)
def test_every_call_needs_its_scope(owner: Api, method: str, path: str, body: Any, scope: str) -> None:
    others = [other for other in bearer.SCOPES if not bearer.scopes_cover([other], scope)]
    lacking = caller(owner.workspace, scopes=others)
    answer = lacking.call(method, path, body)
    assert (answer.status_code, code(answer)) == (403, "forbidden")
    assert answer.json()["error"]["details"]["scope"] == scope


@pytest.mark.parametrize(("method", "path", "body", "scope"), CALLS)
@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer  ", "Basic dTpw", "Bearer wrong", "wrong", "ü"]
)
def test_every_call_needs_a_token(
    owner: Api, method: str, path: str, body: Any, scope: str, authorization: str
) -> None:
    answer = owner.call(method, path, body, authorization=authorization)
    assert (answer.status_code, code(answer)) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER   {}", "{}", " {} "])
def test_a_token_comes_with_its_scheme_or_bare(owner: Api, form: str) -> None:
    assert owner.get("account", authorization=form.format(owner.secret)).status_code == 200


def test_an_expired_token_is_refused(owner: Api) -> None:
    Token.objects.filter(workspace=owner.workspace).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert code(owner.get("account")) == "unauthorized"


def test_a_session_is_no_token(owner: Api) -> None:
    user = get_user_model().objects.create_user(owner.workspace.name, password="correct-horse-battery")
    Membership.objects.create(user=user, workspace=owner.workspace, role=Role.ADMIN)
    owner.client.force_login(user)
    assert code(owner.post("streams/", {"name": "x"}, authorization="")) == "unauthorized"


def test_logged_in_people_see_the_documentation(owner: Api) -> None:
    user = get_user_model().objects.create_user(owner.workspace.name, password="correct-horse-battery")
    Membership.objects.create(user=user, workspace=owner.workspace, role=Role.VIEWER)
    anonymous = Api("", owner.workspace)
    anonymous.client.force_login(user)
    assert anonymous.get("schema").status_code == 200
    assert anonymous.get("docs/").headers["Content-Type"].startswith("text/html")


def test_a_browser_without_a_session_is_asked_to_log_in(owner: Api) -> None:
    answer = Api("", owner.workspace).get("docs", accept="text/html,*/*")
    assert answer.status_code == 302
    assert answer.headers["Location"].endswith("?next=/api/v1/docs")


@pytest.mark.parametrize(("method", "tail", "body"), OF_A_STREAM)
def test_a_foreign_stream_is_not_there(owner: Api, stranger: Api, method: str, tail: str, body: Any) -> None:
    owner.post("streams/", {"name": "orders"})
    answer = stranger.call(method, f"streams/orders{tail}", body)
    assert (answer.status_code, code(answer)) == (404, "stream_not_found")
    assert owner.get("streams/orders").json()["ttl"] is None


def test_lists_hold_nothing_foreign(owner: Api, stranger: Api) -> None:
    owner.post("streams/", {"name": "orders", "keys": ["a"]})
    assert stranger.get("streams/").json() == []
    assert stranger.get("streams/find?key=a").json() == []
    assert "orders" not in {event["stream"] for event in stranger.get("events").json()}
    assert len(stranger.get("tokens/").json()) == 1
    assert stranger.get("account").json()["usage"]["streams"] == 0


def test_a_name_may_stand_in_several_workspaces(owner: Api, stranger: Api) -> None:
    owner.post("streams/", {"name": "orders", "ttl": 5})
    assert stranger.post("streams/", {"name": "orders"}).status_code == 201
    assert stranger.get("streams/orders").json()["ttl"] is None


@pytest.mark.parametrize(("method", "tail", "body"), OF_A_STREAM)
def test_a_narrowed_token_is_refused_outside(owner: Api, method: str, tail: str, body: Any) -> None:
    owner.post("streams/", {"name": "orders"})
    narrowed = caller(owner.workspace, streams=["shop-*"])
    answer = narrowed.call(method, f"streams/orders{tail}", body)
    assert (answer.status_code, code(answer)) == (403, "forbidden")


def test_a_narrowed_token_sees_and_makes_only_the_inside(owner: Api) -> None:
    owner.post("streams/", [{"name": "orders", "keys": ["a"]}, {"name": "shop-eu", "keys": ["a"]}])
    narrowed = caller(owner.workspace, streams=["shop-*", "x"])
    assert [row["name"] for row in narrowed.get("streams").json()] == ["shop-eu"]
    assert [row["name"] for row in narrowed.get("streams/find?key=a").json()] == ["shop-eu"]
    assert {event["stream"] for event in narrowed.get("events").json()} == {"shop-eu"}
    assert narrowed.get("account").json()["usage"]["streams"] == 1
    assert code(narrowed.post("streams/", {"name": "other"})) == "forbidden"
    assert code(narrowed.post("streams/", [{"name": "shop-us"}, {"name": "other"}])) == "forbidden"
    assert narrowed.post("streams/", {"name": "shop-us"}).status_code == 201


def test_internal_streams_are_nobodys(ruler: Api) -> None:
    assert code(ruler.get("streams/_metrics")) == "stream_not_found"
    assert all(not row["name"].startswith("_") for row in ruler.get("streams?limit=1000").json())


def test_use_is_noted_once_a_minute(owner: Api) -> None:
    owner.get("account")
    first = Token.objects.get(workspace=owner.workspace).last_used_at
    assert first is not None
    owner.get("account")
    assert Token.objects.get(workspace=owner.workspace).last_used_at == first


def test_what_only_reads_does_not_wait_for_who_writes(owner: Api) -> None:
    """A read notes when its token was used; while somebody else writes for long, it does so another time."""
    writer = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        watch = Stopwatch()
        assert owner.get("analytics/runs/").status_code == 200
        assert watch.elapsed_s < 5, "who writes waits for twenty"
        assert Token.objects.get(workspace=owner.workspace).last_used_at is None
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    owner.get("analytics/runs/")
    assert Token.objects.get(workspace=owner.workspace).last_used_at is not None
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (20_000,), "who writes waits as before"
