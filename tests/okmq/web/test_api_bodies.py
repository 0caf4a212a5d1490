"""A body of the control plane is read of who has a token, where something reads it; all together have a bound."""

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from okmq.web import api_bodies, forms, held
from okmq.web.gate import Gate
from okmq.web.held import MOST_AT_ONCE_BYTES, MOST_BYTES
from tests.okmq.memory import megabytes
from tests.okmq.web.test_forms import MIB, Parts, answered, cookie_of_somebody, passed, sending
from tests.product import Product

pytestmark = pytest.mark.running

LARGEST = 16 * MIB
TELLING = [b"Content-Length: %d" % LARGEST, b"Transfer-Encoding: chunked"]
WRONG = b"Authorization: Bearer okmq_%b" % (b"x" * 43)


def body(field: bytes, size: int) -> bytes:
    """So many bytes of a body that was announced so."""
    return b"%x\r\n%b\r\n" % (size, b" " * size) if b"chunked" in field else b" " * size


def token_of(product: Product) -> bytes:
    """The header of who has a token."""
    with product.client() as client:
        return b"Authorization: %b" % client.headers["authorization"].encode()


@pytest.mark.parametrize("field", TELLING)
@pytest.mark.parametrize(
    ("path", "authorization", "wanted"),
    [
        ("/api/v1/tokens/", [], 401),
        ("/api/v1/configuration/apply", [WRONG], 401),
        ("/api/v1/streams/", [b"Authorization: "], 401),
        ("/api/v1/nowhere", [], 404),
        ("/api/v2/", [WRONG], 404),
    ],
)
def test_a_large_body_of_nobody_is_answered_before_it_is_sent(
    running: Product, path: str, authorization: list[bytes], wanted: int, field: bytes
) -> None:
    with sending(running, path, field, *authorization) as connection:
        connection.sendall(body(field, MOST_BYTES) + body(field, MOST_BYTES))
        status, head = answered(connection)
    assert (status, head["connection"], head["content-type"]) == (wanted, "close", "application/json")


def test_a_session_is_no_token(running: Product) -> None:
    cookie = b"Cookie: %b" % cookie_of_somebody(running)
    with sending(running, "/api/v1/tokens/", TELLING[0], cookie) as connection:
        assert answered(connection)[0] == 401


def test_a_large_body_where_nothing_is_is_not_read_of_who_has_a_token(running: Product) -> None:
    with sending(running, "/api/v1/nowhere", TELLING[0], token_of(running)) as connection:
        assert answered(connection)[0] == 404


def test_what_is_too_large_for_anybody_is_refused_before_it_is_sent(running: Product) -> None:
    too_large = b"Content-Length: %d" % (LARGEST + 1)
    with sending(running, "/api/v1/tokens/", too_large, token_of(running)) as connection:
        assert answered(connection)[0] == 413


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_large_body_of_who_has_a_token_is_read(running: Product, is_chunked: bool) -> None:
    parts = [b" " * MIB] * 15 + [b"nonsense"]
    with running.client() as client:
        answer = client.post("/tokens/", content=iter(parts) if is_chunked else b"".join(parts))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize("path", ["/api/v1/tokens/", "/api/v1/nowhere"])
def test_of_many_that_nobody_sends_nothing_is_held(running: Product, path: str) -> None:
    web = running.pid("web")
    before = megabytes(web)
    with ExitStack() as open_ones:
        for _ in range(20):
            connection = open_ones.enter_context(sending(running, path, TELLING[0]))
            connection.sendall(b" " * MIB)
            assert answered(connection)[0] in {401, 404}
        assert megabytes(web) - before < 16


def test_of_many_that_somebody_sends_no_more_is_held_than_the_bound(running: Product) -> None:
    web, token = running.pid("web"), token_of(running)
    before = megabytes(web)
    refused = 0
    with ExitStack() as open_ones:
        for _ in range(14):
            connection = open_ones.enter_context(sending(running, "/api/v1/tokens/", TELLING[0], token))
            try:
                connection.sendall(b" " * (LARGEST - 1))
            except (BrokenPipeError, ConnectionResetError):
                refused += 1
        assert megabytes(web) - before < MOST_AT_ONCE_BYTES / MIB + 64
    assert refused


def test_bodies_of_the_api_and_forms_share_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_AT_ONCE_BYTES", 3 * MOST_BYTES)
    monkeypatch.setattr(forms, "_is_logged_in", lambda cookies: True)
    monkeypatch.setattr(api_bodies, "_is_a_tokens", lambda authorization: True)
    meanwhile: list[int] = []
    head = [(b"transfer-encoding", b"chunked"), (b"authorization", b"Bearer x")]

    async def asked(path: str) -> int:
        said = await passed(gate, path, head, Parts(2))
        return int(said[0]["status"])

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        taken, part = 0, {"more_body": True}
        while part["more_body"]:
            part = await receive()
            taken += len(part["body"])
        assert taken == 2 * MOST_BYTES
        if not meanwhile:
            meanwhile.append(0)
            meanwhile[:] = [await asked("/api/v1/tokens/"), await asked("/streams/a/publish/")]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate = Gate(inner, record=lambda exchange: None)
    assert asyncio.run(asked("/api/v1/tokens/")) == 200
    assert meanwhile == [429, 429]
    assert asyncio.run(asked("/api/v1/tokens/")) == 200
