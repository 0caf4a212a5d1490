"""The data plane's ASGI application: which path goes where, and what every answer has."""

import logging
import re
import secrets
from asyncio import Task, create_task
from collections.abc import Awaitable, Callable
from urllib.parse import unquote_to_bytes

from django.http.request import validate_host

from streams.dataplane import grouping, moving, publishing, reading, tailing
from streams.dataplane.context import Context
from streams.dataplane.directory import Directory
from streams.dataplane.durability import Durability
from streams.dataplane.request import Disconnected, Receive, Request, Scope, Send
from streams.dataplane.response import EventStream, Response, refused
from streams.errors import Refusal, refusal_of
from streams.log.client import AsyncLog
from streams.log.errors import LogError
from streams.log.wake import Wakener

PREFIX = b"/api/v1/"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PORT = re.compile(r":[0-9]{1,5}$")

Handler = Callable[..., Awaitable[Response | EventStream]]

# The segments behind the prefix → method → handler. A "*" is any segment, given to the handler.
ROUTES: dict[tuple[str, ...], dict[str, Handler]] = {
    ("streams", "*", "messages"): {
        "POST": publishing.publish,
        "GET": reading.read_messages,
        "DELETE": moving.purge,
    },
    ("streams", "*", "messages", "*"): {"GET": reading.read_message, "DELETE": moving.delete_message},
    ("streams", "*", "commit"): {"POST": moving.commit},
    ("streams", "*", "tail"): {"GET": tailing.tail},
    ("streams", "*", "groups", "*", "fetch"): {"POST": grouping.fetch},
    ("streams", "*", "groups", "*", "ack"): {"POST": grouping.ack},
    ("streams", "*", "groups", "*", "nack"): {"POST": grouping.nack},
    ("streams", "*", "groups", "*", "working"): {"POST": grouping.working},
    ("streams", "*", "groups", "*", "term"): {"POST": grouping.term},
    ("publish", "*"): {"POST": publishing.publish_by_key},
}

log = logging.getLogger(__name__)


class DataPlane:
    """Serves the paths of ``ROUTES``; made once a process, started and stopped with its event loop.

    Args:
        url: the log's store.
        allowed_hosts: what the Host header may name, as Django's ALLOWED_HOSTS.
    """

    def __init__(self, url: str, *, allowed_hosts: list[str]) -> None:
        self._url, self._allowed_hosts = url, allowed_hosts
        self._context: Context | None = None
        self._telling: Task[None] | None = None

    def start(self) -> Context:
        """Connect; called in the event loop that will serve."""
        log_client = AsyncLog(self._url)
        directory = Directory(log_client)
        wakener = Wakener(self._url, on_changed=directory.forget)
        self._context = Context(log_client, directory, wakener, Durability(log_client))
        wakener.start()
        self._telling = create_task(self._context.tell_worker())
        return self._context

    async def stop(self) -> None:
        """Disconnect; open polls are answered with what there is."""
        if self._telling is not None:
            self._telling.cancel()
        if self._context is not None:
            await self._context.close()

    @staticmethod
    def handles(scope: Scope) -> bool:
        """Whether a request is for this application."""
        path = scope.get("raw_path") or b""
        return path.startswith(PREFIX) and match(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._context or self.start()
        request = Request(scope, receive)
        given_id = request.headers.get(b"x-request-id", b"")
        request_id = given_id if _REQUEST_ID.fullmatch(given_id) else secrets.token_hex(8).encode()
        response: Response | EventStream
        try:
            response = await self._respond(context, scope, request)
        except Disconnected:
            return
        except Refusal as refusal:
            response = refused(refusal)
        except LogError as error:
            response = refused(refusal_of(error))
        except Exception:
            log.exception(
                "A request failed.", extra={"request_id": request_id.decode(), "path": scope["path"]}
            )
            response = refused(
                Refusal("internal_error", f"Something went wrong (request {request_id.decode()}).")
            )
        await response.send(send, request_id=request_id)

    async def _respond(self, context: Context, scope: Scope, request: Request) -> Response | EventStream:
        host = _PORT.sub("", request.headers.get(b"host", b"").decode("latin-1"))
        if not validate_host(host, self._allowed_hosts):
            raise Refusal("invalid_host", "This host name is not served here; see OKMQ_ALLOWED_HOSTS.")
        matched = match(scope["raw_path"])
        if matched is None:
            raise Refusal("not_found", "There is nothing at this path.")
        methods, arguments = matched
        handler = methods.get(request.method)
        if handler is None:
            allowed = ", ".join(sorted(methods))
            raise Refusal(
                "method_not_allowed",
                f"This path takes {allowed}.",
                headers={"Allow": allowed},
                allowed=sorted(methods),
            )
        return await handler(context, request, *arguments)


def match(raw_path: bytes) -> tuple[dict[str, Handler], list[str]] | None:
    """The methods of a path and the arguments in it, or None. With and without the slash at the end is the same.

    Segments are split before they are unquoted, so that an encoded slash stays inside its segment.
    """
    path = raw_path.partition(b"?")[0]
    if not path.startswith(PREFIX):
        return None
    rest = path[len(PREFIX) :].removesuffix(b"/")
    segments = [unquote_to_bytes(part).decode("utf-8", "replace") for part in rest.split(b"/")]
    for pattern, methods in ROUTES.items():
        if len(pattern) == len(segments) and all(map(_fits, pattern, segments)):
            return methods, [segment for part, segment in zip(pattern, segments, strict=True) if part == "*"]
    return None


def _fits(part: str, segment: str) -> bool:
    return part in ("*", segment)
