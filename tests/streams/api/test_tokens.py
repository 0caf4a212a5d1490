"""Tokens: the secret is shown once, a narrowed admin makes only narrowed ones, revoked ones are out."""

from typing import Any

import pytest

from streams import bearer, store
from streams.log import config
from streams.models import Token, Workspace
from tests.streams.api.conftest import Api, caller, code, fields


def test_a_secret_is_shown_once_and_works(owner: Api) -> None:
    made = owner.post("tokens/", {"name": "shop", "scopes": ["publish", "read"], "streams": ["orders*"]})
    assert made.status_code == 201
    token = made.json()
    secret = token.pop("token")
    assert token == {
        "id": token["id"],
        "name": "shop",
        "prefix": secret[:10],
        "scopes": ["read", "publish"],
        "streams": ["orders*"],
        "workspace": owner.workspace.name,
        "created_at": token["created_at"],
        "expires_at": None,
        "last_used_at": None,
    }
    listed = owner.get("tokens").content.decode()
    assert secret not in listed
    assert bearer.digest(secret) not in listed
    assert Api(secret, owner.workspace).get("streams").status_code == 200
    assert store.log().run(config.token_grant(bearer.digest(secret))) is not None


def test_a_revoked_token_is_out_in_both_planes(owner: Api) -> None:
    made = owner.post("tokens/", {"name": "shop", "scopes": ["read"]}).json()
    assert owner.delete(f"tokens/{made['id']}/").status_code == 204
    assert code(Api(made["token"], owner.workspace).get("streams")) == "unauthorized"
    assert store.log().run(config.token_grant(bearer.digest(made["token"]))) is None
    assert code(owner.delete(f"tokens/{made['id']}")) == "token_not_found"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a" * 101),
        ("name", 5),
        ("name", "a\x00"),
        ("scopes", []),
        ("scopes", ["root"]),
        ("scopes", "read"),
        ("scopes", [["read"]]),
        ("scopes", None),
        ("streams", ["a b"]),
        ("streams", ["a" * 51]),
        ("streams", [""]),
        ("streams", "a"),
        ("streams", ["a"] * 101),
        ("expires_at", "2026-01-01T00:00:00Z"),
        ("expires_at", "2126-01-01T00:00:00"),
        ("expires_at", "2126-01-01"),
        ("expires_at", "0001-01-01T00:00:00+14:00"),
        ("expires_at", "9999-12-31T23:59:59-14:00"),
        ("expires_at", 4_000_000_000),
        ("workspace", 5),
        ("token", "mine"),
        ("id", 1),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_made(owner: Api, field: str, value: Any) -> None:
    answer = owner.post("tokens/", {"name": "x", "scopes": ["read"], field: value})
    assert (answer.status_code, fields(answer)) == (400, [field])
    assert Token.objects.filter(workspace=owner.workspace).count() == 1


def test_times_in_any_zone_are_converted(owner: Api) -> None:
    made = owner.post(
        "tokens/", {"name": "x", "scopes": ["read"], "expires_at": "2126-01-01T02:00:00.5+02:00"}
    )
    assert made.json()["expires_at"] == "2126-01-01T00:00:00.500Z"


def test_lists_go_page_by_page(owner: Api) -> None:
    for n in range(3):
        owner.post("tokens/", {"name": f"t{n}", "scopes": ["read"]})
    first = owner.get("tokens/?limit=3")
    link = first.headers["Link"]
    rest = owner.client.get(link[1 : link.index(">")], headers={"authorization": owner.secret})
    assert [token["name"] for token in [*first.json(), *rest.json()]] == ["test", "t0", "t1", "t2"]


def test_a_stranger_cannot_revoke(owner: Api, stranger: Api) -> None:
    mine = owner.get("tokens").json()[0]["id"]
    assert code(stranger.delete(f"tokens/{mine}")) == "token_not_found"
    assert code(stranger.delete(f"tokens/{mine}?workspace={owner.workspace.name}")) == "workspace_not_found"


@pytest.mark.parametrize("token_id", ["0", "x", "-1", "1.0", "9" * 18, "9" * 40, "%00", "%D9%A1", "a%2Fb"])
def test_no_such_token(owner: Api, token_id: str) -> None:
    assert owner.delete(f"tokens/{token_id}").status_code == 404


def test_only_the_admin_of_default_names_another_workspace(ruler: Api, owner: Api, stranger: Api) -> None:
    there = owner.workspace.name
    wanted = {"name": "x", "scopes": ["read"], "workspace": there}
    made = ruler.post("tokens/", wanted)
    assert made.json()["workspace"] == there
    assert made.json()["id"] in [token["id"] for token in ruler.get(f"tokens/?workspace={there}").json()]
    assert code(stranger.post("tokens/", wanted)) == "workspace_not_found"
    assert code(stranger.get(f"tokens/?workspace={there}")) == "workspace_not_found"
    assert ruler.delete(f"tokens/{made.json()['id']}").status_code == 204
    assert code(ruler.post("tokens/", {**wanted, "workspace": "no-such"})) == "workspace_not_found"


def test_a_narrowed_admin_rules_only_tokens_as_narrow(owner: Api) -> None:
    narrowed = caller(owner.workspace, streams=["shop-*"])
    wide = owner.get("tokens").json()[0]["id"]
    for streams in ([], ["*"], ["shop-*", "x"], ["shop*"]):
        answer = narrowed.post("tokens/", {"name": "x", "scopes": ["admin"], "streams": streams})
        assert code(answer) == "forbidden"
    assert code(narrowed.delete(f"tokens/{wide}")) == "forbidden"
    made = narrowed.post("tokens/", {"name": "x", "scopes": ["read"], "streams": ["shop-eu-*"]})
    assert made.status_code == 201
    assert narrowed.delete(f"tokens/{made.json()['id']}").status_code == 204


def test_a_narrowed_admin_of_default_rules_no_workspace(ruler: Api) -> None:
    narrowed = caller(Workspace.objects.get(name="default"), streams=["shop-*"])
    assert code(narrowed.get("workspaces/")) == "forbidden"
