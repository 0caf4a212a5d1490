"""What a connection is given to write in one turn of the event loop leaves together."""

import asyncio
from collections.abc import Callable
from typing import Any

LARGE_BYTES = 65_536
"""What is as large leaves at once: to keep it would only copy it."""


class JoinedWrites:
    """A transport whose small writes of one turn of the event loop leave together.

    Uvicorn writes the head of an answer and its body one by one, and uvloop gives each to the system at once: two calls
    where one does, and a client that wakes up twice.

    Args:
        lingers: asked once when it is to be closed; where it says so, nothing is written any more, and whoever said
            so closes it (``close_now``) when the client may have read what was.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        loop: asyncio.AbstractEventLoop,
        lingers: Callable[[], bool] = bool,
    ) -> None:
        self._transport, self._loop, self._lingers = transport, loop, lingers
        self._held: list[bytes] = []
        self._is_over = False

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._is_over or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write in this turn, or at once what is large."""
        if self._is_over:
            return
        if len(data) >= LARGE_BYTES:
            self._leave()
            self._transport.write(data)
            return
        if not self._held:
            self._loop.call_soon(self._leave)
        self._held.append(data)

    def close(self) -> None:
        """Close once everything has left."""
        if self._is_over:
            return
        self._leave()
        if self._transport.is_closing() or not self._lingers():
            self._transport.close()
            return
        self._is_over = True
        self._transport.write_eof()

    def close_now(self) -> None:
        """Close, whatever the client still sends."""
        self._leave()
        self._transport.close()

    def _leave(self) -> None:
        held, self._held = self._held, []
        if held and not self.is_closing():  # the client may have gone since
            self._transport.write(b"".join(held))
