"""The head of a request has a bound and a deadline, and what it costs grows with its size alone."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from django.conf import settings

from okmq.web import connections
from okmq.web.connections import LONGEST_LINE_BYTES, MOST_FIELDS, MOST_HEAD_BYTES
from tests.okmq.memory import megabytes
from tests.product import Product
from tests.waiting import Stopwatch, until

MIB = 1024 * 1024


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def sent(connection: socket.socket, data: bytes) -> int:
    """Send until it is done or the other side has hung up; the bytes that left."""
    done = 0
    try:
        while done < len(data):
            done += connection.send(data[done : done + 65536])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return done


def told(connection: socket.socket) -> bytes:
    """Everything until the other side has nothing more to say."""
    came = b""
    while part := connection.recv(65536):
        came += part
    return came


GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.running
@pytest.mark.parametrize(
    "head",
    [
        GET + b"X: " + b"a" * LONGEST_LINE_BYTES + b"\r\n\r\n",
        GET + b"X: a\r\n" * MOST_FIELDS + b"\r\n",
        GET + (b"X: " + b"a" * 1000 + b"\r\n") * 33 + b"\r\n",
        b"GET /" + b"a" * LONGEST_LINE_BYTES + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        GET + b"X: " + b"a" * MOST_HEAD_BYTES,
        GET + b"a" * (MOST_HEAD_BYTES + 1),
        b"\r\n" * MOST_HEAD_BYTES,
    ],
    ids=["field", "fields", "all", "line", "no end", "no colon", "nothing"],
)
def test_a_head_that_is_too_large_is_refused_and_the_connection_ends(running: Product, head: bytes) -> None:
    with connected(running.port) as connection:
        connection.sendall(head)
        answer = told(connection)
    assert answer.startswith(b"HTTP/1.1 431 "), answer
    assert b'"code":"head_too_large"' in answer
    assert b"\r\nconnection: close\r\n" in answer


@pytest.mark.running
def test_a_head_within_the_bounds_is_taken(running: Product) -> None:
    fields = (b"X: " + b"a" * 8000 + b"\r\n") * 3 + b"Y: a\r\n" * (MOST_FIELDS - 5)
    with connected(running.port) as connection:
        connection.sendall(GET + fields + b"Connection: close\r\n\r\n")
        assert told(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.running
def test_the_next_request_of_a_connection_is_bounded_as_well(running: Product) -> None:
    with connected(running.port) as connection:
        connection.sendall(GET + b"\r\n" + GET + b"X: " + b"a" * 9000 + b"\r\n\r\n")
        answer = told(connection)
    assert answer.count(b"HTTP/1.1 ") == 1 or b"HTTP/1.1 431 " in answer
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.running
@pytest.mark.parametrize("start", [GET, GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"])
def test_an_endless_field_takes_neither_memory_nor_the_time_of_others(running: Product, start: bytes) -> None:
    web = running.pid("web")
    before = megabytes(web)
    with connected(running.port) as connection, httpx.Client(base_url=running.url) as other:
        other.get("/healthz")
        thread = threading.Thread(target=sent, args=(connection, start + b"X: " + b"a" * (60 * MIB)))
        thread.start()
        watch = Stopwatch()
        assert other.get("/healthz").status_code == 200
        assert watch.elapsed_s < 2
        thread.join()
        assert megabytes(web) - before < 8


class Served:
    """The protocol of the product in front of an application that reads the body or not."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            http="okmq.framing:FramedProtocol",
            loop="uvloop",
            lifespan="off",
            log_level="error",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        until(lambda: self._server.started)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


async def unread(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def served() -> Iterator[Served]:
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)  # WhiteNoise warns when it is missing
    running = Served(unread)
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("begun", [GET, b"\r\n", b"G", GET + b"\r\n" + GET])
def test_a_head_that_does_not_end_is_refused_in_time(
    monkeypatch: pytest.MonkeyPatch, served: Served, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.5)
    with connected(served.port) as connection:
        for each in begun:
            connection.send(bytes([each]))
        answer = told(connection)
    assert b"HTTP/1.1 408 " in answer
    assert b'"code":"request_timeout"' in answer


def test_a_connection_on_which_nothing_is_asked_ends(served: Served) -> None:
    with connected(served.port) as connection:
        assert told(connection) == b""  # after what an idle one is kept for: here 5 s


def test_what_is_left_of_an_answered_body_has_a_deadline(
    monkeypatch: pytest.MonkeyPatch, served: Served
) -> None:
    monkeypatch.setattr(connections, "BODY_TIMEOUT_S", 0.5)
    with connected(served.port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        began = time.monotonic()
        assert told(connection).startswith(b"HTTP/1.1 204 ")
        assert time.monotonic() - began < 5  # what an idle one is kept for


def test_a_body_that_became_whole_after_its_answer_leaves_the_connection_open(served: Served) -> None:
    with connected(served.port) as connection:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"
        connection.sendall(head + b"abc")
        assert connection.recv(65536).startswith(b"HTTP/1.1 204 ")
        connection.sendall(b"def" + head + b"abcdef")
        assert connection.recv(65536).startswith(b"HTTP/1.1 204 ")
