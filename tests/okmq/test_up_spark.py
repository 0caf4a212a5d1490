"""Spark's processes come and go with the product: none stays behind, whoever is killed."""

import os
import signal
from pathlib import Path

import pytest

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
