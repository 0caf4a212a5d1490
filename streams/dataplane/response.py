"""Answers: JSON with the headers that every answer carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from streams.dataplane.request import Send
from streams.errors import Refusal

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

    async def send(self, send: Send, *, request_id: bytes) -> None:
        """Write it out."""
        headers = [
            *_ALWAYS,
            (b"content-length", b"%d" % len(self.body)),
            (b"x-request-id", request_id),
            *((name.lower().encode(), value.encode()) for name, value in self.headers.items()),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def refused(refusal: Refusal) -> Response:
    """The answer that a refusal is."""
    return Response(msgspec.json.encode(refusal.body()), refusal.status, refusal.headers)
