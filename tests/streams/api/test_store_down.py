"""While the message store does not answer: 503 in the one shape, and nothing is lost for the time after."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams import store
from streams.log import config
from streams.log.client import Log
from streams.models import Stream
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
        b'{"name": "new"}' if method == "POST" else b'{"ttl": 5}',
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
