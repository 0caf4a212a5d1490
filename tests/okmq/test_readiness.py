"""Readiness is told in time and in its shape, whatever the store does; a weaker promise than is configured, too."""

import os
import signal
import threading
from typing import Any

import httpx
import pytest

from streams.log.client import Log
from tests.product import Product
from tests.waiting import Stopwatch, until

pytestmark = pytest.mark.running

RED_WITHIN_S = 5.0


def ready(product: Product) -> httpx.Response:
    return httpx.get(f"{product.url}/readyz", timeout=30)


def stands(product: Product) -> tuple[int, str]:
    answer = ready(product)
    return answer.status_code, answer.json().get("status", "")


def test_a_store_that_hangs_is_told_within_five_seconds_and_its_return_at_once(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    until(lambda: stands(product) == (200, "ok"), what="it is ready")
    store = product.pid("valkey")
    os.kill(store, signal.SIGSTOP)
    try:
        for _ in range(2):
            watch = Stopwatch()
            answer = ready(product)
            assert watch.elapsed_s < RED_WITHIN_S
            assert answer.status_code == 503
            assert list(answer.json()["error"]["details"]["reasons"]) == ["log"]
    finally:
        os.kill(store, signal.SIGCONT)
    until(lambda: stands(product)[0] == 200, within_s=5, what="it is ready again")


def test_a_store_that_dies_while_it_is_looked_at_is_no_fault_of_ours(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    told: list[tuple[int, Any]] = []
    ended = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=product.url, timeout=30) as client:
            while not ended.is_set():
                answer = client.get("/readyz")
                told.append((answer.status_code, answer.headers["content-type"]))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        killed: int | None = None
        for _ in range(4):
            before = len(told)
            until(lambda before=before: 200 in dict(told[before:]), what="it is ready")  # type: ignore[misc]
            until(lambda killed=killed: product.processes()["valkey"].pid not in {None, killed})  # type: ignore[misc]
            killed, before = product.pid("valkey"), len(told)
            os.kill(killed, signal.SIGKILL)
            until(lambda before=before: 503 in dict(told[before:]), what="it is not")  # type: ignore[misc]
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert set(told) == {(200, "application/json"), (503, "application/json")}


def test_a_weaker_promise_than_is_configured_is_told(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    until(lambda: stands(product) == (200, "ok"), what="it is ready")
    log = Log(product.store_url)
    try:
        for setting, value, promised in (
            ("appendfsync", "no", "window"),
            ("appendfsync", "always", None),
            ("appendonly", "no", "memory"),
        ):
            log.client.execute_command("CONFIG", "SET", setting, value)
            answer = ready(product)
            assert answer.status_code == 200
            assert answer.json()["status"] == ("degraded" if promised else "ok")
            if promised:
                assert f"'{promised}' and not 'fsync'" in answer.json()["checks"]["log"]
    finally:
        log.close()
