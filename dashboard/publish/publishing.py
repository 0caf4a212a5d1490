"""Messages from a form into a stream, through the same checks as the API's publish."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.utils.translation import gettext as _

from dashboard import formats
from streams import store
from streams.dataplane.messages import read_publication
from streams.errors import Refusal, refusal_of
from streams.log import stats
from streams.log.append import Appended, append
from streams.log.entries import NewMessage
from streams.log.errors import LogError
from streams.models import Stream
from streams.naming import matches_any


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the message stands, and whether it stood there before."""

    offset: int
    duplicate: bool


def publish_one(stream: Stream, *, id: str, key: str, headers: str, body: str) -> Outcome:
    """Store one message.

    Args:
        headers: a JSON object of strings, or "" for none.
        body: JSON text; it is stored as it is, with every digit.

    Raises:
        Refusal: what the API would answer.
    """
    fields: dict[str, object] = {"id": id, **({"key": key} if key else {})}
    if headers:
        fields["headers"] = msgspec.Raw(headers.encode())
    request = msgspec.json.encode({**fields, "body": msgspec.Raw(body.encode())})
    publication = read_publication(request)
    demand_key(stream, key)
    demand_size(stream, len(publication.messages[0].body))
    (stored,) = append_all(stream, publication.messages)
    return Outcome(stored.offset, stored.duplicate)


def demand_key(stream: Stream, key: str | None) -> None:
    """Refuse a message with a key that the stream does not accept."""
    if stream.keys and not (key and matches_any(key, stream.keys)):
        message = _("The stream accepts %(keys)s.") % {"keys": ", ".join(stream.keys)}
        raise Refusal("validation_error", message, errors=[{"index": 0, "field": "key", "message": message}])


def demand_size(stream: Stream, size_bytes: int) -> None:
    """Refuse a body that is larger than the stream takes."""
    if sentence := too_large(stream, size_bytes):
        raise Refusal("message_too_large", sentence)


def too_large(stream: Stream, size_bytes: int) -> str:
    """That a body of so many bytes is larger than the stream takes, as a sentence; "" for one that is not."""
    if size_bytes <= stream.max_message_bytes:
        return ""
    return _("The body has %(size)s bytes; the stream takes %(limit)s.") % {
        "size": formats.count(size_bytes),
        "limit": formats.count(stream.max_message_bytes),
    }


def append_all(stream: Stream, messages: Sequence[NewMessage]) -> list[Appended]:
    """Store some messages, all or none, and let the live numbers know.

    Raises:
        Refusal: what the API would answer.
    """
    try:
        stored = store.log().run(append(stream.stream_id, messages))
        store.log().run(stats.touch([stream.stream_id]))
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    return stored
