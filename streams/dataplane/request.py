"""One HTTP request: its path, query, headers and body, read with bounds."""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from streams import moments
from streams.dataplane.stepping import Stepped
from streams.errors import Refusal
from streams.log.config import TokenGrant
from streams.naming import compiled, pattern_fault

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT_BYTES = 16 * 1024 * 1024
LARGEST_AT_ONCE_BYTES = 256 * 1024
"""A larger body is taken apart in a thread: a hostile one takes long enough to keep others waiting."""
BODY_TIMEOUT_S = 30.0
MALFORMED = "okmq.malformed"
"""In the state of a scope: the server cannot parse the body."""
LARGEST_INTEGER = 2**53 - 1
"""Offsets are exact in every client's JSON up to here."""

_INTEGER = re.compile(r"[0-9]{1,16}")
_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,9})?")


class Disconnected(Exception):
    """The client went away before it was answered."""


class Request:
    """What a handler needs of an ASGI scope.

    Attributes:
        method: upper case.
        address: of the client; empty where the server does not know it.
        headers: lower-case names to values; of a name sent twice the first counts.
        query: parameters by name.
        grant: what the caller may do; there once they were let in.
        received: bytes of the body that have come so far.
    """

    grant: TokenGrant

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.receive = receive
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.received = 0
        self._is_gone = False
        self._state: MutableMapping[str, Any] = scope.get("state", {})
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self._query_string: bytes = scope["query_string"]

    def query(self, *allowed: str) -> dict[str, str]:
        """The query parameters.

        Raises:
            Refusal: ``validation_error`` for one that is not allowed here (a mistyped ``?ofset=4`` must not empty
                a stream), that is sent twice or that is not UTF-8.
        """
        if not self._query_string:
            return {}
        try:
            pairs = parse_qsl(
                self._query_string.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=False,
                errors="strict",
                max_num_fields=50,
            )
        except (UnicodeDecodeError, ValueError):
            raise Refusal("validation_error", "The query string cannot be read.", fields=[]) from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in allowed:
                raise invalid(name, "Unknown parameter.")
            if name in found:
                raise invalid(name, "This parameter may be sent only once.")
            found[name] = value
        return found

    @property
    def authorization(self) -> bytes:
        """The header that let the caller in."""
        return self.headers.get(b"authorization", b"")

    def check_media_type(self) -> None:
        """Raises Refusal ``unsupported_media_type`` unless the body is plain JSON (no type is taken as JSON)."""
        encoding, media_type = (
            self.headers.get(b"content-encoding", b""),
            self.headers.get(b"content-type", b""),
        )
        if not encoding and media_type == b"application/json":
            return  # what nearly everybody sends
        if encoding.lower() not in {b"", b"identity"}:
            raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
        media_type, _, parameters = media_type.partition(b";")
        if media_type.strip().lower() not in {b"", b"application/json"}:
            raise Refusal("unsupported_media_type", "Send JSON, with content-type application/json.")
        charset = parameters.replace(b" ", b"").replace(b'"', b"").lower()
        if charset.startswith(b"charset=") and charset not in {b"charset=utf-8", b"charset=utf8"}:
            raise Refusal("unsupported_media_type", "Send JSON in UTF-8.")

    async def body(self) -> bytes:
        """The whole body, chunked or not.

        Raises:
            Refusal: ``payload_too_large`` as soon as it is known, ``request_timeout`` after 30 s.
            Disconnected: the client went away.
        """
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > BODY_LIMIT_BYTES:
            raise too_large()
        whole = Stepped(self._whole_body())
        if whole.is_done:  # most bodies arrive with their head, and need no timer
            return await whole
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await whole
        except TimeoutError:
            raise too_late() from None

    async def _whole_body(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self.check_framing()
        first: bytes = message.get("body", b"")
        self.received = len(first)
        if not message.get("more_body", False):
            if len(first) > BODY_LIMIT_BYTES:
                raise too_large()
            return first
        parts = [first]
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            self.check_framing()
            parts.append(message.get("body", b""))
            self.received += len(parts[-1])
            if self.received > BODY_LIMIT_BYTES:
                raise too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def check_framing(self) -> None:
        """Raises Refusal ``validation_error`` once the server has found that the body is not as HTTP frames it."""
        if MALFORMED in self._state:
            raise Refusal(
                "validation_error",
                "The body is not valid HTTP.",
                fields=[],
                headers={"Connection": "close"},
            )

    async def disconnected(self) -> None:
        """Returns when the client goes away."""
        while not self._is_gone:
            message = await self.receive()
            self._is_gone = message["type"] == "http.disconnect"

    def is_gone(self) -> bool:
        """Whether the server knows that the client has gone away; for a request whose body was read."""
        if not self._is_gone:
            Stepped(self.disconnected()).drop()
        return self._is_gone


def invalid(field: str, sentence: str) -> Refusal:
    """A refused parameter or field."""
    return Refusal("validation_error", f"{field}: {sentence}", fields=[field])


def whole_number(name: str, text: str, *, low: int, high: int = LARGEST_INTEGER) -> int:
    """A query parameter that is a whole number from ``low`` to ``high``."""
    if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
        raise invalid(name, f"Expected a whole number from {low} to {high}.")
    return int(text)


def seconds(name: str, text: str, *, high: float) -> float:
    """A query parameter in seconds, fractions allowed, from 0 to ``high``."""
    if not _DECIMAL.fullmatch(text) or float(text) > high:
        raise invalid(name, f"Expected seconds from 0 to {high:g}.")
    return float(text)


def unix_ms(name: str, text: str) -> int:
    """A query parameter that is an RFC 3339 time, in any zone but with one, as unix milliseconds."""
    # A plus sign in a query string means a blank, and people paste times with an offset as they are.
    time = moments.parse(text.replace(" ", "+"))
    if time is None:
        raise invalid(name, "Expected a time such as 2026-11-21T06:00:00Z, with its zone.")
    return max(0, moments.unix_ms(time))


def key_pattern(name: str, text: str) -> re.Pattern[str]:
    """A query parameter that is a key pattern, compiled."""
    fault = pattern_fault(text)
    if fault:
        raise invalid(name, fault)
    return compiled(text)


def too_late() -> Refusal:
    """The refusal of a body that has not come within ``BODY_TIMEOUT_S``."""
    return Refusal("request_timeout", "The body did not arrive in time.", headers={"Connection": "close"})


def too_large() -> Refusal:
    """The refusal of a body of more than ``BODY_LIMIT_BYTES``."""
    # What is left of the body is not read, so the connection cannot serve another request.
    return Refusal(
        "payload_too_large",
        f"The body is larger than {BODY_LIMIT_BYTES} bytes.",
        limit=BODY_LIMIT_BYTES,
        headers={"Connection": "close"},
    )
