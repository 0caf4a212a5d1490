"""A purge of a million messages: how long the slowest other request waits until all of it has physically gone."""

import asyncio
import time
from threading import Event

import uvloop

from bench.connection import Connection, connect
from bench.http_load import Target, ours_target
from bench.measure import Figure
from bench.product import Product
from bench.store_load import fill, length

MESSAGES = 1_000_000
OTHERS = 4
BEFORE_S = 5.0


def purge(ours: Product) -> list[Figure]:
    """Others publish into and read another stream meanwhile, as fast as they are answered."""
    (full, full_id), (other, _) = ours.streams(2)
    fill(ours.keeper_url, full_id, messages=MESSAGES)
    target = ours_target(ours, f"/api/v1/streams/{other}/messages")
    purged = ours_target(ours, f"/api/v1/streams/{full}/messages")
    before_s, during_s, took_s = uvloop.run(_watch(ours, target, purged, full_id))
    for name in (full, other):
        ours.drop(name)
    return [
        Figure(name=f"a purge of {MESSAGES:,} messages", reached=took_s, unit="s"),
        Figure(name="slowest other request during it", reached=max(during_s) * 1e3, unit="ms", at_most=50),
        Figure(name=f"slowest request in the {BEFORE_S:g} s before", reached=max(before_s) * 1e3, unit="ms"),
    ]


async def _watch(
    ours: Product, target: Target, purged: Target, full_id: str
) -> tuple[list[float], list[float], float]:
    *others, purger = await connect(target.port, OTHERS + 1)
    publishes, read = target.publish(1), target.get(b"?offset=1&limit=10")
    latencies: list[float] = []
    running = True

    async def work(connection: Connection) -> None:
        while running:
            for request in (publishes(), read):
                began = time.perf_counter()
                await connection.ask(request)
                latencies.append(time.perf_counter() - began)

    tasks = [asyncio.create_task(work(connection)) for connection in others]
    await asyncio.sleep(BEFORE_S)
    before, latencies = latencies, []
    began = time.perf_counter()
    await purger.ask(purged.delete())
    await asyncio.to_thread(_emptied, ours.keeper_url, full_id)
    took = time.perf_counter() - began
    running = False
    await asyncio.gather(*tasks)
    for connection in (*others, purger):
        connection.transport.close()
    return before, latencies, took


def _emptied(url: str, stream_id: str) -> None:
    """Returns when nothing of a stream's log is left."""
    pause = Event()
    while length(url, stream_id):
        pause.wait(0.05)
