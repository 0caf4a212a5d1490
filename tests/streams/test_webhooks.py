"""Posting to addresses that people named: signed, never to what only this machine may reach."""

import http.server
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from streams.webhooks import WebhookRefused, is_public, literal_fault, post, signature, url_fault
from tests.waiting import LONG_ENOUGH_S


class Receiver:
    """A server on this machine that remembers what it was sent."""

    def __init__(self) -> None:
        self.status, self.taken = 200, list[tuple[str, dict[str, str], bytes]]()
        taken, receiver = self.taken, self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taken.append((self.path, dict(self.headers.items()), body))
                self.send_response(receiver.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_port}/hook?a=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def sent(url: str, **options: Any) -> None:
    told: dict[str, Any] = {"secret": "s", "timestamp": 7, "delivery": "1", "allow_private": True}
    post(url, b'{"a":1}', **{**told, **options})


def test_what_is_sent_is_signed_with_its_time(receiver: Receiver) -> None:
    sent(receiver.url)
    [(path, headers, body)] = receiver.taken
    assert (path, body) == ("/hook?a=1", b'{"a":1}')
    assert headers["Host"] == receiver.url.split("/")[2]
    assert headers["Okmq-Signature"] == signature("s", timestamp=7, body=b'{"a":1}')
    assert headers["Okmq-Signature"] != signature("s", timestamp=8, body=b'{"a":1}')
    assert headers["Okmq-Timestamp"] == "7"


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_is_not_taken_is_refused_and_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(WebhookRefused, match=f"answered {status}"):
        sent(receiver.url)
    assert len(receiver.taken) == 1


def test_a_private_address_is_refused_by_default(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="not a public address"):
        sent(receiver.url, allow_private=False)
    assert receiver.taken == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:ffff:ffff:ffff:101:101",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "::127.0.0.1",
        "::ffff:0:7f00:1",
        "fec0::1",
        "feff::1",
    ],
)
def test_these_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"),
        "2001:0:4136:e378:8000:63bf:fefe:fefe",
    ],
)
def test_these_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "LocalHost.",
        "a.localhost",
    ],
)
def test_what_needs_no_look_up_to_be_refused_is_told_before_anything_is_sent(host: str) -> None:
    url = f"http://{host}:9570/hook"
    assert "not a public address" in literal_fault(url, allow_private=False)
    assert literal_fault(url, allow_private=True) == ""


@pytest.mark.parametrize(
    "host", ["example.org", "1.1.1.1", "[2606:4700:4700::1111]", "localhost.example.org"]
)
def test_of_a_name_nothing_is_known_before_it_is_looked_up(host: str) -> None:
    assert literal_fault(f"https://{host}/hook", allow_private=False) == ""


def test_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("1.1.1.1", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(WebhookRefused, match=r"127\.0\.0\.1"):
        sent("http://example.org/", allow_private=False)


def test_the_address_that_was_checked_is_the_one_that_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is looked up once: another answer a moment later would be asked for in vain."""
    asked: list[str] = []
    port = receiver.server.server_port
    look_up = socket.getaddrinfo

    def once(host: Any, *rest: Any, **more: Any) -> Any:
        asked.append(str(host))
        is_name = host == "rebinding.example"
        return look_up("127.0.0.1" if is_name else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", once)
    sent(f"http://rebinding.example:{port}/")
    assert asked.count("rebinding.example") == 1
    assert receiver.taken[0][1]["Host"] == f"rebinding.example:{port}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a/",
        "http://",
        "http://u:p@a/",
        "http://a:99999/",
        "http://a/#x",
        "http://a/\r\nX: y",
        "x" * 3000,
    ],
)
def test_what_is_no_address_is_said(url: str) -> None:
    assert url_fault(url)


def test_what_is_said_of_an_answer_that_is_not_http_holds_nothing_of_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 \x00\x1b[31m\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(WebhookRefused) as refused:
            sent(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        answering.join()
    assert str(refused.value) == "127.0.0.1 sent a response that is not HTTP."


DRIBBLES = {"http": b"HTTP/1.1 200 ", "https": b"\x16\x03\x03\x3f"}


@pytest.mark.parametrize(
    ("scheme", "begun"), [("http", b""), ("https", b""), ("http", b"HTTP/1.1 200 OK\r\nX: ")]
)
def test_who_answers_byte_by_byte_is_cut_off_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, scheme: str, begun: bytes
) -> None:
    monkeypatch.setattr("streams.webhooks.TIMEOUT_S", 0.5)
    cut = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as connection, suppress(OSError):
                connection.settimeout(0.05)
                connection.sendall(begun)
                for byte in itertools.cycle(DRIBBLES[scheme]):
                    connection.sendall(bytes([byte]))
                    with suppress(TimeoutError):
                        while connection.recv(10_000):
                            pass
                        break
            cut.set()

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(WebhookRefused, match=r"did not answer within 0\.5 s"):
            sent(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/")
        answering.join(LONG_ENOUGH_S)
    assert cut.is_set()


def test_nobody_there_is_refused_with_a_sentence() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(WebhookRefused, match="could not be reached"):
            sent(f"http://127.0.0.1:{held.getsockname()[1]}/")
