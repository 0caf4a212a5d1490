"""A socket is for pages of this address alone: cookies come with every handshake, whoever's page asks for it."""

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from dashboard.urls import websocket_urlpatterns
from okmq.web.origins import is_same
from tests.okmq.web.served import session_cookie
from tests.product import Product


@pytest.fixture(scope="module")
def cookie(running: Product) -> str:
    return session_cookie(running)


def status(running: Product, path: str, **headers: str) -> int:
    """Of a handshake, 101 where the socket is open."""
    try:
        with connect(
            running.url.replace("http", "ws") + path, additional_headers=headers, proxy=None
        ) as opened:
            assert opened.response is not None
            return opened.response.status_code
    except InvalidStatus as refused:
        return refused.response.status_code


SOCKETS = ["/" + str(pattern.pattern) for pattern in websocket_urlpatterns]


@pytest.mark.running
@pytest.mark.parametrize("path", SOCKETS)
def test_a_socket_opens_for_a_page_of_this_address(running: Product, cookie: str, path: str) -> None:
    assert status(running, path, cookie=cookie, origin=running.url) == 101


@pytest.mark.running
@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "https://127.0.0.1:443",
        "http://127.0.0.1.evil.example:{port}",
        "http://evil.example#http://127.0.0.1:{port}",
        "http://127.0.0.1:{port}@evil.example",
        "http://user@127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:x",
        "http://[::1",
        "chrome-extension://127.0.0.1:{port}",
        "é",
    ],
)
def test_a_socket_opens_for_no_other_page(
    running: Product, cookie: str, path: str, origin: str | None
) -> None:
    sent = {} if origin is None else {"origin": origin.format(port=running.port)}
    assert status(running, path, cookie=cookie, **sent) == 403


@pytest.mark.running
@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize("cookie", ["", "sessionid=", "sessionid=" + "x" * 32])
def test_a_socket_opens_for_nobody_who_is_not_logged_in(running: Product, path: str, cookie: str) -> None:
    assert status(running, path, cookie=cookie, origin=running.url) == 403


@pytest.mark.running
@pytest.mark.parametrize("path", SOCKETS)
def test_a_token_opens_no_socket_wherever_it_stands(running: Product, path: str) -> None:
    bearer = {"authorization": f"Bearer {running.token}", "origin": running.url}
    assert status(running, path, **bearer) == 403
    assert status(running, f"{path}?token={running.token}", origin=running.url) == 403


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("https://okmq.example", "okmq.example", True),
        ("https://okmq.example", "okmq.example:443", True),
        ("http://okmq.example:80", "OKMQ.example", True),
        ("http://[::1]:8000", "[::1]:8000", True),
        ("https://okmq.example", "okmq.example:8443", False),
        ("http://okmq.example", "okmq.example:443", False),
        ("https://okmq.example", "other.example", False),
        ("https://okmq.example", "", False),
        ("ws://okmq.example", "okmq.example", False),
    ],
)
def test_the_usual_port_may_be_left_out(origin: str, host: str, same: bool) -> None:
    assert is_same(origin, host) is same
