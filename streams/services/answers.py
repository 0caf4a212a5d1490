"""Publishing the answer to a query into a stream: a row is a message, its body an object of the row's values."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streams import naming, store
from streams.decoding import DEEPEST_BODY
from streams.errors import Refusal, refusal_of
from streams.log.append import append_told, batches
from streams.log.entries import NewMessage
from streams.log.errors import LogError
from streams.models import Query, Stream
from streams.nesting import is_deeper

rows_of = msgspec.json.Decoder(list[list[msgspec.Raw]]).decode
"""The rows of an answer, each value as Spark wrote it."""

text_of = msgspec.json.Decoder(str).decode


@dataclass(frozen=True, slots=True)
class Published:
    """What became of the rows: stored now, or known to the stream from an earlier time; and where they stand.

    Attributes:
        truncated: the query has more rows than its limit let into its answer, and so more than were published.
    """

    stored: int
    known: int
    truncated: bool
    first_offset: int | None
    last_offset: int | None


def answer_publish(query: Query, stream: Stream, *, key: str | None = None) -> Published:
    """Publish every row; each has an id of its own, so doing it again within ``dedup_window`` stores nothing twice.

    Args:
        key: the column whose value, as text, is the message's key; a null is none.

    Raises:
        Refusal: ``query_not_found`` without an answer; ``validation_error`` and ``message_too_large`` where a row makes
            no message (nothing was stored then); what the stream refuses, after the batches before it, of which
            ``stored`` says how many messages were new.
    """
    if not query.columns:
        raise Refusal("query_not_found", "There is no result of this query, or it is no longer kept.")
    messages = list(_messages(query, stream, key))
    offsets: list[int] = []
    known = 0
    for batch in batches(messages):
        try:
            stored = store.log().run(append_told(stream.stream_id, batch))
        except LogError as error:
            raise _refused_after(refusal_of(error, stream=stream.name), len(offsets) - known) from None
        offsets += [each.offset for each in stored]
        known += sum(each.duplicate for each in stored)
    return Published(
        stored=len(offsets) - known,
        known=known,
        truncated=query.truncated,
        first_offset=min(offsets, default=None),
        last_offset=max(offsets, default=None),
    )


def _refused_after(refusal: Refusal, stored: int) -> Refusal:
    """With what the batches before it have stored."""
    if not stored:
        return refusal
    before = f"{stored:,} message{'s' * (stored != 1)} of the answer had been published before it."
    return Refusal(refusal.code, f"{refusal.message} {before}", **refusal.details, stored=stored)


def _messages(query: Query, stream: Stream, key: str | None) -> Iterator[NewMessage]:
    names = [name for name, _ in query.columns]
    if len(set(names)) < len(names):
        raise Refusal(
            "validation_error", "Two columns have the same name; give each its own with AS.", fields=[]
        )
    if key is not None and key not in names:
        raise Refusal("validation_error", f"There is no column {naming.shortened(key)!r}.", fields=["key"])
    fields = [json.dumps(name, ensure_ascii=False).encode() for name in names]
    for number, row in enumerate(rows_of(query.rows), start=1):
        body = (
            b"{"
            + b",".join(field + b":" + bytes(value) for field, value in zip(fields, row, strict=True))
            + b"}"
        )
        its_key = None if key is None else _key_of(bytes(row[names.index(key)]))
        if is_deeper(body, DEEPEST_BODY):
            raise Refusal("validation_error", f"Row {number}: Nested deeper than {DEEPEST_BODY}.", fields=[])
        if len(body) > stream.max_message_bytes:
            raise Refusal(
                "message_too_large",
                f"Row {number:,} makes a body of {len(body):,} bytes; the stream takes {stream.max_message_bytes:,}.",
                index=number - 1,
                size=len(body),
                limit=stream.max_message_bytes,
            )
        fault = None if its_key is None else naming.key_fault(its_key)
        if not fault and stream.keys and not (its_key and naming.matches_any(its_key, stream.keys)):
            fault = f"The stream accepts {', '.join(stream.keys)}."
        if fault:
            raise Refusal("validation_error", f"Row {number}: {fault}", fields=["key"])
        yield NewMessage(id=f"query-{query.pk}-{number}", body=body, key=its_key)


def _key_of(raw: bytes) -> str | None:
    if raw == b"null":
        return None
    return text_of(raw) if raw.startswith(b'"') else raw.decode()
