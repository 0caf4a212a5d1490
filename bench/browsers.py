"""Five hundred browsers that look at one page each, over one web process: how fresh what they are told is."""

import asyncio
import json
import time
from typing import Any

import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from bench.measure import Figure, Processor
from bench.pages import Browser
from bench.product import Product

BROWSERS = 500
CHANGES = 20
CHANGE_EVERY_S = 1.0
FRESH_MS = 1_500
AT_ONCE = 25


def browsers(ours: Product) -> list[Figure]:
    """All of them show the overview and one stream, into which a message is published each second."""
    (stream, _) = ours.stream()
    return uvloop.run(_look(ours, stream, Browser(ours).cookie))


async def _look(ours: Product, stream: str, cookie: str) -> list[Figure]:
    address, doors = f"ws://127.0.0.1:{ours.port}/live/", asyncio.Semaphore(AT_ONCE)
    origin = Origin(f"http://127.0.0.1:{ours.port}")
    wanted = json.dumps({"type": "subscribe", "topics": ["overview", f"stream:{stream}"]})

    async def opened() -> ClientConnection:
        async with doors:
            socket = await connect(
                address, additional_headers={"Cookie": cookie}, origin=origin, open_timeout=60
            )
            await socket.send(wanted)
            await socket.recv()
        return socket

    sockets = await asyncio.gather(*(opened() for _ in range(BROWSERS)))
    published_s: list[float] = []
    told_ms: list[float] = []

    async def follow(socket: ClientConnection) -> None:
        seen = 0
        while seen < CHANGES:
            event: dict[str, Any] = json.loads(await socket.recv())["event"]
            now_s = time.perf_counter()
            if event["kind"] == "stream_sampled" and event["messages"] > seen:
                # The oldest change that it is told of is the one that it waited for longest.
                told_ms.append((now_s - published_s[seen]) * 1e3)
                seen = event["messages"]

    following = [asyncio.create_task(follow(socket)) for socket in sockets]
    processor = Processor(ours.pid("web"))
    processor.begin()
    began = time.perf_counter()
    for number in range(CHANGES):
        published_s.append(time.perf_counter())
        body = [{"id": str(number), "body": number}]
        await asyncio.to_thread(ours.ask, "POST", f"/streams/{stream}/messages", body)
        await asyncio.sleep(max(0.0, began + (number + 1) * CHANGE_EVERY_S - time.perf_counter()))
    await asyncio.wait_for(asyncio.gather(*following), timeout=60)
    processor.end()
    share = (processor.used_s or 0.0) / (time.perf_counter() - began)
    await asyncio.gather(*(socket.close() for socket in sockets))
    told_ms.sort()
    return [
        Figure(
            name=f"{BROWSERS} browsers: from the publish to the last one told, p99 of {len(told_ms):,}",
            reached=told_ms[int(len(told_ms) * 0.99)],
            unit="ms",
            at_most=FRESH_MS,
        ),
        Figure(name=f"{BROWSERS} browsers: the slowest", reached=told_ms[-1], unit="ms"),
        Figure(
            name=f"{BROWSERS} browsers: share of a core in the web process", reached=share * 100, unit="%"
        ),
    ]
