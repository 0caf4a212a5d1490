"""A kept HTTP/1.1 connection whose answers are looked at: one request at a time, a future each."""

import asyncio
from typing import cast

from bench.http_load import HEAD_END, LENGTH
from okmq.instance import Broken


class Connection(asyncio.Protocol):
    """Opened with ``connect``; belongs to its event loop."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._answer: asyncio.Future[bytes] | None = None
        self._parts: list[bytes] = []
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes) -> "asyncio.Future[bytes]":
        """The body of the answer to a request.

        Raises:
            Broken: a status that is not 2xx, or a closed connection.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        if not self._left:
            data = b"".join([*self._parts, data])
            self._parts = []
            end = data.find(HEAD_END)
            at = data.find(LENGTH, 0, end)
            if end < 0 or at < 0:
                self._parts = [data]
                return
            if data[9:10] != b"2":
                self._settle(Broken(data[:600].decode("latin-1")))
                return
            self._left = int(data[at + len(LENGTH) : data.find(b"\r", at)])
            data = data[end + len(HEAD_END) :]
        self._parts.append(data)
        self._left -= len(data)
        if self._left == 0:
            body, self._parts = b"".join(self._parts), []
            self._settle(body)

    def connection_lost(self, error: Exception | None) -> None:
        self._settle(Broken(f"the connection was closed: {error}"))

    def _settle(self, outcome: bytes | Broken) -> None:
        answer, self._answer = self._answer, None
        if answer is None or answer.done():
            return
        if isinstance(outcome, Broken):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


async def connect(port: int, number: int) -> list[Connection]:
    """So many connections to a port of the loopback."""
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(number)]
