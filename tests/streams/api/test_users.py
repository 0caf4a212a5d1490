"""People over the API: who may take them in, change them, and what stays of them."""

import json
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model

from streams import bearer
from streams.access import Caller, caller_for_user, role_for
from streams.models import Event, Login, Membership, OneTimePassword, Role
from tests.streams.api.conftest import Api, caller, code, fields


def add(api: Api, name: str, role: str = "viewer", **more: Any) -> Any:
    return api.post("users/", {"name": name, "role": role, **more})


def one(api: Api, name: str) -> Any:
    return next(row for row in api.get("users/").json() if row["name"] == name)


def caller_of(name: str, **where: Any) -> Caller:
    return caller_for_user(get_user_model().objects.get(username=name), **where)


def test_a_new_person_gets_a_one_time_password_that_is_shown_once(owner: Api, unique: str) -> None:
    answer = add(owner, unique, "operator")
    made = answer.json()
    assert (answer.status_code, made["role"], made["one_time_password"]) == (201, "operator", True)
    assert authenticate(username=unique, password=made["password"]) is not None
    assert "password" not in one(owner, unique)


@pytest.mark.parametrize("role", Role.values)
def test_a_role_has_the_rights_of_its_name(owner: Api, unique: str, role: str) -> None:
    add(owner, unique, role)
    rights = {scope for scope in bearer.SCOPES if caller_of(unique).may(scope)}
    wanted = {
        "observer": {"observe"},
        "viewer": {"observe", "read"},
        "operator": {"observe", "read", "publish", "consume", "manage"},
    }
    assert rights == wanted.get(role, set(bearer.SCOPES))


def test_each_right_has_a_least_role() -> None:
    assert [role_for(scope) for scope in ("observe", "read", "publish", "consume", "manage", "admin")] == [
        "observer",
        "viewer",
        "operator",
        "operator",
        "operator",
        "admin",
    ]


def test_a_role_changes_and_the_event_tells_before_and_after(owner: Api, unique: str) -> None:
    add(owner, unique)
    assert owner.patch(f"users/{unique}", {"role": "admin"}).json()["role"] == "admin"
    assert caller_of(unique).may("admin")
    event = Event.objects.filter(kind="user.changed", workspace=owner.workspace.name).latest("id")
    assert (event.before, event.after) == (
        {"name": unique, "role": "viewer"},
        {"name": unique, "role": "admin"},
    )


def test_a_deactivated_account_cannot_log_in_until_it_is_activated(owner: Api, unique: str) -> None:
    password = add(owner, unique).json()["password"]
    Login.objects.create(user=get_user_model().objects.get(username=unique), session_key=unique)
    assert owner.patch(f"users/{unique}", {"active": False}).json()["active"] is False
    assert authenticate(username=unique, password=password) is None
    assert not Login.objects.filter(session_key=unique).exists()
    owner.patch(f"users/{unique}", {"active": True})
    assert authenticate(username=unique, password=password) is not None


def test_a_reset_password_replaces_the_one_of_before(owner: Api, unique: str) -> None:
    first = add(owner, unique).json()["password"]
    OneTimePassword.objects.all().delete()
    second = owner.post(f"users/{unique}/password").json()["password"]
    assert authenticate(username=unique, password=first) is None
    assert authenticate(username=unique, password=second) is not None
    assert one(owner, unique)["one_time_password"] is True


def test_a_reset_password_activates_nobody(owner: Api, unique: str) -> None:
    add(owner, unique)
    owner.patch(f"users/{unique}", {"active": False})
    password = owner.post(f"users/{unique}/password").json()["password"]
    assert authenticate(username=unique, password=password) is None
    owner.patch(f"users/{unique}", {"active": True})
    assert authenticate(username=unique, password=password) is not None


def test_who_is_removed_everywhere_is_deactivated_and_keeps_their_name(owner: Api, unique: str) -> None:
    add(owner, unique)
    assert owner.delete(f"users/{unique}").status_code == 204
    assert code(owner.patch(f"users/{unique}", {"role": "admin"})) == "user_not_found"
    assert get_user_model().objects.get(username=unique).is_active is False
    again = add(owner, unique)
    assert (again.status_code, again.json()["active"]) == (201, True)
    assert again.json()["password"]


def test_a_name_is_taken_once_whatever_its_capitals(owner: Api, stranger: Api, unique: str) -> None:
    add(owner, unique)
    assert code(add(owner, unique)) == "user_exists"
    assert code(add(owner, unique.upper())) == "user_exists"
    assert code(add(stranger, unique)) == "user_exists"
    assert code(add(owner, "System")) == "user_exists"


def test_only_the_rulers_of_all_share_a_person_between_workspaces(
    ruler: Api, owner: Api, stranger: Api, unique: str
) -> None:
    add(owner, unique, "admin")
    shared = add(ruler, unique, "viewer", workspace=stranger.workspace.name)
    assert (shared.status_code, shared.json()["password"]) == (201, None)
    assert caller_of(unique, workspace=owner.workspace.name).role == "admin"
    assert caller_of(unique, workspace=stranger.workspace.name).role == "viewer"


