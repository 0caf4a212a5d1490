"""A web process holds so many connections: idle ones make room, and what is under way is left alone."""

import asyncio
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from dashboard.urls import websocket_urlpatterns
from okmq.web import capacity
from okmq.web.capacity import OTHER_FILES, PART_ENDED, Capacity, most_of
from okmq.web.connections import HEAD_TIMEOUT_S
from tests.okmq.web.served import Served, connected, make_static_root, session_cookie, told
from tests.product import Product
from tests.waiting import until

SOCKET = "/" + str(websocket_urlpatterns[0].pattern)
MOST = 20
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class Held:
    """Answers 204: at once, or under ``/held`` once it is let go."""

    def __init__(self) -> None:
        self.under_way = 0
        self._let_go = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._loop = asyncio.get_running_loop()
        if scope["path"] == "/held":
            self.under_way += 1
            await self._let_go.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def let_go(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._let_go.set)


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, held: Held) -> Iterator[Served]:
    make_static_root()
    monkeypatch.setattr("okmq.framing.FramedProtocol.capacity", Capacity(MOST))
    monkeypatch.setattr(capacity, "LEAST_IDLE_S", 0.05)
    monkeypatch.setattr(capacity, "PAUSE_S", 0.0)
    running = Served(held, keep_alive_s=75)
    try:
        yield running
    finally:
        held.let_go()
        running.stop()


def is_answered(connection: socket.socket) -> bool:
    try:
        connection.sendall(GET)
        return connection.recv(65536).startswith(b"HTTP/1.1 204 ")
    except OSError:  # it has been ended
        return False


def is_served_anew(served: Served) -> bool:
    """Whether one more connection is served, and stays for a moment."""
    with connected(served.port) as connection:
        try:
            connection.sendall(LAST)
            return told(connection).startswith(b"HTTP/1.1 204 ")
        except OSError:  # it was ended before it had been heard
            return False


def test_the_longest_idle_one_makes_room(served: Served) -> None:
    with ExitStack() as stack:
        oldest, *others = [stack.enter_context(connected(served.port)) for _ in range(MOST)]
        assert is_answered(oldest)
        later = time.monotonic() + 0.02  # the event loop's clock tells milliseconds
        until(lambda: time.monotonic() > later)
        assert all(is_answered(each) for each in others)
        until(lambda: is_served_anew(served))
        assert told(oldest) == b""
        assert sum(is_answered(each) for each in others) >= MOST - 1 - MOST // PART_ENDED


def test_a_head_that_has_begun_makes_room_as_well(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(connected(served.port)).sendall(GET[:20])
        until(lambda: is_served_anew(served), within_s=HEAD_TIMEOUT_S / 3)


def test_where_something_is_under_way_on_all_a_new_one_is_told(served: Served, held: Held) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(connected(served.port)) for _ in range(MOST)]
        for each in waiting:
            each.sendall(LAST.replace(b"GET /", b"GET /held"))
        until(lambda: held.under_way == MOST)
        for _ in range(3):
            answer = told(stack.enter_context(connected(served.port)))
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b'"code":"rate_limited"' in answer
            assert b"\r\nretry-after: 1\r\n" in answer
        held.let_go()
        assert all(told(each).startswith(b"HTTP/1.1 204 ") for each in waiting)
        until(lambda: is_served_anew(served))


def test_no_more_than_there_may_be_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OTHER_FILES + 500, hard))
    try:
        assert most_of(10_000) == 500
        assert most_of(400) == 400
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.running
def test_a_flood_of_connections_ends_neither_a_poll_nor_a_live_page(tmp_path: Path) -> None:
    more = {"OKMQ_HISTORY": "off", "OKMQ_MAX_CONNECTIONS": "40"}
    product = Product(data_dir=tmp_path / "data", more=more).start()

    def is_published() -> bool:
        with product.client() as new:
            try:
                return new.post("/streams/s/messages", json={"id": "a", "body": 1}).is_success
            except httpx.TransportError:
                return False

    try:
        with ExitStack() as stack:
            with product.client() as client:
                client.post("/streams/", json={"name": "s"}).raise_for_status()
            headers = {"cookie": session_cookie(product), "origin": product.url}
            live = product.url.replace("http", "ws") + SOCKET
            page = stack.enter_context(connect(live, additional_headers=headers, proxy=None))
            poll = stack.enter_context(connected(product.port))
            poll.sendall(
                b"GET /api/v1/streams/s/messages?wait=20 HTTP/1.1\r\nHost: localhost\r\n"
                b"Authorization: Bearer %b\r\nConnection: close\r\n\r\n" % product.token.encode()
            )
            for _ in range(300):
                stack.enter_context(connected(product.port))
            until(is_published)
            assert told(poll).startswith(b"HTTP/1.1 200 ")
            assert page.ping().wait(10)
    finally:
        product.stop()
