"""NATS JetStream beside us: file storage, one server, deduplication by Nats-Msg-Id, one acknowledged message each.

Twice from a client: ``nats-py``, and a lean one of our own that speaks the protocol and counts acknowledgements,
so that it is JetStream that is measured and not Python.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

import nats
import uvloop
from nats.aio.client import Client
from nats.js.api import StorageType, StreamConfig

from bench.measure import BODY, Measured, Stopwatch, Watched
from okmq.instance import Broken, child, clean_environ, free_port, wait_for_port

CONFIG = """\
host: 127.0.0.1
port: {port}
jetstream {{
  store_dir: "{folder}"
  {sync}
}}
"""
ACKNOWLEDGED = b'"seq"'
ID_HEADER = b"NATS/1.0\r\nNats-Msg-Id: %015d\r\n\r\n"
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class JetStream:
    """A running server; ``port`` is where it listens."""

    port: int
    pid: int


@contextmanager
def jetstream(binary: Path, folder: Path, *, always: bool) -> Iterator[JetStream]:
    """Start it, with ``sync_interval: always`` or with its default (a sync every two minutes)."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    settings = folder / "nats.conf"
    settings.write_text(
        CONFIG.format(port=port, folder=folder / "store", sync="sync_interval: always" if always else "")
    )
    output = folder / "output"
    with child([str(binary), "-c", str(settings)], environ=clean_environ(), output=output) as process:
        wait_for_port(port, process=process, output=output)
        yield JetStream(port, process.pid)


def publish_lean(server: JetStream, *, connections: int, window: int, seconds: float) -> Measured:
    """Keep ``window`` unacknowledged messages on each of so many connections."""
    return uvloop.run(_lean(server, connections, window, seconds))


def publish_nats_py(server: JetStream, *, connections: int, window: int, seconds: float) -> Measured:
    """The same with ``nats-py``: ``window`` publishers on each connection, each waiting for its acknowledgement."""
    return uvloop.run(_nats_py(server, connections, window, seconds))


async def _lean(server: JetStream, connections: int, window: int, seconds: float) -> Measured:
    loop = asyncio.get_running_loop()
    numbers = count()
    async with _fresh_stream(server) as stored:
        clients = [
            (await loop.create_connection(lambda: _Publisher(numbers, window), "127.0.0.1", server.port))[1]
            for _ in range(connections)
        ]
        await asyncio.gather(*(client.ready for client in clients))
        watch = Stopwatch(Watched(server=server.pid))
        with watch.running():
            until = time.perf_counter() + seconds
            for client in clients:
                client.begin(until)
            await asyncio.wait_for(asyncio.gather(*(client.done for client in clients)), seconds + PATIENCE_S)
        for client in clients:
            client.transport.close()
        acknowledged = sum(client.acknowledged for client in clients)
        if await stored() != acknowledged:
            raise Broken(f"JetStream acknowledged {acknowledged} messages, {await stored()} are stored.")
    return watch.measured(acknowledged)


async def _nats_py(server: JetStream, connections: int, window: int, seconds: float) -> Measured:
    numbers, watch = count(), Stopwatch(Watched(server=server.pid))
    async with _fresh_stream(server), contextlib.AsyncExitStack() as stack:
        clients = [await nats.connect(f"nats://127.0.0.1:{server.port}") for _ in range(connections)]
        for client in clients:
            stack.push_async_callback(client.close)

        async def publisher(client: Client, until: float) -> int:
            stream, sent = client.jetstream(), 0
            while time.perf_counter() < until:
                headers = {"Nats-Msg-Id": f"{next(numbers):015d}"}
                await stream.publish("bench", BODY, headers=headers, timeout=PATIENCE_S)
                sent += 1
            return sent

        with watch.running():
            until = time.perf_counter() + seconds
            stored = sum(
                await asyncio.gather(
                    *(publisher(client, until) for client in clients for _ in range(window)),
                )
            )
    return watch.measured(stored)


@contextlib.asynccontextmanager
async def _fresh_stream(server: JetStream) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    client = await nats.connect(f"nats://127.0.0.1:{server.port}")
    manager = client.jetstream()
    await manager.add_stream(StreamConfig(name="bench", subjects=["bench"], storage=StorageType.FILE))

    async def stored() -> int:
        return (await manager.stream_info("bench")).state.messages

    try:
        yield stored
    finally:
        await manager.delete_stream("bench")
        await client.close()


class _Publisher(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, numbers: "count[int]", window: int) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self.acknowledged = 0
        self._numbers, self._window = numbers, window
        self._sent = 0
        self._tail = b""
        inbox = b"_INBOX.%d" % id(self)
        self._subscribe = b"SUB %b 1\r\nPING\r\n" % inbox
        head_size = len(ID_HEADER % 0)
        head = b"HPUB bench %b %d %d\r\n" % (inbox, head_size, head_size + len(BODY))
        self._template = head + ID_HEADER + BODY + b"\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from asyncio's
        options = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n'
        self.transport.write(options + self._subscribe)

    def begin(self, until: float) -> None:
        self._until = until
        self._publish(self._window)

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            if b"PONG" in data:
                self.ready.set_result(None)
            return
        if b'"error"' in data or b"-ERR" in data:
            self._fail(data[:400].decode("latin-1"))
            return
        if data.startswith(b"PING"):
            self.transport.write(b"PONG\r\n")
        data = self._tail + data
        found = data.count(ACKNOWLEDGED)
        self._tail = b"" if data.endswith(ACKNOWLEDGED) else data[1 - len(ACKNOWLEDGED) :]
        self.acknowledged += found
        if time.perf_counter() < self._until:
            self._publish(found)
        elif self.acknowledged >= self._sent and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the connection was closed: {error}")

    def _publish(self, number: int) -> None:
        self._sent += number
        self.transport.write(b"".join([self._template % next(self._numbers) for _ in range(number)]))

    def _fail(self, what: str) -> None:
        for future in (self.ready, self.done):
            if not future.done():
                future.set_exception(Broken(what))
