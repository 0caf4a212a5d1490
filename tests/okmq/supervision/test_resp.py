"""Whether a server given by OKMQ_REDIS_URL will do, in one sentence."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from okmq.supervision import resp
from streams.log.client import Log, one
from tests.servers import store


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that says one thing to whoever comes: what no real server of ours can be made to say."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)
                connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_both_kinds_of_server_will_do(redis_url: str) -> None:
    resp.check(redis_url)


def test_a_server_that_evicts_will_not(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        log = Log(server.url)
        log.run(one(("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")))
        log.close()
        with pytest.raises(resp.StoreError, match="maxmemory-policy noeviction"):
            resp.check(server.url)


def test_an_old_server_will_not() -> None:
    facts = b"redis_version:6.2.14\r\n"
    with (
        answering(b"$%d\r\n%b\r\n" % (len(facts), facts) * 2) as url,
        pytest.raises(resp.StoreError, match=r"version 6\.2\.14; OKMQ needs"),
    ):
        resp.check(url)


def test_something_else_that_listens_is_named() -> None:
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url,
        pytest.raises(resp.StoreError, match="not a Redis"),
    ):
        resp.ping(url)


def test_nobody_there_is_one_sentence_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(resp.StoreError) as refused:
        resp.check(f"redis://user:secret@127.0.0.1:{port}/0")
    assert str(refused.value).startswith(f"No server can be reached at redis://user:***@127.0.0.1:{port}/0")


def test_the_password_is_given_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        log = Log(server.url)
        log.run(one(("CONFIG", "SET", "requirepass", "pass word")))
        path = server.url.removeprefix("unix://")
        resp.ping(f"unix://:pass%20word@{path}")
        with pytest.raises(resp.StoreError, match="refused AUTH"):
            resp.ping(f"unix://:wrong@{path}")
        with pytest.raises(resp.StoreError, match="NOAUTH"):
            resp.ping(server.url)
        log.run(one(("CONFIG", "SET", "requirepass", "")))
        log.close()
