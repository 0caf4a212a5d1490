"""The server of the streams in memory is killed under a running product, while both kinds of streams are written to."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running

SERVER = "valkey-memory"
BATCH = 20


@dataclass
class Publisher:
    """Publishes batches to one stream until told to stop, and keeps what it was told."""

    product: Product
    stream: str
    offsets: list[int] = field(default_factory=list)
    durabilities: set[str] = field(default_factory=set)
    refused: set[tuple[int, str]] = field(default_factory=set)

    def run(self, stopped: threading.Event) -> None:
        number = 0
        with self.product.client() as client:
            while not stopped.is_set():
                batch = [{"id": f"m{number + n}", "body": number + n} for n in range(BATCH)]
                answer = client.post(f"/streams/{self.stream}/messages", json=batch)
                if answer.status_code == 201:
                    self.offsets += [stored["offset"] for stored in answer.json()]
                    self.durabilities.add(answer.headers["Okmq-Durability"])
                    number += BATCH
                else:
                    self.refused.add((answer.status_code, answer.json()["error"]["code"]))


@pytest.fixture
def client(product: Product) -> Iterator[httpx.Client]:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    with product.client() as client:
        yield client


def test_streams_in_memory_come_back_empty_above_all_they_had_and_durable_ones_notice_nothing(
    product: Product, client: httpx.Client
) -> None:
    for stream in ({"name": "kept"}, {"name": "fleeting", "storage": "memory"}):
        assert client.post("/streams/", json=stream).status_code == 201
        assert client.post(f"/streams/{stream['name']}/groups/", json={"name": "readers"}).status_code == 201
    kept, fleeting = Publisher(product, "kept"), Publisher(product, "fleeting")
    states: list[tuple[int, str]] = []
    stopped = threading.Event()

    def watch() -> None:
        with httpx.Client(base_url=product.url, timeout=30) as plain:
            while not stopped.is_set():
                answer = plain.get("/readyz")
                states.append((answer.status_code, answer.json()["status"]))

    threads = [threading.Thread(target=each.run, args=[stopped]) for each in (kept, fleeting)]
    threads.append(threading.Thread(target=watch))
    for thread in threads:
        thread.start()
    try:
        before = 0
        for kills in (1, 2):
            until(lambda seen=before: len(fleeting.offsets) > seen + 20 * BATCH, within_s=20)  # type: ignore[misc]
            told = fleeting.offsets[-1]
            until(lambda at=told: _sampled(client) >= at, within_s=20)  # type: ignore[misc]
            os.kill(product.pid(SERVER), signal.SIGKILL)
            until(lambda n=kills: product.processes()[SERVER].restarts == n, within_s=20)  # type: ignore[misc]
            before = len(fleeting.offsets)
            until(
                lambda n=kills: len(_events(client, "stream.memory_lost")) == n,  # type: ignore[misc]
                within_s=20,
                what="the loss is an event",
            )
        until(lambda: len(fleeting.offsets) > before + 5 * BATCH, within_s=20)
    finally:
        stopped.set()
        for thread in threads:
            thread.join(30)
    assert fleeting.offsets == sorted(set(fleeting.offsets))
    assert fleeting.durabilities == {"memory"}
    assert fleeting.refused <= {(503, "store_unavailable")}
    assert kept.offsets == list(range(1, len(kept.offsets) + 1))
    assert (kept.durabilities, kept.refused) == ({"fsync"}, set())
    assert client.get("/streams/kept").json()["messages"] == len(kept.offsets)
    assert set(states) == {(200, "ok"), (200, "degraded")}
    shown = client.get("/streams/fleeting").json()
    assert 0 < shown["messages"] < len(fleeting.offsets)
    assert shown["first_offset"] > 200_000  # two losses, a block of offsets each
    got = client.post(
        "/streams/fleeting/groups/readers/fetch", json={"limit": shown["messages"], "wait": 0}
    ).json()
    assert [message["offset"] for message in got] == fleeting.offsets[-len(got) :]
    assert got[0]["offset"] == shown["first_offset"]


def _events(client: httpx.Client, kind: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.get("/events", params={"stream": "fleeting", "kind": kind}).json()
    return found


def _sampled(client: httpx.Client) -> int:
    """The offset in the newest sample; with each the worker notes what would be lost."""
    points = client.get("/streams/fleeting/metrics", params={"range": "15m"}).json()["points"]
    return int(points[-1]["offset"]) if points else 0
