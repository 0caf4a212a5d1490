"""The whole product on a cluster of three nodes on loopback."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from okmq import env
from streams.log import config
from streams.log.client import Log
from tests.clusters import Cluster, cluster
from tests.product import Product
from tests.waiting import until

PAGES = ("/", "/streams/", "/events/", "/groups/", "/alerts/", "/settings/people/", "/settings/system/")
MANY = 24


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


class Publisher:
    """Publishes into streams in turns, once each, and remembers what was confirmed and what was refused."""

    def __init__(self, product: Product, names: list[str]) -> None:
        self.confirmed: dict[str, list[str]] = {name: [] for name in names}
        self.refused: dict[str, set[tuple[int, str]]] = {name: set() for name in names}
        self._client, self._ending = product.client(), Event()
        self._thread = Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        turn = 0
        while not self._ending.is_set():
            turn += 1
            for name, confirmed in self.confirmed.items():
                answer = self._client.post(
                    f"/streams/{name}/messages", json={"id": f"p-{turn}", "body": turn}
                )
                if answer.status_code == 201:
                    confirmed.append(f"p-{turn}")
                else:
                    self.refused[name].add((answer.status_code, answer.json()["error"]["code"]))


def ids_of(client: httpx.Client, name: str) -> list[str]:
    """The ids of all messages of a stream, in their order."""
    found: list[str] = []
    offset = 1
    while page := client.get(f"/streams/{name}/messages", params={"offset": offset, "limit": 1000}).json():
        found += [each["id"] for each in page]
        offset = page[-1]["offset"] + 1
    return found


def doctor(product: Product) -> str:
    """What ``okmq_doctor`` says."""
    command = [sys.executable, "manage.py", "okmq_doctor"]
    done = subprocess.run(
        command, cwd=env.PROJECT, env=product.environ, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def take(client: httpx.Client, name: str) -> list[str]:
    """Have the group take what is there and acknowledge it; the ids."""
    taken = client.post(f"/streams/{name}/groups/g/fetch", json={"wait": 5}).json()
    leases = {"leases": [each["lease"] for each in taken]}
    client.post(f"/streams/{name}/groups/g/ack", json=leases).raise_for_status()
    return [each["id"] for each in taken]


@pytest.mark.running
@pytest.mark.timeout(300)
def test_streams_of_other_nodes_go_on_while_one_is_away_and_nothing_that_was_confirmed_is_lost(
    nodes: Cluster, product: Product
) -> None:
    product.more = {"OKMQ_HISTORY": "off", "OKMQ_REDIS_URL": nodes.url}
    product.start()
    names = [f"orders-{at}" for at in range(MANY)]
    with product.client() as client, closing(Log(nodes.url)) as log:
        for name in names:
            client.post("/streams/", json={"name": name}).raise_for_status()
            client.post(f"/streams/{name}/groups/", json={"name": "g"}).raise_for_status()
            client.post(f"/streams/{name}/messages", json={"id": "a", "body": 1}).raise_for_status()
            assert take(client, name) == ["a"]
        on = {each.name: nodes.node_of(each.stream_id) for each in log.run(config.streams())}
        away = nodes.others[0]
        gone = [name for name in names if on[name] is away]
        there = [name for name in names if on[name] is not away]
        assert gone
        assert {on[name].port for name in there} == {node.port for node in nodes.nodes if node is not away}
        for page in PAGES:
            assert "</html>" in product.page(page)
        assert httpx.get(f"{product.url}/readyz").json()["status"] == "ok"

        publisher = Publisher(product, names)
        publisher.start()
        try:
            until(lambda: all(publisher.confirmed.values()), what="every stream takes messages")
            away.kill()
            until(lambda: all(publisher.refused[name] for name in gone), what="its own are refused")
            before = {name: len(publisher.confirmed[name]) for name in there}
            until(lambda: all(len(publisher.confirmed[name]) > before[name] for name in there))
            until(lambda: httpx.get(f"{product.url}/readyz").json().get("status") == "degraded")
            told = httpx.get(f"{product.url}/readyz").json()
            assert told["checks"]["log"] == "1 of the 3 nodes of the message store are not responding."
            for name in there:
                assert take(client, name)
                assert client.get(f"/streams/{name}").json()["messages"] >= before[name]
            for name in gone:
                assert client.get(f"/streams/{name}").status_code == 503
                assert client.post(f"/streams/{name}/groups/g/fetch", json={}).status_code == 503
            # What the worker does goes on for the others, too, and so do the pages.
            client.patch(f"/streams/{there[0]}", json={"ttl": 1}).raise_for_status()
            until(lambda: any(each["kind"] == "stream.expired" for each in client.get("/events").json()))
            client.patch(f"/streams/{there[0]}", json={"ttl": None}).raise_for_status()
            for page in PAGES:
                assert "</html>" in product.page(page)
            away.start()
            after = {name: len(publisher.confirmed[name]) for name in gone}
            until(lambda: all(len(publisher.confirmed[name]) > after[name] for name in gone), within_s=30)
        finally:
            publisher.stop()
        assert set().union(*publisher.refused.values()) == {(503, "store_unavailable")}
        assert not any(publisher.refused[name] for name in there)
        for name in [*gone, *there[1:]]:
            found = ids_of(client, name)
            assert len(found) == len(set(found))
            assert set(publisher.confirmed[name]) <= set(found)
        until(lambda: httpx.get(f"{product.url}/readyz").json()["status"] == "ok", what="all nodes answer")

        # A start while a node is away does without it.
        away.kill()
        product.stop()
        product.start()
        for name, status in ((gone[0], 503), (there[1], 201)):
            answer = client.post(f"/streams/{name}/messages", json={"id": "later", "body": 1})
            assert answer.status_code == status
        told = doctor(product)
        assert "1 of 3 nodes do not answer: their streams are refused" in told
        product.stop()
