"""Spark in the running product: its processes come and go with it, and retention waits for what it archives."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from streams.log import config, keys
from streams.log.client import Log
from tests.product import Product
from tests.waiting import Stopwatch, until

pytestmark = [pytest.mark.running, pytest.mark.spark]


def virtual_machines(product: Product) -> list[int]:
    """The ids of the product's Java processes."""
    found = []
    for pid in product.alive():
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                found.append(pid)
        except OSError:
            continue  # it ended in between
    return found


def start_spark(product: Product) -> int:
    """Give history something to do, and wait for its Java process."""
    with product.client() as client:
        client.post("/streams/", json={"name": "archived"}).raise_for_status()
        client.post("/streams/archived/messages", json={"id": "1", "body": 1}).raise_for_status()
        answer = client.post("/analytics/runs/", json={})
        assert answer.status_code == 202, answer.text
    return until(lambda: virtual_machines(product), within_s=60, what="Spark has started")[0]


def test_spark_ends_with_the_product(product: Product) -> None:
    product.start()
    start_spark(product)
    watch = Stopwatch()
    assert product.stop() == 0
    assert watch.elapsed_s < 10
    assert product.alive() == []


def test_spark_ends_with_an_analytics_process_that_is_killed_and_comes_back(product: Product) -> None:
    product.start()
    java = start_spark(product)
    killed = product.pid("analytics")
    os.kill(killed, signal.SIGKILL)
    until(lambda: java not in virtual_machines(product), what="the old Java process has ended")
    until(lambda: product.processes()["analytics"].pid not in (None, killed), within_s=20)
    assert product.processes()["analytics"].note == "exited with signal 9"


def test_spark_ends_with_a_supervisor_that_is_killed(product: Product) -> None:
    product.start()
    start_spark(product)
    assert product.supervisor is not None
    product.supervisor.kill()
    product.supervisor.wait()
    until(lambda: not product.alive(), what="every process has ended with the supervisor")


def published(client: httpx.Client, *, first: int) -> None:
    """Three hundred messages into a stream that keeps ten."""
    client.post("/streams/", json={"name": "brief", "max_messages": 10}).raise_for_status()
    batch = [{"id": f"m{n}", "body": n} for n in range(first, first + 300)]
    client.post("/streams/brief/messages", json=batch).raise_for_status()


def stored(product: Product, client: httpx.Client) -> int:
    """What the stream physically holds."""
    log = Log(product.store_url)
    workspace_id = next(each.workspace_id for each in log.run(config.streams()) if each.name == "brief")
    stream_id = log.run(config.stream_id_of(workspace_id, "brief"))
    assert stream_id is not None
    length: int = log.client.execute_command("XLEN", keys.log(stream_id))
    log.close()
    return length


def archived(client: httpx.Client) -> int:
    """Run the jobs of the history to their end; how many messages the history of the stream counts."""
    runs = client.post("/analytics/runs/", json={}).raise_for_status().json()
    wanted = {each["id"] for each in client.get("/analytics/runs/").json() if each["state"] == "queued"}
    assert runs["id"] in wanted

    def ended() -> bool:
        states = {each["id"]: each["state"] for each in client.get("/analytics/runs/").json()}
        return {states[each] for each in wanted} <= {"succeeded", "failed"}

    until(ended, within_s=300, what="the runs have ended")
    answer = client.get("/streams/brief/history", params={"step": "day"}).raise_for_status().json()
    return sum(point["messages"] for point in answer["points"])


@pytest.mark.timeout(600)
def test_retention_waits_for_the_running_archive_and_what_that_missed_is_an_event_and_a_gap(
    product: Product,
) -> None:
    product.start()
    with product.client() as client:
        published(client, first=0)
        assert client.get("/streams/brief").json()["messages"] == 10
        assert stored(product, client) == 300
        assert archived(client) == 300
        until(lambda: stored(product, client) == 10, within_s=60, what="what was archived is free to go")
        assert client.get("/events", params={"kind": "history.gap"}).json() == []
    product.stop()
    product.more = {"OKMQ_HISTORY_WAIT": "1"}
    product.start()
    with product.client() as client:
        published(client, first=300)
        (gap,) = until(
            lambda: client.get("/events", params={"kind": "history.gap"}).json(),
            within_s=60,
            what="the limit has won",
        )
        assert (gap["stream"], gap["after"]) == ("brief", {"messages": 290})
        assert stored(product, client) == 10
        (told,) = client.get("/streams/brief/history").json()["gaps"]
        assert (told["messages"], told["time"]) == (290, gap["time"])
        sentence = "290 messages of brief were removed before the history had them."
        assert sentence in product.page("/streams/brief/history/")
