"""Polls that are open while the message store goes away."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from streams import bearer
from streams.log import config, connecting, groups, keys, memory, notes
from streams.log.client import Log
from tests.servers import Store, store
from tests.streams.dataplane.conftest import WORKSPACE_ID, Server, refusal
from tests.waiting import Stopwatch

WAIT_S, GRACE_S = 1.5, 1.0
SETTINGS = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}

Poll = Callable[[httpx.Client], httpx.Response]


@contextmanager
def served(folder: Path) -> Iterator[tuple[Store, httpx.Client]]:
    """A store of its own with the stream ``orders`` and its group ``g``, and a client of a process that serves them."""
    with store(folder) as running, serving(running.url) as client:
        log = Log(running.url)
        stream = registered(keys.stream_id())
        log.run(config.stream_publish(stream, SETTINGS))
        log.run(groups.group_publish(stream.stream_id, "g", groups.Settings()))
        log.close()
        yield running, client


def registered(stream_id: str) -> config.Registered:
    return config.Registered(
        stream_id=stream_id, name="orders", workspace="w", workspace_id=WORKSPACE_ID, archive=False
    )


@contextmanager
def serving(store_url: str, *, memory_url: str | None = None) -> Iterator[httpx.Client]:
    with closing(Log(store_url)) as log:
        secret = bearer.make()
        grant = config.TokenGrant(id=1, workspace="w", workspace_id=WORKSPACE_ID, scopes=("admin",))
        log.run(config.token_publish(bearer.digest(secret), grant))
    server = Server(store_url, memory_url=memory_url)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{server.port}/api/v1/streams",
        headers={"authorization": f"Bearer {secret}"},
        timeout=35,
    )
    try:
        yield client
    finally:
        client.close()
        server.stop()


@pytest.mark.parametrize(
    "poll",
    [
        lambda client: client.get(f"/orders/messages?wait={WAIT_S}"),
        lambda client: client.post("/orders/groups/g/fetch", json={"wait": WAIT_S}),
    ],
    ids=["read", "fetch"],
)
def test_a_poll_ends_by_its_wait(tmp_path: Path, poll: Poll) -> None:
    with served(tmp_path) as (running, client):
        killing = threading.Timer(WAIT_S / 3, running.kill)
        watch = Stopwatch()
        killing.start()
        answer = poll(client)
        took_s = watch.elapsed_s
        killing.join()
    assert answer.content == b"[]" or refusal(answer) == (503, "store_unavailable")
    assert took_s < WAIT_S + GRACE_S


def test_a_tail_ends_whole(tmp_path: Path) -> None:
    with (
        served(tmp_path) as (running, client),
        client.stream("GET", "/orders/tail?offset=0") as answer,
    ):
        running.kill()
        assert answer.status_code == 200
        assert b"".join(answer.iter_raw()) == b""


@pytest.mark.parametrize("path", ["/orders/messages", "/orders/messages?undo=true", "/orders/messages/2"])
def test_a_removal_whose_answer_was_lost_is_on_record_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 1.0)
    with (
        store(tmp_path / "durable") as running,
        store(tmp_path / "volatile", fsync=None) as volatile,
        serving(running.url, memory_url=volatile.url) as client,
        closing(Log(running.url, memory_url=volatile.url)) as log,
    ):
        stream = registered(keys.stream_id(memory=True))
        log.run(config.stream_publish(stream, SETTINGS))
        log.run(memory.begin(stream, SETTINGS, {}))
        for n in range(3):
            client.post("/orders/messages", json={"id": str(n), "body": n, "key": "a"}).raise_for_status()
        # What hangs is the server of its messages only; the other one hears of what is begun.
        Log(volatile.url).client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        assert refusal(client.delete(path)) == (503, "store_unavailable")
        log.run(notes.give_up())
        assert log.run(notes.take()) == [], "whoever does it may be alive"
        silent_for_long(log)
        log.run(notes.give_up())
        ((_, note),) = log.run(notes.take())
        assert log.client.exists(keys.BEGUN) == 0
    assert note.kind == ("message.deleted" if path.endswith("/2") else "stream.purged")
    assert (note.token_id, note.after["outcome"]) == (1, "unknown")


def silent_for_long(log: Log) -> None:
    """As if so much time had passed since the last sign of life of whoever does something."""
    begun, signed_ms = log.client.zrange(keys.BEGUN, 0, -1, withscores=True)
    log.client.zadd(keys.BEGUN, {begun: float(signed_ms) - notes.GIVEN_UP_AFTER_MS - 1})
