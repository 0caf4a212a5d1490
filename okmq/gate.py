"""What stands before Django: a request id for every answer, and bodies of the API read whole, with a bound.

Django takes a body without a Content-Length (chunked) for an empty one further in; here it is read and counted,
so that nothing behind can be misled.
"""

import re
import secrets
from collections.abc import MutableMapping
from typing import Any

from streams.dataplane.request import Disconnected, Receive, Request, Scope, Send
from streams.dataplane.response import refused
from streams.errors import Refusal

API_PREFIX = "/api/"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Gate:
    """Wraps an ASGI application that serves HTTP."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        given_id = request.headers.get(b"x-request-id", b"")
        request_id = given_id if _REQUEST_ID.fullmatch(given_id) else secrets.token_hex(8).encode()
        headers = [(name, value) for name, value in scope["headers"] if name != b"x-request-id"]
        headers.append((b"x-request-id", request_id))

        async def send_with_id(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id)]
            await send(message)

        if not scope["path"].startswith(API_PREFIX):
            await self._inner({**scope, "headers": headers}, receive, send_with_id)
            return
        try:
            body = await request.body()
        except Disconnected:
            return
        except Refusal as refusal:
            await refused(refusal).send(send, request_id=request_id)
            return
        headers = [item for item in headers if item[0] not in {b"content-length", b"transfer-encoding"}]
        headers.append((b"content-length", b"%d" % len(body)))
        await self._inner({**scope, "headers": headers}, _replayed(body, receive), send_with_id)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read, then what the server says next."""
    given = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
