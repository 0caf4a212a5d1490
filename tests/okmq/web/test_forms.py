"""A body outside of the API is read where somebody reads it, within a bound and in time, and is held in no file."""

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from okmq.web import forms, held
from okmq.web.forms import LARGEST_BYTES
from okmq.web.gate import Gate
from okmq.web.held import MOST_BYTES
from streams.dataplane import request as bodies
from tests.okmq.memory import megabytes
from tests.okmq.web.test_observed import log_in
from tests.product import Product

pytestmark = pytest.mark.running

MIB = 1024 * 1024
LARGE = 20 * MIB
HEAD = b"%b %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/x-www-form-urlencoded\r\n%b\r\n"


@contextmanager
def sending(product: Product, path: str, *fields: bytes, method: bytes = b"POST") -> Iterator[socket.socket]:
    """A connection on which the head of a form was sent."""
    with socket.create_connection(("127.0.0.1", product.port), timeout=20) as connection:
        lines = b"".join(b"%b\r\n" % field for field in fields)
        connection.sendall(HEAD % (method, path.encode(), product.port, lines))
        yield connection


def open_files(pid: int) -> int:
    """The files that a process has open and that no folder names."""
    links = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    return sum(each.endswith("(deleted)") for each in links)


def cookie_of_somebody(product: Product) -> bytes:
    """What the browser of somebody who is logged in sends."""
    with httpx.Client(base_url=product.url, follow_redirects=True) as browser:
        log_in(product, browser)
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items()).encode()


def answered(connection: socket.socket) -> tuple[int, dict[str, str]]:
    """The status and the head of the answer, as soon as it has come."""
    came = b""
    while b"\r\n\r\n" not in came:
        part = connection.recv(65536)
        assert part, came
        came += part
    first, *fields = came.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    head = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    return int(first.split()[1]), head


@pytest.mark.parametrize("path", ["/streams/orders/publish/", "/login/", "/theme/", "/nowhere/"])
def test_a_large_form_of_nobody_is_answered_before_it_is_sent(running: Product, path: str) -> None:
    with sending(running, path, b"Content-Length: %d" % LARGE) as connection:
        connection.sendall(b"body=" + b"x" * 1000)
        status, head = answered(connection)
    assert (status, head["location"].partition("?")[0]) == (302, "/login/")


