"""Reading a request's body: strict JSON, whole, chunked or not, with a bound."""

from collections.abc import Mapping
from typing import IO, Any, cast

from django.http import HttpRequest, UnreadablePostError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from streams.decoding import decode
from streams.errors import Refusal

UNREAD = "okmq.unread"
"""In the scope of a request whose body was left out before it came here (``okmq.web.held``)."""
BODY_LIMIT_BYTES = 16 * 1024 * 1024
MOST_CONTAINERS = 20_000
"""A thousand streams with all that they take are a fifth of it."""
MOST_MEMBERS = 20_000
MOST_MEMBERS_OF_MANY = 250_000
"""In an array: a thousand streams with all that they take are less."""


class NoBody:
    """What ``request.data`` is where nothing was sent; unlike ``{}`` it cannot be taken for an object."""


class StrictJSONParser(BaseParser):
    """JSON as RFC 8259 has it and the contract narrows it: UTF-8, no NaN, no BOM, no lone surrogate, 128 deep."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The decoded body, or ``NoBody`` when nothing was sent.

        Raises:
            Refusal: ``unsupported_media_type``, ``payload_too_large``, and those of ``decode``.
        """
        data = stream.read(BODY_LIMIT_BYTES + 1)
        if len(data) > BODY_LIMIT_BYTES:
            raise Refusal(
                "payload_too_large",
                f"The body is larger than {BODY_LIMIT_BYTES} bytes.",
                limit=BODY_LIMIT_BYTES,
            )
        if not data:
            return NoBody()
        check_media_type(media_type or "")
        is_array = data.lstrip(b" \t\r\n").startswith(b"[")
        most_members = MOST_MEMBERS_OF_MANY if is_array else MOST_MEMBERS
        return decode(data, most_containers=MOST_CONTAINERS, most_members=most_members)


class StrictRequest(Request):
    """DRF's request, but that a body without Content-Length is read: DRF takes it for an empty one."""

    def _parse(self) -> tuple[Any, Mapping[str, Any]]:
        if UNREAD in getattr(self._request, "scope", {}):
            # Its token was none when it came, or the database did not say so: an empty body is not what was sent.
            raise Refusal("store_unavailable", "The body was not read; try again.")
        encoding = self._request.META.get("HTTP_CONTENT_ENCODING", "identity")
        if encoding.strip().lower() not in {"", "identity"}:
            raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
        if declared_length(self._request) > BODY_LIMIT_BYTES:
            raise Refusal(
                "payload_too_large",
                f"The body is larger than {BODY_LIMIT_BYTES} bytes.",
                limit=BODY_LIMIT_BYTES,
            )
        body = cast(IO[Any], self._request)  # HttpRequest reads like a file
        try:
            return StrictJSONParser().parse(body, self.content_type), {}
        except UnreadablePostError:
            raise Refusal("request_timeout", "The body did not arrive whole.") from None


def declared_length(request: HttpRequest) -> int:
    """What Content-Length says, 0 where it says nothing that can be read."""
    text = str(request.META.get("CONTENT_LENGTH") or "0")
    return int(text[:20]) if text.isascii() and text.isdigit() else 0


def check_media_type(content_type: str) -> None:
    """Raises Refusal unless it is plain JSON; nothing said is JSON too."""
    media_type, _, parameters = content_type.partition(";")
    if media_type.strip().lower() not in {"", "application/json"}:
        raise Refusal("unsupported_media_type", "Send JSON, with content-type application/json.")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if charset.startswith("charset=") and charset not in {"charset=utf-8", "charset=utf8"}:
        raise Refusal("unsupported_media_type", "Send JSON in UTF-8.")
