"""The demo's client: what it waits for, what it takes for an answer, and when it gives up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat

import pytest

from okmq.demo.patient import Refused, Server, Silent
from tests.product import free_port

REFUSAL = b'{"error": {"code": "forbidden", "message": "Not you."}}'


@contextmanager
def answering(*statuses: int) -> Iterator[str]:
    """A server that gives these answers in turn, the last one again and again; 0 breaks the connection."""
    turns = chain(statuses, repeat(statuses[-1]))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status = next(turns)
            if not status:
                self.close_connection = True
                return
            body = b"[]" if status == 200 else REFUSAL
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(url: str, *, patience_s: float = 5.0) -> tuple[object, list[str]]:
    said: list[str] = []
    server = Server(url, token="secret", say=said.append, patience_s=patience_s)
    try:
        return server.call("GET", "/"), said
    finally:
        server.close()


def test_a_lost_connection_is_met_silently() -> None:
    with answering(0, 200) as url:
        assert ask(url) == ([], [])


def test_a_server_that_is_away_is_said_once_and_waited_for() -> None:
    with answering(503, 503, 502, 200) as url:
        answer, (away, back) = ask(url)
    assert answer == []
    assert "does not answer (it answers 503)" in away
    assert "answers again" in back


def test_a_rate_limit_is_waited_out_in_silence() -> None:
    with answering(429, 429, 200) as url:
        assert ask(url) == ([], [])


def test_a_refusal_is_the_servers_sentence() -> None:
    with answering(403) as url, pytest.raises(Refused, match="Not you") as refused:
        ask(url)
    assert (refused.value.status, refused.value.code) == (403, "forbidden")


def test_an_error_of_the_server_is_not_waited_out() -> None:
    with answering(500) as url, pytest.raises(Refused):
        ask(url)


def test_it_gives_up_when_nothing_answers_for_long() -> None:
    with pytest.raises(Silent, match=r"no answer for 0\.3 s \(connection refused\)"):
        ask(f"http://127.0.0.1:{free_port()}", patience_s=0.3)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Server(url, token="secret", say=print)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "grüße"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        Server("http://127.0.0.1", token=token, say=print)