def test_a_large_form_that_does_not_tell_its_length_is_answered_as_soon_as_it_is_one(
    running: Product,
) -> None:
    with sending(running, "/streams/orders/publish/", b"Transfer-Encoding: chunked") as connection:
        part = b"x" * (MOST_BYTES // 2)
        for _ in range(3):
            connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        status, head = answered(connection)
    assert (status, head["location"].partition("?")[0]) == (302, "/login/")


@pytest.mark.parametrize("path", ["/streams/orders/publish/", "/login/", "/healthz", "/static/x", "/metrics"])
@pytest.mark.parametrize("field", [b"Content-Length: %d" % LARGE, b"Transfer-Encoding: chunked"])
def test_what_still_comes_is_not_held_and_the_connection_ends_after_a_little(
    running: Product, path: str, field: bytes
) -> None:
    web = running.pid("web")
    before, files = megabytes(web), open_files(web)
    with sending(running, path, field) as connection:
        part = b"%x\r\n%b\r\n" % (MIB, b"x" * MIB) if b"chunked" in field else b"x" * MIB
        connection.sendall(part)
        head = answered(connection)[1]
        assert head["connection"] == "close"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(part * (LARGE // MIB))
    assert megabytes(web) - before < 8
    assert open_files(web) <= files


@pytest.mark.parametrize(
    ("method", "wanted"), [("GET", 200), ("HEAD", 200), ("PUT", 403), ("DELETE", 403), ("OPTIONS", 405)]
)
def test_nobody_reads_the_body_of_what_is_no_form(running: Product, method: str, wanted: int) -> None:
    fields = (b"Content-Length: %d" % LARGE, b"Cookie: %b" % cookie_of_somebody(running))
    with sending(running, "/", *fields, method=method.encode()) as connection:
        status, head = answered(connection)
    assert (status, head["connection"]) == (wanted, "close")


def test_a_form_that_is_too_large_for_anybody_is_not_read_of_who_is_logged_in(running: Product) -> None:
    fields = (b"Content-Length: %d" % (LARGEST_BYTES + 1), b"Cookie: %b" % cookie_of_somebody(running))
    with sending(running, "/streams/orders/publish/", *fields) as connection:
        assert answered(connection)[0] == 413


@pytest.mark.parametrize("cookie", [b"sessionid=nobodys", b"sessionid=\xff\xfe", b"sessionid", b"a=b; ;="])
def test_a_cookie_that_is_nobodys_lets_nobody_in(running: Product, cookie: bytes) -> None:
    fields = (b"Content-Length: %d" % LARGE, b"Cookie: %b" % cookie)
    with sending(running, "/sql/", *fields) as connection:
        assert answered(connection)[0] == 302


def test_the_login_comes_back_to_the_page_of_the_form_and_says_that_nothing_was_done(
    running: Product,
) -> None:
    with httpx.Client(base_url=running.url, follow_redirects=True) as browser:
        page = f"{running.url}/streams/orders/publish/?like=3"
        form = {"body": "x" * (2 * MOST_BYTES)}
        answer = browser.post("/streams/orders/publish/", data=form, headers={"Referer": page})
        assert answer.url.params["next"] == "/streams/orders/publish/?like=3"
        assert "You were logged out; nothing was done." in answer.text


def test_who_is_logged_in_sends_large_forms(running: Product, unique: str) -> None:
    with running.client() as api, httpx.Client(base_url=running.url, follow_redirects=True) as browser:
        api.post("/streams/", json={"name": unique}).raise_for_status()
        log_in(running, browser)
        token = re.search(
            r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get(f"/streams/{unique}/publish/").text
        )
        assert token
        form = {"csrfmiddlewaretoken": token[1], "id": "a", "body": f'"{"x" * (3 * MOST_BYTES)}"'}
        browser.post(f"/streams/{unique}/publish/", data=form, headers={"Referer": running.url})
        assert api.get(f"/streams/{unique}/").json()["messages"] == 1


def test_small_forms_of_nobody_are_read_as_before(running: Product) -> None:
    with httpx.Client(base_url=running.url) as browser:
        browser.get("/login/")
        form = {
            "username": "x" * 1000,
            "password": "wrong",
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        answer = browser.post("/login/", data=form, headers={"Referer": f"{running.url}/login/"})
        assert answer.status_code == 200
        assert "correct username" in answer.text


def test_what_programs_ask_is_refused_as_programs_are(running: Product) -> None:
    with sending(running, "/healthz", b"Content-Length: %d" % LARGE) as connection:
        assert answered(connection)[0] == 405


SLOW = 0.3


@pytest.mark.parametrize("path", ["/login/", "/healthz", "/nowhere/"])
@pytest.mark.parametrize("length", [(b"content-length", b"9"), (b"transfer-encoding", b"chunked")])
def test_a_body_that_does_not_come_is_given_up(
    monkeypatch: pytest.MonkeyPatch, path: str, length: tuple[bytes, bytes]
) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", SLOW)
    asked: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])

    said = asyncio.run(passed(Gate(inner, record=lambda exchange: None), path, [length], Dripping()))
    assert said[0]["status"] == 408
    assert (b"connection", b"close") in said[0]["headers"]
    assert not asked


def test_forms_that_are_sent_at_once_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_AT_ONCE_BYTES", 3 * MOST_BYTES)
    monkeypatch.setattr(forms, "_is_logged_in", lambda cookies: True)
    meanwhile: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        taken, part = b"", {"more_body": True}
        while part["more_body"]:
            part = await receive()
            taken += part["body"]
        assert len(taken) == 2 * MOST_BYTES
        if not meanwhile:
            meanwhile.append(None)
            meanwhile[0] = await passed(gate, "/streams/a/publish/", [], Parts(2))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate = Gate(inner, record=lambda exchange: None)
    said = asyncio.run(passed(gate, "/streams/a/publish/", [], Parts(2)))
    assert (said[0]["status"], meanwhile[0][0]["status"]) == (200, 429)
    assert asyncio.run(passed(gate, "/streams/a/publish/", [], Parts(2)))[0]["status"] == 200


class Dripping:
    """A body of which one byte comes again and again, and which never ends."""

    async def __call__(self) -> dict[str, Any]:
        await asyncio.sleep(SLOW / 3)
        return {"type": "http.request", "body": b"x", "more_body": True}


class Parts:
    """A body of so many parts."""

    def __init__(self, number: int) -> None:
        self._left = number

    async def __call__(self) -> dict[str, Any]:
        self._left -= 1
        return {"type": "http.request", "body": b"x" * MOST_BYTES, "more_body": self._left > 0}


async def passed(gate: Gate, path: str, headers: list[tuple[bytes, bytes]], receive: Any) -> list[Any]:
    """What is answered to a form that comes so."""
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    headers = headers or [(b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    await gate(scope, receive, send)
    return said