@pytest.mark.parametrize(
    ("method", "tail", "body"), [("POST", "/password", None), ("PATCH", "", {"active": False})]
)
def test_an_account_of_several_workspaces_is_the_rulers(
    ruler: Api, owner: Api, stranger: Api, unique: str, method: str, tail: str, body: Any
) -> None:
    add(owner, unique)
    add(ruler, unique, "viewer", workspace=stranger.workspace.name)
    assert code(owner.call(method, f"users/{unique}{tail}", body)) == "forbidden"
    path = f"users/{unique}{tail}?workspace={owner.workspace.name}"
    assert ruler.call(method, path, body).status_code == 200


def test_people_of_another_workspace_are_not_there(owner: Api, stranger: Api, unique: str) -> None:
    add(owner, unique)
    assert stranger.get("users/").json() == []
    assert code(stranger.get(f"users/?workspace={owner.workspace.name}")) == "workspace_not_found"
    for method, tail, body in (
        ("PATCH", "", {"role": "admin"}),
        ("DELETE", "", None),
        ("POST", "/password", None),
    ):
        assert code(stranger.call(method, f"users/{unique}{tail}", body)) == "user_not_found"
    assert one(owner, unique)["role"] == "viewer"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "users/", None),
        ("POST", "users/", {"name": "x", "role": "viewer"}),
        ("PATCH", "users/x", {"role": "admin"}),
        ("DELETE", "users/x", None),
        ("POST", "users/x/password", None),
    ],
)
def test_a_token_needs_admin_over_every_stream(owner: Api, method: str, path: str, body: Any) -> None:
    for narrower in (
        caller(owner.workspace, scopes=["read", "publish", "consume", "manage"]),
        caller(owner.workspace, streams=["shop-*"]),
    ):
        assert code(narrower.call(method, path, body)) == "forbidden"


def test_the_last_administrator_of_all_stays(ruler: Api, unique: str) -> None:
    Membership.objects.filter(workspace=ruler.workspace).delete()
    add(ruler, unique, "admin")
    for method, body in (("PATCH", {"role": "viewer"}), ("PATCH", {"active": False}), ("DELETE", None)):
        assert code(ruler.call(method, f"users/{unique}", body)) == "operation_denied"
    add(ruler, f"{unique}-2", "admin")
    assert ruler.delete(f"users/{unique}").status_code == 204


CHANGES = [("PATCH", {"role": "viewer"}), ("PATCH", {"active": False}), ("DELETE", None)]


@pytest.mark.parametrize(("method", "body"), CHANGES)
def test_the_last_administrator_of_a_workspace_is_changed_by_the_rulers_of_all_only(
    ruler: Api, owner: Api, unique: str, method: str, body: Any
) -> None:
    Membership.objects.filter(workspace=owner.workspace).delete()
    add(owner, unique, "admin")
    add(owner, f"{unique}-2", "admin")
    owner.patch(f"users/{unique}-2", {"active": False})
    assert code(owner.call(method, f"users/{unique}", body)) == "operation_denied"
    assert one(owner, unique)["role"] == "admin"
    path = f"users/{unique}?workspace={owner.workspace.name}"
    assert ruler.call(method, path, body).status_code in {200, 204}


@pytest.mark.parametrize(("method", "body"), CHANGES)
def test_one_of_two_administrators_may_go(owner: Api, unique: str, method: str, body: Any) -> None:
    add(owner, unique, "admin")
    add(owner, f"{unique}-2", "admin")
    assert owner.call(method, f"users/{unique}", body).status_code in {200, 204}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["name", "role"]),
        ({"name": "a b", "role": "viewer"}, ["name"]),
        ({"name": "x" * 101, "role": "viewer"}, ["name"]),
        ({"name": "ä", "role": "viewer"}, ["name"]),
        ({"name": "x", "role": "owner"}, ["role"]),
        ({"name": "x", "role": "viewer", "password": "hush-hush-hush"}, ["password"]),
    ],
)
def test_what_is_not_a_person_is_refused_by_field(owner: Api, body: Any, wrong: list[str]) -> None:
    answer = owner.post("users/", body)
    assert (answer.status_code, fields(answer)) == (400, wrong)


def test_people_are_listed_in_pages(owner: Api, unique: str) -> None:
    for number in range(3):
        add(owner, f"{unique}-{number}")
    page = owner.get("users/?limit=2")
    assert [row["name"] for row in page.json()] == [f"{unique}-0", f"{unique}-1"]
    assert page.headers["Link"].endswith('rel="next"')
    rest = owner.get(f"users/?limit=2&after={unique}-1")
    assert [row["name"] for row in json.loads(rest.content)] == [f"{unique}-2"]
