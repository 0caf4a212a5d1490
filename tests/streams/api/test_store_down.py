"""While the message store does not answer: 503 in the one shape, and nothing is lost for the time after."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams import bearer, store
from streams.log import config
from streams.log.client import Log
from streams.models import Event, Stream
from tests.streams.api.conftest import Api, code


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """The store is away; call it to bring it back."""
    nobody = Log(f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(store, "log", lambda: nobody)
    yield monkeypatch.undo
    nobody.close()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "streams/orders", None),
        ("GET", "streams/", None),
        ("POST", "streams/", {"name": "new"}),
        ("PATCH", "streams/orders", {"ttl": 5}),
        ("DELETE", "streams/orders", None),
        ("GET", "account", None),
    ],
)
def test_calls_are_refused_for_now(
    owner: Api, request: pytest.FixtureRequest, method: str, path: str, body: object
) -> None:
    owner.post("streams/", {"name": "orders"})
    bring_back = request.getfixturevalue("down")
    answer = owner.client.generic(
        method,
        f"/api/v1/{path}",
        b"" if body is None else json.dumps(body),
        content_type="application/json",
        headers={"authorization": owner.secret},
    )
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    assert answer.headers["Retry-After"] == "1"
    bring_back()
    assert owner.get("streams/orders").status_code == 200


def test_what_was_made_meanwhile_is_published_by_asking_again(owner: Api, down: Callable[[], None]) -> None:
    answer = owner.client.post(
        "/api/v1/streams/", {"name": "orders"}, "application/json", headers={"authorization": owner.secret}
    )
    assert answer.status_code == 503
    down()
    assert owner.post("streams/", {"name": "orders"}).status_code in {200, 201}
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    assert store.log().run(config.stream_id_of(owner.workspace.pk, "orders")) == stream.stream_id


def test_a_rate_that_cannot_be_counted_is_refused_for_now(
    ruler: Api, owner: Api, request: pytest.FixtureRequest
) -> None:
    ruler.patch(f"workspaces/{owner.workspace.name}", {"rate_limit": 100})
    request.getfixturevalue("down")
    answer = owner.client.get("/api/v1/tokens/", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PATCH", {"ack_wait": 77})])
def test_a_group_stays_as_it_is_and_the_call_succeeds_later(
    owner: Api, request: pytest.FixtureRequest, method: str, body: object
) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups", {"name": "g"})
    before = owner.get("streams/orders/groups/g").json()
    events = Event.objects.filter(workspace=owner.workspace.name).count()
    bring_back = request.getfixturevalue("down")
    answer = owner.client.generic(
        method,
        "/api/v1/streams/orders/groups/g",
        b'{"ack_wait": 77}' if body else b"",
        content_type="application/json",
        headers={"authorization": f"Bearer {owner.secret}"},
    )
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    bring_back()
    assert owner.get("streams/orders/groups/g").json() == before
    assert Event.objects.filter(workspace=owner.workspace.name).count() == events
    assert owner.call(method, "streams/orders/groups/g", body).status_code in {200, 204}


def test_a_token_is_not_taken_for_revoked_before_it_is(owner: Api, request: pytest.FixtureRequest) -> None:
    made = owner.post("tokens/", {"name": "leaked", "scopes": ["read"]}).json()
    bring_back = request.getfixturevalue("down")
    answer = owner.client.delete(f"/api/v1/tokens/{made['id']}", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    bring_back()
    digest = bearer.digest(made["token"])
    assert made["id"] in [each["id"] for each in owner.get("tokens/").json()]
    assert store.log().run(config.token_grant(digest)) is not None
    assert owner.delete(f"tokens/{made['id']}").status_code == 204
    assert store.log().run(config.token_grant(digest)) is None


def test_a_token_that_the_store_was_not_told_of_is_not_in_the_list(
    owner: Api, down: Callable[[], None]
) -> None:
    answer = owner.client.post(
        "/api/v1/tokens/",
        {"name": "late", "scopes": ["read"]},
        "application/json",
        headers={"authorization": owner.secret},
    )
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    down()
    assert "late" not in {token["name"] for token in owner.get("tokens").json()}
    assert not Event.objects.filter(kind="token.created", after__name="late").exists()
