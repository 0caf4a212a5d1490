"""What is read of a body outside of the API: what somebody is there to read it for, within a bound and a deadline.

Django reads a body whole before it asks who sent it and whether anything reads it. Here a small body is read of
anybody, a larger one only of a form (a POST) of somebody who is logged in, and all of these together have a bound,
too. What is left out is not read at all: it is answered at once, as if it were empty, on a connection that ends.
"""

import asyncio
from collections import deque
from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import Error
from django.http import HttpRequest, parse_cookie

from dashboard.views.unread import UNREAD
from streams.dataplane import request as bodies
from streams.dataplane.request import Disconnected, Request, Scope
from streams.errors import Refusal

MOST_BYTES = 64 * 1024
"""Of a body that anybody may send, and that may be there for nobody to read."""
LARGEST_BYTES: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
MOST_AT_ONCE_BYTES = 4 * LARGEST_BYTES
"""Of all forms above ``MOST_BYTES`` that one process holds."""


class Held:
    """How many bytes of large forms this process holds."""

    size_bytes = 0


class Form:
    """The body of one request; as a context it counts among what is held until the request has been answered.

    Attributes:
        is_whole: whether all of it was read, or there was none; the connection serves no other request else.
    """

    def __init__(self, scope: Scope, request: Request, held: Held) -> None:
        self._scope, self._request, self._held = scope, request, held
        self._parts: deque[bytes] = deque()
        self._counted = 0
        self._is_known = False
        self.is_whole = not _comes(request)

    def __enter__(self) -> "Form":
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
        """Read what is read of it; the scope has ``UNREAD`` where that is nothing of a form.

        Raises:
            Refusal: ``request_timeout`` after 30 s, ``rate_limited`` where too much is held already,
                ``validation_error`` for what HTTP does not frame so.
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
        if size <= MOST_BYTES:
            return True
        if self._request.method == "POST":
            if size <= LARGEST_BYTES and (self._is_known or await self._is_somebodys()):
                self._is_known = True
                return True
            self._scope[UNREAD] = True
        self._parts = deque([b""])
        return False

    async def _is_somebodys(self) -> bool:
        cookies = self._request.headers.get(b"cookie", b"").decode("latin-1")
        return bool(await database_sync_to_async(_is_logged_in)(cookies))

    def _count(self) -> None:
        if self._request.received <= MOST_BYTES:
            return
        more = self._request.received - self._counted
        if self._held.size_bytes + more > MOST_AT_ONCE_BYTES:
            raise Refusal(
                "rate_limited",
                "Too many large forms are being sent at once; try again.",
                headers={"Retry-After": "1", "Connection": "close"},
            )
        self._held.size_bytes += more
        self._counted += more


def _comes(request: Request) -> bool:
    headers = request.headers
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _is_logged_in(cookies: str) -> bool:
    """Whether a session is somebody's; not where the database cannot say, which the page will, too."""
    request = HttpRequest()
    request.COOKIES = parse_cookie(cookies)
    sessions = import_module(settings.SESSION_ENGINE)
    request.session = sessions.SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    try:
        return bool(get_user(request).is_authenticated)
    except Error:
        return False
