"""HTTP/1.1 between uvicorn and the socket: what one turn writes leaves together, and what is no HTTP is refused."""

import asyncio
from typing import Any, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streams.errors import Refusal

LARGE_BYTES = 65_536
"""What is as large leaves at once: to keep it would only copy it."""


class JoinedWrites:
    """A transport whose small writes of one turn of the event loop leave together.

    Uvicorn writes the head of an answer and its body one by one, and uvloop gives each to the system at once: two calls
    where one does, and a client that wakes up twice.
    """

    def __init__(self, transport: asyncio.Transport, *, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write in this turn, or at once what is large."""
        if len(data) >= LARGE_BYTES:
            self._leave()
            self._transport.write(data)
            return
        if not self._held:
            self._loop.call_soon(self._leave)
        self._held.append(data)

    def close(self) -> None:
        """Close once everything has left."""
        self._leave()
        self._transport.close()

    def _leave(self) -> None:
        held, self._held = self._held, []
        if held and not self.is_closing():  # the client may have gone since
            self._transport.write(b"".join(held))


class FramedProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 on httptools: an answer in one write, and our shape for a request that cannot be parsed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve a connection."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, loop=self.loop)))

    def send_400_response(self, msg: str) -> None:
        """Refuse and hang up: where the next request would begin is not known."""
        refusal = Refusal("validation_error", "This is not a valid HTTP request.", fields=[])
        body = msgspec.json.encode(refusal.body())
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        )
        self.transport.write(head + body)
        self.transport.close()
