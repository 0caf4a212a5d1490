"""Over ASGI, as it is served: chunked bodies, names with encoded slashes, a request id on every answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator

from streams.dataplane.app import match
from streams.models import Stream
from tests.streams.api.conftest import Api


@pytest.fixture
def gated(static_folder: None) -> Any:
    """The application as the product serves it: Django behind the gate. Imported late: it reads a folder."""
    from okmq.asgi import application

    return application


@pytest.fixture(params=["bare", "gated"])
def served(request: pytest.FixtureRequest, gated: Any) -> Any:
    """Django with and without the gate before it: neither may mislead the API."""
    from okmq.asgi import django_application

    return gated if request.param == "gated" else django_application


def call(application: Any, api: Api, method: str, path: str, **more: Any) -> httpx.Response:
    """One call over ASGI, in a loop of its own."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(application)
        headers = {"authorization": api.secret, **more.pop("headers", {})}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://testserver", headers=headers
        ) as client:
            return await client.request(method, path if path[:1] == "/" else f"/api/v1/{path}", **more)

    return asyncio.run(send())


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_a_chunked_body_is_read(owner: Api, served: Any) -> None:
    answer = call(
        served, owner, "POST", "streams/", content=pieces(b'{"name": ', b'"orders", "ttl"', b": 5}")
    )
    assert (answer.status_code, answer.json()["ttl"]) == (201, 5)


def test_a_chunked_body_that_is_no_json_stores_nothing(owner: Api, served: Any) -> None:
    answer = call(served, owner, "POST", "streams/", content=pieces(b'{"name": "orders"', b""))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")
    assert not Stream.objects.filter(workspace=owner.workspace).exists()


def test_a_chunked_body_has_a_bound(owner: Api, served: Any) -> None:
    many = [b" " * 1024 * 1024] * 17
    answer = call(served, owner, "POST", "streams/", content=pieces(*many, b"{}"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_a_body_that_was_left_out_is_not_taken_for_an_empty_one(
    owner: Api, gated: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    owner.post("streams/", {"name": "orders"})
    monkeypatch.setattr("okmq.web.api_bodies._is_a_tokens", lambda authorization: False)
    answer = call(gated, owner, method, "streams/orders", content=b" " * 100_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
    assert Stream.objects.filter(workspace=owner.workspace, name="orders").exists()


def test_a_chunked_change_is_read(owner: Api, served: Any) -> None:
    owner.post("streams/", {"name": "orders"})
    answer = call(served, owner, "PATCH", "streams/orders", content=pieces(b'{"ttl": 7}'))
    assert answer.json()["ttl"] == 7


@pytest.mark.parametrize("name", ["a%2Fb", "%00", "%FF%FE", "a%0Ab", "%E2%80%A8", "..%2F..%2Fhealthz"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_a_hostile_name_is_not_found(owner: Api, served: Any, method: str, name: str) -> None:
    answer = call(served, owner, method, f"streams/{name}", content=b"{}" if method == "PATCH" else b"")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] in {"stream_not_found", "not_found"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "streams/orders%2Fgroups%2Fbilling"),
        ("DELETE", "streams/orders%2fgroups/billing"),
        ("DELETE", "streams/orders%2F"),
        ("DELETE", "streams%2Forders"),
        ("GET", "streams/orders%2Fmetrics"),
        ("GET", "streams/orders%2Fmessages"),
        ("GET", "streams%2Forders"),
        ("PATCH", "streams/orders%2Fgroups%2Fbilling"),
    ],
)
def test_an_encoded_slash_stays_inside_its_name(owner: Api, gated: Any, method: str, path: str) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "billing"})
    answer = call(gated, owner, method, path, content=b"{}" if method == "PATCH" else b"")
    assert (answer.status_code, answer.json()["error"]["code"].endswith("not_found")) == (404, True)
    assert [group["name"] for group in owner.get("streams/orders/groups/").json()] == ["billing"]


def test_what_need_not_be_encoded_may_be_on_either_plane(owner: Api, gated: Any) -> None:
    owner.post("streams/", {"name": "orders"})
    answer = call(gated, owner, "GET", "../%76%31/streams/%6frders/groups/")
    assert (answer.status_code, answer.json()) == (200, [])
    plainly = match(b"/api/v1/streams/orders/messages")
    assert plainly is not None
    assert match(b"/api/%76%31/streams/%6frders/messages/?wait=0") == plainly
    assert match(b"/api/v1%2Fstreams/orders/messages") is None


@pytest.mark.parametrize(
    "query", ["limit=%FF", "name=%00", "label=%ED%A0%80:x", "%FF=1", "after=%F0%28%8C%28", "="]
)
def test_a_hostile_query_gets_an_answer(owner: Api, served: Any, query: str) -> None:
    answer = call(served, owner, "GET", f"streams/?{query}")
    assert answer.status_code in {200, 400}
    assert answer.headers["content-type"] == "application/json"


def test_every_answer_has_a_request_id(owner: Api, gated: Any) -> None:
    assert call(gated, owner, "GET", "streams/").headers["x-request-id"]
    given = call(gated, owner, "GET", "nothing", headers={"x-request-id": "mine-1"})
    assert given.headers["x-request-id"] == "mine-1"


def test_a_fault_of_ours_tells_the_request_id(
    owner: Api, gated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **more: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("streams.selectors.streams_page", broken)
    answer = call(gated, owner, "GET", "streams/", headers={"x-request-id": "mine-1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert "mine-1" in answer.json()["error"]["message"]
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["streams/", "/healthz", "/readyz/", "/metrics"])
def test_another_host_is_refused_in_the_one_shape(owner: Api, gated: Any, path: str) -> None:
    answer = call(gated, owner, "GET", path, headers={"host": "evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_host")


@pytest.mark.parametrize("path", ["/", "/live", "/live/x", "/nope", "/api/v1/streams/orders/tail"])
def test_a_socket_anywhere_else_is_refused_and_no_fault(path: str) -> None:
    async def answer() -> Any:
        from okmq.asgi import application

        headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1")]
        scope = {
            "type": "websocket",
            "path": path,
            "headers": headers,
            "query_string": b"",
            "subprotocols": [],
        }
        communicator: Any = ApplicationCommunicator
        socket = communicator(application, scope)
        await socket.send_input({"type": "websocket.connect"})
        return await socket.receive_output(5)

    refused = asyncio.run(answer())
    assert (refused["type"], refused["status"]) == ("websocket.http.response.start", 403)
