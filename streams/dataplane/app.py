"""The data plane's ASGI application: which path goes where, and what every answer has."""

import logging
from asyncio import Task, create_task, wait_for
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from django.http.request import split_domain_port, validate_host

from streams import rates
from streams.dataplane import committing, grouping, publishing, reading, removing, tailing
from streams.dataplane.context import Context
from streams.dataplane.directory import Directory
from streams.dataplane.durability import Durability
from streams.dataplane.request import Disconnected, Receive, Request, Scope, Send, invalid
from streams.dataplane.response import EventStream, Response, refused
from streams.errors import Refusal, refusal_of
from streams.exchange import REQUEST_ID, Exchange, Record, begin
from streams.log.client import AsyncLog
from streams.log.errors import LogError
from streams.log.wake import Wakener

PREFIX = b"/api/v1/"
_PREFIX = PREFIX.decode().split("/")[:-1]
FIRST_LOOK_S = 1.0
"""For so long at most is the first answer held back so that it can tell ``Okmq-Epoch``."""

LONGEST_KNOWN, MOST_KNOWN = 256, 4096
"""Bytes of a host that is remembered, and how many are."""

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Handler = Callable[..., Awaitable[Response | EventStream]]

# The template behind the prefix → method → handler; what stands for a part in braces is given to the handler.
ROUTES: dict[str, dict[str, Handler]] = {
    "streams/{name}/messages": {
        "POST": publishing.publish,
        "GET": reading.read_messages,
        "DELETE": removing.purge,
    },
    "streams/{name}/messages/{offset}": {"GET": reading.read_message, "DELETE": removing.delete_message},
    "streams/{name}/commit": {"POST": committing.commit},
    "streams/{name}/tail": {"GET": tailing.tail},
    "streams/{name}/groups/{group}/fetch": {"POST": grouping.fetch},
    "streams/{name}/groups/{group}/ack": {"POST": grouping.ack},
    "streams/{name}/groups/{group}/nack": {"POST": grouping.nack},
    "streams/{name}/groups/{group}/working": {"POST": grouping.working},
    "streams/{name}/groups/{group}/term": {"POST": grouping.term},
    "publish/{key}": {"POST": publishing.publish_by_key},
}


class Route(NamedTuple):
    """A path that the data plane serves: its template, its methods, whether a key stands in it."""

    template: str
    methods: dict[str, Handler]
    has_key: bool


def _with_head(methods: dict[str, Handler]) -> dict[str, Handler]:
    # The server sends no body after HEAD; what never ends has no head of a whole answer.
    heads = {"HEAD": get} if (get := methods.get("GET")) not in {None, tailing.tail} else {}
    return {**methods, **heads}


def _by_shape(routes: Mapping[str, dict[str, Handler]]) -> dict[tuple[int, tuple[str, ...]], Route]:
    """The routes by their number of segments and by the fixed ones, which take turns with those in braces."""
    found = {}
    for template, methods in routes.items():
        segments = template.split("/")
        assert all((part[0] == "{") == at % 2 for at, part in enumerate(segments)), template
        shape = len(segments), tuple(segments[::2])
        found[shape] = Route(f"{PREFIX.decode()}{template}", _with_head(methods), "{key}" in segments)
    return found


_ROUTES = _by_shape(ROUTES)

log = logging.getLogger(__name__)


