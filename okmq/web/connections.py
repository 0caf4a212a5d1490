"""A connection of HTTP: what of a request is taken before it is one, and for how long."""

import asyncio
from abc import ABC, abstractmethod
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from okmq.web.capacity import Capacity, Connection
from okmq.web.writes import JoinedWrites
from streams.dataplane.request import BODY_TIMEOUT_S, MALFORMED
from streams.errors import Refusal

LONGEST_LINE_BYTES, MOST_HEAD_BYTES, MOST_FIELDS = 8 * 1024, 32 * 1024, 100
"""Of a request's head: the first line or a field, all of it, and how many fields (nginx's bounds; Apache's number)."""
HEAD_TIMEOUT_S = BODY_TIMEOUT_S
"""From its first bytes to its end."""
REST_TIMEOUT_S, MOST_REST_BYTES = 5.0, 1024 * 1024
"""What is still taken, and dropped, of a request that was refused: a client that writes reads no answer yet."""


class BoundedProtocol(HttpToolsProtocol, Connection, ABC):
    """Uvicorn's HTTP/1.1 on httptools: an answer in one write, and an end to a request that does not end.

    httptools keeps a field until it is whole, and copies it with each part that comes, so what comes is counted here:
    whatever is neither of a body nor ends a head or a request (so that the fields after a body are counted, too). Its
    callbacks are called for every request, hence by their class, which ``super`` looks for each time.
    """

    capacity: Capacity
    """Of the process, for all of its connections."""
    _writes: JoinedWrites
    _loose_bytes = 0
    _is_uncounted = False
    """Whether a head may have begun in bytes that are not in ``_loose_bytes``."""
    _is_in_body = False
    _is_refused = False
    _refusal: Refusal | None = None
    """Of a head that was parsed, where it is not to be called invalid."""
    _rest_bytes: int | None = None
    """What was dropped since it lingers."""
    _deadline: asyncio.TimerHandle | None = None
    """Of the head that has begun, of what is left of a body that was answered, or of lingering."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve a connection."""
        self._writes = JoinedWrites(transport, loop=self.loop, lingers=self._lingers)
        super().connection_made(cast(asyncio.Transport, self._writes))
        self._keep_alive()
        if not self.capacity.admits(self.connections):
            self._refuse_the_last(_too_many())
            self.connections.discard(self)
            self.end()

    def idle_s(self) -> float | None:
        """For how long no request has been under way, in seconds; a head that has begun is none yet."""
        now = self.loop.time()
        if self.timeout_keep_alive_task is not None:
            return self.timeout_keep_alive - (self.timeout_keep_alive_task.when() - now)
        is_answered = self.cycle is None or self.cycle.response_complete
        if self._deadline is not None and is_answered and not self._is_in_body:
            return HEAD_TIMEOUT_S - (self._deadline.when() - now)
        return None

    def end(self) -> None:
        """Hang up at once; what was answered still leaves."""
        self._writes.close_now()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        if self._rest_bytes is not None:
            self._rest_bytes += len(data)
            if self._rest_bytes > MOST_REST_BYTES:
                self._writes.close_now()
            return
        if self._is_refused:
            return
        self._loose_bytes += len(data)
        HttpToolsProtocol.data_received(self, data)
        if self._loose_bytes and not self._is_refused:
            if self._loose_bytes > MOST_HEAD_BYTES:
                self._refuse_the_last(_too_large())
            elif not self._is_in_body:
                self._arm(HEAD_TIMEOUT_S)

    def on_message_begin(self) -> None:
        """Begin a head; behind the end of another request it has bytes that were not counted."""
        if not self._loose_bytes:
            self._loose_bytes, self._is_uncounted = 1, True
        HttpToolsProtocol.on_message_begin(self)

    def on_headers_complete(self) -> None:
        """Begin a request, unless its head is too large."""
        may_be_long = self._loose_bytes > LONGEST_LINE_BYTES or self._is_uncounted
        if len(self.headers) > MOST_FIELDS or (may_be_long and self._is_too_large()):
            self._refusal = _too_large()
            raise self._refusal  # the parser stops, and ``send_400_response`` is called
        self._loose_bytes, self._is_uncounted = 0, False
        if self._deadline is not None:
            self._disarm()
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        HttpToolsProtocol.on_headers_complete(self)
        self._is_in_body = True

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body."""
        self._loose_bytes = 0
        HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        """End a request's body."""
        self._loose_bytes, self._is_in_body = 0, False
        HttpToolsProtocol.on_message_complete(self)
        if self._deadline is not None:  # it was answered before it was whole
            self._disarm()
            self._unset_keepalive_if_required()
            self._keep_alive()

    def on_response_complete(self) -> None:
        """Go on with the next request; one that was answered before it was whole has a while to become so."""
        HttpToolsProtocol.on_response_complete(self)
        if self._loose_bytes:  # the next has begun, and has a deadline of its own
            self._unset_keepalive_if_required()
        elif self._is_in_body and self.cycle.response_complete and not self.transport.is_closing():
            self._arm(BODY_TIMEOUT_S)

    def shutdown(self) -> None:
        """Take no more requests on this connection, as the process is to end."""
        if self._rest_bytes is not None:
            self._writes.close_now()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, and hang up."""
        invalid = Refusal("validation_error", "This is not a valid HTTP request.", fields=[])
        self._refuse_the_last(self._refusal or invalid)

    def _refuse_the_last(self, refusal: Refusal) -> None:
        """Refuse what is being received and hang up: where the next request would begin is not known.

        A request under way answers for itself, as the last one of its connection; when it is its body that cannot be
        parsed, it is told so.
        """
        self._is_refused = True
        self._disarm()
        cycle = self.cycle
        if cycle is None or (cycle.response_complete and not self._is_in_body):
            # What has been read of it is no request: it has no method and no path.
            self.refuse(refusal)
        elif cycle.response_complete:
            self.transport.close()
        else:
            cycle.keep_alive = False
            if self._is_in_body:
                cycle.scope["state"][MALFORMED] = True
                cycle.more_body = False
                cycle.message_event.set()

    def _is_too_large(self) -> bool:
        lines = [len(self.url), *(len(name) + len(value) for name, value in self.headers)]
        return sum(lines) > MOST_HEAD_BYTES or max(lines) > LONGEST_LINE_BYTES

    def _lingers(self) -> bool:
        """Whether the client may still be writing: it would hear of a broken connection instead of the answer."""
        if not (self._is_in_body or self._is_refused or self._loose_bytes):
            return False
        self._rest_bytes = 0
        self._disarm()
        self._arm(REST_TIMEOUT_S)
        self.flow.resume_reading()
        return True

    def _keep_alive(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _arm(self, seconds: float) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self._late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self._rest_bytes is not None or self._is_in_body:
            self._writes.close_now()
        else:
            self._refuse_the_last(
                Refusal("request_timeout", "The head of the request did not arrive in time.")
            )

    @abstractmethod
    def refuse(self, refusal: Refusal) -> None:
        """Answer what has no method and no path, and hang up."""


def _too_many() -> Refusal:
    return Refusal(
        "rate_limited",
        "There are as many connections as this process may have.",
        headers={"Retry-After": "1"},
    )


def _too_large() -> Refusal:
    return Refusal(
        "head_too_large",
        f"The head of a request may have {MOST_HEAD_BYTES} bytes, {MOST_FIELDS} fields, and "
        f"{LONGEST_LINE_BYTES} bytes in the first line or in one field.",
        limit=MOST_HEAD_BYTES,
    )
