"""A body on its way to Django: read within a bound and a deadline, and counted among all that a process holds.

Django reads a body whole before it asks who sent it and whether anything reads it. Here a small body is read of
anybody, a larger one only of whom there is somebody to read it for (``Form``, ``ApiBody``), and all of these together
have a bound, too. What is left out is not read at all: it is answered at once, as if it were empty, on a connection
that ends.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import MutableMapping
from typing import Any

from django.conf import settings

from streams.dataplane import request as bodies
from streams.dataplane.request import Disconnected, Request, Scope
from streams.errors import Refusal

MOST_BYTES = 64 * 1024
"""Of a body that anybody may send, and that may be there for nobody to read."""
MOST_AT_ONCE_BYTES: int = 4 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
"""Of all bodies above ``MOST_BYTES`` that one process holds."""


class Held:
    """How many bytes of large bodies this process holds."""

    size_bytes = 0


class Body(ABC):
    """The body of one request; as a context it counts among what is held until the request has been answered.

    Attributes:
        is_whole: whether all of it was read, or there was none; the connection serves no other request else.
    """

    def __init__(self, scope: Scope, request: Request, held: Held) -> None:
        self._scope, self._request, self._held = scope, request, held
        self._parts: deque[bytes] = deque()
        self._counted = 0
        self.is_whole = not _comes(request)

    def __enter__(self) -> "Body":
        return self

    def __exit__(self, *error: object) -> None:
        self._held.size_bytes -= self._counted

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Those of the request, with the length of what was read."""
        kept = [
            each
            for each in self._scope["headers"]
            if each[0] not in {b"content-length", b"transfer-encoding"}
        ]
        return [*kept, (b"content-length", b"%d" % sum(map(len, self._parts)))]

    async def read(self) -> None:
        """Read what is read of it; the scope has ``UNREAD`` where somebody could miss what is left out.

        Raises:
            Refusal: ``request_timeout`` after 30 s, ``rate_limited`` where too much is held already,
                ``payload_too_large`` where that is said here, ``validation_error`` for what HTTP does not frame so.
            Disconnected: the client went away.
        """
        told = self._request.headers.get(b"content-length", b"")
        try:
            async with asyncio.timeout(bodies.BODY_TIMEOUT_S):
                if await self._is_read(int(told[:20]) if told.isdigit() else 0):
                    await self._read_parts()
        except TimeoutError:
            raise bodies.too_late() from None

    async def receive(self) -> MutableMapping[str, Any]:
        """What was read, a part a call, then what the server says next."""
        if self._parts:
            part = self._parts.popleft()
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        if not self.is_whole:
            await asyncio.Event().wait()  # whoever asks is cancelled once the answer is out
        return await self._request.receive()

    @abstractmethod
    async def is_taken(self, size: int) -> bool:
        """Whether a body of so many bytes, more than ``MOST_BYTES``, is read.

        Raises:
            Refusal: why it is not, where Django would not know.
        """

    async def _read_parts(self) -> None:
        while not self.is_whole:
            message = await self._request.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            self._request.check_framing()
            self._parts.append(message.get("body", b""))
            self._request.received += len(self._parts[-1])
            if not await self._is_read(self._request.received):
                return
            self._count()
            self.is_whole = not message.get("more_body", False)

    async def _is_read(self, size: int) -> bool:
        """Whether a body of so many bytes is; else all that has come of it is left out."""
        if size <= MOST_BYTES or await self.is_taken(size):
            return True
        self._parts = deque([b""])
        return False

    def _count(self) -> None:
        if self._request.received <= MOST_BYTES:
            return
        more = self._request.received - self._counted
        if self._held.size_bytes + more > MOST_AT_ONCE_BYTES:
            raise Refusal(
                "rate_limited",
                "Too many large bodies are being sent at once; try again.",
                headers={"Retry-After": "1", "Connection": "close"},
            )
        self._held.size_bytes += more
        self._counted += more


def _comes(request: Request) -> bool:
    headers = request.headers
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