class DataPlane:
    """Serves the paths of ``ROUTES``; made once a process, started and stopped with its event loop.

    Args:
        url, memory_url: the log's servers.
        allowed_hosts: what the Host header may name, as Django's ALLOWED_HOSTS.
        undo_s: for how long a removal that asks for it can be undone; 0: it is refused.
        purge_for_good: the scope that a removal needs which cannot be undone.
        otherwise: the application that serves every other path.
        record: told of every exchange at its end.
    """

    def __init__(
        self,
        url: str,
        *,
        memory_url: str | None = None,
        allowed_hosts: list[str],
        undo_s: int = 0,
        purge_for_good: str = "manage",
        otherwise: Application | None = None,
        record: Record | None = None,
    ) -> None:
        self._url, self._memory_url, self._allowed_hosts = url, memory_url, allowed_hosts
        self._otherwise, self._record = otherwise or _nothing, record or _forgotten
        self._undo_s, self._purge_for_good = undo_s, purge_for_good
        self._context: Context | None = None
        self._telling: Task[None] | None = None
        self._known_hosts: set[bytes] = set()

    async def start(self) -> Context:
        """Connect, in the event loop that will serve; a store that does not answer is not waited for."""
        log_client = AsyncLog(self._url, memory_url=self._memory_url)
        directory = Directory(log_client)
        wakener = Wakener(self._url, memory_url=self._memory_url, on_changed=directory.forget)
        self._context = Context(
            log_client,
            directory,
            wakener,
            Durability(log_client),
            undo_s=self._undo_s,
            purge_for_good=self._purge_for_good,
        )
        wakener.start()
        with suppress(LogError, TimeoutError):
            await wait_for(self._context.look_at_line(), FIRST_LOOK_S)
        self._telling = create_task(self._context.tell_worker())
        return self._context

    def finish_polls(self) -> None:
        """Have open polls answer now with what there is, and tails end; the process is to end, but serves on."""
        if self._context is not None:
            self._context.directory.parked.finish()

    async def stop(self) -> None:
        """Disconnect."""
        if self._telling is not None:
            self._telling.cancel()
        if self._context is not None:
            await self._context.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        matched = match(scope.get("raw_path") or b"")
        if matched is None:
            await self._otherwise(scope, receive, send)
            return
        route, arguments = matched
        request = Request(scope, receive)
        headers = request.headers
        exchange = begin(scope, headers.get(REQUEST_ID, b""), headers.get(b"user-agent", b""))
        exchange.route = route.template
        try:
            await self._serve(exchange, route, arguments, request, send)
        finally:
            exchange.bytes_in = request.received
            exchange.end()
            self._record(exchange)

    async def _serve(
        self, exchange: Exchange, route: Route, arguments: tuple[str, ...], request: Request, send: Send
    ) -> None:
        """Answer; nothing is said to a client that went away."""
        context = self._context or await self.start()
        rate_headers: dict[str, str] = {}
        response: Response | EventStream
        try:
            self._check_host(request)
            request.grant = grant = await context.directory.grant(request.headers.get(b"authorization"))
            exchange.token, exchange.workspace = grant.id, grant.workspace
            handler = _handler(route, request.method)
            _check_text(route, arguments)
            if grant.rate_limit is not None:
                rate_headers = await context.log.run(
                    rates.admitted(grant.id, limit=grant.rate_limit, burst=grant.rate_burst)
                )
            response = await handler(context, request, *arguments)
        except Disconnected:
            return
        except Exception as error:
            response = refused(_refusal_for(error, exchange))
        headers = [(REQUEST_ID, exchange.request_id)]
        for name, value in rate_headers.items():
            headers.append((name.lower().encode(), value.encode()))
        if context.epoch is not None:
            headers.append((b"okmq-epoch", b"%d" % context.epoch))
        exchange.status = response.status
        exchange.bytes_out = await response.send(send, headers)

    def _check_host(self, request: Request) -> None:
        if not self._serves(request.headers.get(b"host", b"")):
            raise Refusal("invalid_host", "This host name is not served here; see OKMQ_ALLOWED_HOSTS.")

    def _serves(self, host: bytes) -> bool:
        if host in self._known_hosts:
            return True
        name, _ = split_domain_port(host.decode("latin-1"))
        served = bool(name) and validate_host(name, self._allowed_hosts)
        if served and len(host) <= LONGEST_KNOWN and len(self._known_hosts) < MOST_KNOWN:
            self._known_hosts.add(host)  # a name under a wildcard is the client's choice, so there is a bound
        return served


def _refusal_for(error: Exception, exchange: Exchange) -> Refusal:
    """The answer for whatever a handler raised."""
    match error:
        case Refusal():
            return error
        case LogError():
            return refusal_of(error)
    request_id = exchange.request_id.decode()
    log.error("A request failed.", exc_info=error, extra={"path": exchange.path.decode("latin-1")})
    return Refusal("internal_error", f"Something went wrong (request {request_id}).", request_id=request_id)


def match(raw_path: bytes) -> tuple[Route, tuple[str, ...]] | None:
    """The route of a path and the arguments in it, or None. With and without the slash at the end is the same.

    Segments are split before they are unquoted, so that an encoded slash stays inside its segment.
    """
    path = raw_path.partition(b"?")[0]
    if b"%" in path:
        path = path.removesuffix(b"/")
        segments = [unquote_to_bytes(part).decode("utf-8", "surrogateescape") for part in path.split(b"/")]
        if segments[: len(_PREFIX)] != _PREFIX:
            return None
        del segments[: len(_PREFIX)]
    elif path.startswith(PREFIX):
        segments = path[len(PREFIX) :].removesuffix(b"/").decode("utf-8", "surrogateescape").split("/")
    else:
        return None
    route = _ROUTES.get((len(segments), tuple(segments[::2])))
    return None if route is None else (route, tuple(segments[1::2]))


def _check_text(route: Route, arguments: tuple[str, ...]) -> None:
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        if route.has_key:
            raise invalid("key", "Expected UTF-8.") from None
        raise Refusal("not_found", "There is nothing at this path.") from None


def _handler(route: Route, method: str) -> Handler:
    handler = route.methods.get(method)
    if handler is None:
        allowed = ", ".join(sorted(route.methods))
        raise Refusal(
            "method_not_allowed",
            f"This path takes {allowed}.",
            headers={"Allow": allowed},
            allowed=sorted(route.methods),
        )
    return handler


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """What stands behind a data plane that stands alone."""
    await refused(Refusal("not_found", "There is nothing at this path.")).send(send, [])


def _forgotten(exchange: Exchange) -> None:
    """What a data plane without a log does with an exchange."""
