"""A lean HTTP/1.1 client for loads: requests are one ``%`` of a template, answers are counted, not parsed.

A client library would need more of a core than the server that it measures.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import cast

import uvloop

from bench.measure import BODY, Measured, Stopwatch, Watched
from bench.product import Product
from okmq.instance import Broken

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "
LAST_CHUNK = b"\r\n0\r\n\r\n"
PATIENCE_S = 30.0
UNWATCHED = Watched()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go. ``path`` begins with a slash."""

    port: int
    path: str
    token: str
    watched: Watched

    def publish(self, batch: int, *, first: int = 0) -> Callable[[], bytes]:
        """Makes the next publish of so many messages; every id is new, numbered from ``first`` on."""
        body = b"[" + b",".join([b'{"id":"%015d","body":' + BODY + b"}"] * batch) + b"]"
        length = len(body % tuple(range(batch)))
        template = self._head(
            b"POST", b"", b"content-type: application/json\r\ncontent-length: %d\r\n" % length
        )
        template = template.replace(b"%", b"%%") + body
        numbers = count(first, batch)

        def next_request() -> bytes:
            first = next(numbers)
            return template % tuple(range(first, first + batch))

        return next_request

    def read(self, batch: int, *, stored: int) -> Callable[[], bytes]:
        """Makes the next read of so many messages, page after page and round again."""
        pages = [
            self._head(b"GET", b"?offset=%d&limit=%d" % (at, batch), b"") for at in range(1, stored, batch)
        ]
        numbers = count()
        return lambda: pages[next(numbers) % len(pages)]

    def get(self, query: bytes = b"") -> bytes:
        """A GET of the path; ``query`` begins with a question mark."""
        return self._head(b"GET", query, b"")

    def delete(self) -> bytes:
        """A DELETE of the path."""
        return self._head(b"DELETE", b"", b"")

    def post(self, body: bytes) -> bytes:
        """A POST of JSON to the path."""
        headers = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        return self._head(b"POST", b"", headers) + body

    def at(self, path: str) -> "Target":
        """The same server at another path."""
        return replace(self, path=path)

    def _head(self, method: bytes, query: bytes, headers: bytes) -> bytes:
        return b"%b %b%b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nauthorization: Bearer %b\r\n%b\r\n" % (
            method,
            self.path.encode(),
            query,
            self.port,
            self.token.encode(),
            headers,
        )


def http_load(
    target: Target,
    next_request: Callable[[], bytes],
    *,
    batch: int,
    connections: int,
    seconds: float,
    smallest: int = 0,
) -> Measured:
    """Send requests over keep-alive connections, one at a time on each, for so many seconds.

    Args:
        batch: messages that each request carries or brings.
        smallest: bytes that a whole answer's body has at least.

    Raises:
        Broken: a status that is not 2xx, a body that is too small, a closed connection.
    """
    return uvloop.run(_run(target, next_request, batch, connections, seconds, smallest))


def ours_target(ours: Product, path: str, watched: Watched = UNWATCHED) -> Target:
    """A path of the product."""
    return Target(port=ours.port, path=path, token=ours.token, watched=watched)


def compared(
    one: Callable[..., Measured], other: Callable[..., Measured], *, seconds: float, rounds: int = 3
) -> float:
    """The rate of one load over another's, run in turns on 16 connections: the median of the rounds."""
    rates = [(load(connections=16, seconds=seconds).rate) for _ in range(rounds) for load in (one, other)]
    return statistics.median(first / second for first, second in zip(rates[::2], rates[1::2], strict=True))


async def _run(
    target: Target,
    next_request: Callable[[], bytes],
    batch: int,
    connections: int,
    seconds: float,
    smallest: int,
) -> Measured:
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: _Client(next_request, smallest), "127.0.0.1", target.port))[1]
        for _ in range(connections)
    ]
    watch = Stopwatch(target.watched)
    with watch.running():
        until = time.perf_counter() + seconds
        for client in clients:
            client.begin(until)
        await asyncio.wait_for(asyncio.gather(*(client.done for client in clients)), seconds + PATIENCE_S)
    for client in clients:
        client.transport.close()
    latencies = sorted(latency for client in clients for latency in client.latencies_s)
    return watch.measured(batch * len(latencies), latencies_s=latencies)


class _Client(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, next_request: Callable[[], bytes], smallest: int) -> None:
        self._next_request, self._smallest = next_request, smallest
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies_s: list[float] = []
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from asyncio's

    def begin(self, until: float) -> None:
        self._until = until
        self._send()

    def _send(self) -> None:
        request = self._next_request()
        self._sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            end = self._head.find(HEAD_END)
            if end < 0:
                return
            at = self._head.find(LENGTH, 0, end)
            if at >= 0:
                size = int(self._head[at + len(LENGTH) : self._head.find(b"\r", at)])
            elif self._head.endswith(LAST_CHUNK):  # Django without middleware sends no length
                size = len(self._head) - end - len(HEAD_END)
            else:
                return
            if self._head[9:10] != b"2" or size < self._smallest:
                self._fail(self._head[:600].decode("latin-1"))
                return
            self._left = size - (len(self._head) - end - len(HEAD_END))
            self._head = b""
        if self._left == 0:
            now = time.perf_counter()
            self.latencies_s.append(now - self._sent)
            if now < self._until:
                self._send()
            else:
                self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._fail(f"the connection was closed: {error}")

    def _fail(self, what: str) -> None:
        if not self.done.done():
            self.done.set_exception(Broken(what))
