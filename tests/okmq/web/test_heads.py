"""The head of a request has a bound and a deadline, and what it costs grows with its size alone."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from okmq.web import connections
from okmq.web.connections import LONGEST_LINE_BYTES, MOST_FIELDS, MOST_HEAD_BYTES
from tests.okmq.memory import megabytes
from tests.okmq.web.served import Served, connected, told
from tests.product import Product
from tests.waiting import Stopwatch

MIB = 1024 * 1024


def sent(connection: socket.socket, data: bytes) -> int:
    """Send until it is done or the other side has hung up; the bytes that left."""
    done = 0
    try:
        while done < len(data):
            done += connection.send(data[done : done + 65536])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return done


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


async def unread(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def served() -> Iterator[Served]:
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
