"""Answers: JSON with the headers that every answer carries."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from streams.dataplane.request import Send
from streams.errors import Refusal

Header = tuple[bytes, bytes]

_ALWAYS = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(slots=True)
class Response:
    """A whole answer; ``body`` is JSON text."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, send: Send, headers: Sequence[Header]) -> int:
        """Write it out with more headers; the bytes of its body."""
        headers = [*_ALWAYS, (b"content-length", b"%d" % len(self.body)), *headers]
        headers += [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
        return len(self.body)


@dataclass(slots=True)
class EventStream:
    """An answer of server-sent events, written as they come until they end or the client goes away."""

    events: AsyncIterator[bytes]
    status: int = 200

    async def send(self, send: Send, headers: Sequence[Header]) -> int:
        """Write it out with more headers; the bytes of its events."""
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-accel-buffering", b"no"),
            *headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        sent = 0
        async for event in self.events:
            sent += len(event)
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return sent


def refused(refusal: Refusal) -> Response:
    """The answer that a refusal is."""
    return Response(msgspec.json.encode(refusal.body()), refusal.status, refusal.headers)
