"""Five thousand long polls parked on one worker: what they take, and how soon a publish wakes its poller."""

import asyncio
import os
import time
from pathlib import Path
from threading import Event
from typing import Any

import redis
import uvloop

from bench.connection import Connection, connect
from bench.http_load import ours_target
from bench.measure import Figure, Processor
from bench.product import Product
from okmq.instance import Broken

POLLS = 5_000
WAIT_S = 30
PARKED_WITHIN_S = 17.0
"""So that ten seconds are left in which no poll is answered and none is sent again."""
IDLE_S = 10.0
WAKES = 300


def parked_polls(ours: Product) -> list[Figure]:
    """Each poll waits on a stream of its own, in a web process that has done nothing else but make these streams."""
    ours.web_anew()
    names = [name for _ in range(0, POLLS, 1000) for name, _ in ours.streams(1000)]
    return uvloop.run(_park(ours, names))  # the streams stay: thousands of deletions are no part of this


async def _park(ours: Product, names: list[str]) -> list[Figure]:
    connections = await connect(ours.port, POLLS)
    targets = [ours_target(ours, f"/api/v1/streams/{name}/messages") for name in names]
    answered_s: dict[int, float] = {}
    answers = 0

    async def poll(number: int) -> None:
        nonlocal answers
        request, body = targets[number].get(b"?wait=%d" % WAIT_S), b"[]"
        while body == b"[]":
            body = await connections[number].ask(request)
            answers += 1
        answered_s[number] = time.perf_counter()

    began = time.perf_counter()
    polls = [asyncio.create_task(poll(number)) for number in range(POLLS)]
    await asyncio.to_thread(_until_all_wait, ours.keeper_url)
    pid = ours.pid("web")
    idle_s = WAIT_S - 1 - (time.perf_counter() - began)
    share = await _share_of_a_core(pid, idle_s)
    if answers or idle_s < IDLE_S:
        raise Broken(f"In {idle_s:.1f} s that should have been idle {answers} polls were answered.")
    resident = _resident_bytes(pid)
    (publisher,) = await connect(ours.port, 1)
    took_s = []
    for number in range(0, POLLS, POLLS // WAKES):
        sent = time.perf_counter()
        await publisher.ask(targets[number].post(b'{"id":"1","body":1}'))
        await polls[number]
        took_s.append(answered_s[number] - sent)
    for task in polls:
        task.cancel()
    _close([*connections, publisher])
    took_s.sort()
    if any(task.done() and not task.cancelled() and task.exception() for task in polls):
        raise Broken("A parked poll ended with an error.")
    return [
        Figure(
            name=f"{POLLS:,} parked polls: memory of the web process",
            reached=resident / 2**20,
            unit="MiB",
            at_most=200,
        ),
        Figure(
            name=f"{POLLS:,} parked polls: share of a core over {idle_s:.0f} s, none answered or sent",
            reached=share * 100,
            unit="%",
            at_most=3,
        ),
        Figure(
            name=f"a publish wakes its poller among {POLLS:,}, p99 of {len(took_s)}",
            reached=took_s[len(took_s) * 99 // 100] * 1e3,
            unit="ms",
            at_most=50,
        ),
        Figure(
            name=f"a publish wakes its poller among {POLLS:,}, median",
            reached=took_s[len(took_s) // 2] * 1e3,
            unit="ms",
        ),
    ]


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _share_of_a_core(pid: int, for_s: float) -> float:
    processor, began = Processor(pid), time.perf_counter()
    processor.begin()
    await asyncio.sleep(for_s)
    processor.end()
    return (processor.used_s or 0.0) / (time.perf_counter() - began)


def _until_all_wait(url: str) -> None:
    """Returns when every poll has its channel, so that what follows is idle; a second more for what was under way."""
    client: Any = redis.Redis.from_url(url)
    pause, until = Event(), time.monotonic() + PARKED_WITHIN_S
    while len(client.execute_command("PUBSUB", "CHANNELS", "*:wake")) < POLLS:
        if time.monotonic() > until:
            raise Broken(f"{POLLS} polls were not parked within {PARKED_WITHIN_S:g} s.")
        pause.wait(0.2)
    pause.wait(1.0)
    client.close()


def _close(connections: list[Connection]) -> None:
    for connection in connections:
        connection.transport.close()
