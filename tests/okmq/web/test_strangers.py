"""A large form of somebody who is not logged in is answered before it is read, and is held nowhere."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from okmq.web.strangers import MOST_BYTES
from tests.okmq.memory import megabytes
from tests.okmq.web.test_observed import log_in
from tests.product import Product

pytestmark = pytest.mark.running

MIB = 1024 * 1024
LARGE = 20 * MIB
HEAD = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/x-www-form-urlencoded\r\n%b\r\n"


@contextmanager
def sending(product: Product, path: str, *fields: bytes) -> Iterator[socket.socket]:
    """A connection on which the head of a form was sent."""
    with socket.create_connection(("127.0.0.1", product.port), timeout=20) as connection:
        lines = b"".join(b"%b\r\n" % field for field in fields)
        connection.sendall(HEAD % (path.encode(), product.port, lines))
        yield connection


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


def test_what_still_comes_is_not_held_and_the_connection_serves_the_next(running: Product) -> None:
    web = running.pid("web")
    with sending(running, "/streams/orders/publish/", b"Content-Length: %d" % LARGE) as connection:
        assert answered(connection)[0] == 302
        before = megabytes(web)
        for _ in range(LARGE // MIB):
            connection.sendall(b"x" * MIB)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answered(connection)[0] == 200
        assert megabytes(web) - before < 8


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
