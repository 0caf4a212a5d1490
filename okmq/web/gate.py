"""What stands before Django: a request id for every answer, bodies read with a bound and a deadline, and a record.

Django takes a body without a Content-Length (chunked) for an empty one further in; here it is read and counted,
so that nothing behind can be misled.
"""

import re
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from django.urls import Resolver404, resolve

from okmq.web.api_bodies import ApiBody
from okmq.web.forms import Form
from okmq.web.held import Body, Held
from streams.dataplane.request import Disconnected, Receive, Request, Scope, Send
from streams.dataplane.response import refused
from streams.errors import Refusal
from streams.exchange import REQUEST_ID, UNKNOWN, Exchange, Record, begin, header

API_PREFIX = "/api/"
STATIC_PREFIX = "/static/"
SOCKET_PATH = "/live/"
SWITCHED = 101
_PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")


class Gate:
    """Wraps an ASGI application that serves HTTP; ``record`` is told of every exchange at its end."""

    def __init__(self, inner: Any, *, record: Record) -> None:
        self._inner, self._record = inner, record
        self._held = Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = {**scope, "path": path_of(scope)}
        request = Request(scope, receive)
        exchange = begin(scope, request.headers.get(REQUEST_ID, b""), request.headers.get(b"user-agent", b""))
        exchange.route = route_of(scope["path"])
        try:
            await self._pass(scope, request, exchange, send)
        finally:
            exchange.bytes_in += request.received
            exchange.end()
            self._record(exchange)

    async def _pass(self, scope: Scope, request: Request, exchange: Exchange, send: Send) -> None:
        id_header = (REQUEST_ID, exchange.request_id)
        headers = [item for item in scope["headers"] if item[0] != REQUEST_ID]
        headers.append(id_header)

        async def send_with_id(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message.get("headers", []), id_header]
            else:
                exchange.bytes_out += len(message.get("body", b""))
            await send(message)

        scope = {**scope, "headers": headers}
        with self._body(scope, request, exchange) as body:
            if body.is_whole:
                await self._inner(scope, request.receive, send_with_id)
                return

            async def send_last(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "http.response.start" and not body.is_whole:
                    # Where the next request would begin is not known.
                    message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
                await send_with_id(message)

            try:
                await body.read()
            except Disconnected:
                return
            except Refusal as refusal:
                await refused(refusal).send(send_with_id, [])
                return
            await self._inner({**scope, "headers": body.headers}, body.receive, send_last)

    def _body(self, scope: Scope, request: Request, exchange: Exchange) -> Body:
        if scope["path"].startswith(API_PREFIX):
            return ApiBody(scope, request, self._held, is_there=exchange.route != UNKNOWN)
        return Form(scope, request, self._held)


class SocketGate:
    """Wraps an ASGI application that serves WebSockets: ``record`` is told how each upgrade ended."""

    def __init__(self, inner: Any, *, record: Record) -> None:
        self._inner, self._record = inner, record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = begin(scope, header(scope["headers"], REQUEST_ID), header(scope["headers"], b"user-agent"))
        exchange.route = socket_route(scope["path"])
        id_header = (REQUEST_ID, exchange.request_id)
        is_told = False

        def tell(status: int) -> None:
            nonlocal is_told
            if not is_told:
                is_told, exchange.status = True, status
                exchange.end()
                self._record(exchange)

        async def send_and_tell(message: MutableMapping[str, Any]) -> None:
            if is_told:
                await send(message)
            elif message["type"] == "websocket.accept":
                tell(SWITCHED)
                await send({**message, "headers": [*message.get("headers", []), id_header]})
            else:
                refusal = Refusal("forbidden", "There is no socket here for you.")
                tell(refusal.status)
                await refused(refusal).send(_before_the_switch(send), [id_header])

        try:
            await self._inner(scope, receive, send_and_tell)
        finally:
            tell(exchange.status)


def path_of(scope: Scope) -> str:
    """The decoded path of a request, but for encoded slashes, which stay encoded: they belong to a name, and no name
    has one. Decoded they would part it, and ``DELETE …/streams/a%2Fgroups%2Fb`` would delete a group.
    """
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return path
    parts = [unquote_to_bytes(part).replace(b"/", b"%2F") for part in raw.partition(b"?")[0].split(b"/")]
    return b"/".join(parts).decode("utf-8", "replace")


def socket_route(path: str) -> str:
    """The template of a socket's path."""
    return SOCKET_PATH if path == SOCKET_PATH else UNKNOWN


def _before_the_switch(send: Send) -> Send:
    """A ``send`` that answers a handshake with HTTP (ASGI's extension ``websocket.http.response``)."""

    async def answer(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return answer


def route_of(path: str) -> str:
    """The template of a path of Django's, such as ``/api/v1/streams/{name}``; bounded in number, whatever is asked."""
    if path.startswith(STATIC_PREFIX):
        return f"{STATIC_PREFIX}{{path}}"
    try:
        found = resolve(path)
    except Resolver404:
        return UNKNOWN
    return UNKNOWN if found.url_name == "not-found" else _template(found.route)


@lru_cache(maxsize=1024)
def _template(route: str) -> str:
    """Django's pattern as OpenAPI writes paths."""
    named = _PARAMETER.sub(lambda found: f"{{{found[1] or found[2]}}}", route.replace("^", ""))
    return "/" + named.removesuffix(r"/?\Z")
