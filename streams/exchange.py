"""One request and its answer: the id that names it everywhere, and what the access log and the metrics tell of it."""

import random
import re
import time
from collections.abc import Callable, Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any

import msgspec

REQUEST_ID = b"x-request-id"
GONE = 499
"""The status that stands for a client that went away before it was answered (nginx's)."""

UNKNOWN = "unknown"
"""The route of what leads nowhere."""

_GIVEN = re.compile(rb"(?!.*okmq_)[A-Za-z0-9._-]{1,64}")
"""What a client may name a request; whoever sends its token there by mistake is given another id."""


class Exchange(msgspec.Struct, gc=False):
    """One request with its answer; filled in as they become known.

    Attributes:
        request_id: the client's own, where it sent one that is short and plain.
        path: as sent, without the query, which may hold secrets.
        address, agent: where it came from, and the User-Agent as sent.
        began_s: of the monotonic clock.
        route: the path's template, such as ``/api/v1/streams/{name}``.
        status: of the answer; 101 is a socket that was opened.
        bytes_in, bytes_out: of the bodies.
        workspace, token, user: who called: a token by its id, or a person by name.
        seconds: from the request to the end of the answer.
    """

    request_id: bytes
    method: str
    path: bytes
    address: str
    agent: bytes
    began_s: float
    route: str = UNKNOWN
    status: int = GONE
    bytes_in: int = 0
    bytes_out: int = 0
    workspace: str = ""
    token: int | None = None
    user: str = ""
    seconds: float = 0.0

    def end(self) -> None:
        """Take the time."""
        self.seconds = time.perf_counter() - self.began_s


Record = Callable[[Exchange], None]
"""Told of every exchange at its end."""

_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


def begin(scope: MutableMapping[str, Any], given_id: bytes, agent: bytes) -> Exchange:
    """The exchange that an ASGI scope opens; it is the current one of this task and of what it calls."""
    client = scope.get("client")
    exchange = Exchange(
        given_id if given_id and _GIVEN.fullmatch(given_id) else b"%016x" % random.getrandbits(64),
        scope.get("method", "GET"),
        scope.get("raw_path") or scope["path"].encode(),
        client[0] if client else "",
        agent,
        time.perf_counter(),
    )
    _current.set(exchange)
    return exchange


def current() -> Exchange | None:
    """The exchange under way in this task, or None outside of one."""
    return _current.get()


def note_caller(*, workspace: str, token: int | None = None, user: str = "") -> None:
    """Say who the caller of the current exchange is; outside of one nothing happens."""
    exchange = _current.get()
    if exchange is not None:
        exchange.workspace, exchange.token, exchange.user = workspace, token, user


def header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    """The first header of a lower-case name, or nothing."""
    return next((value for name, value in headers if name == wanted), b"")
