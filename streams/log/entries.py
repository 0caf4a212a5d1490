"""What one message looks like in the store and on the wire.

An entry's id is ``<offset>-<unix ms>``; its fields stand in one order, so that Redis shares their names across a
node: ``i`` id, ``b`` body (the JSON bytes as sent), ``c`` bytes of the stream up to and with this message, then
only where present ``k`` key, ``h`` headers (JSON), ``x`` when its own time to live ends (ms of the steady clock).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

LARGEST_FRAME_BYTES = 105
"""Of a message in an answer without its id, body, key and headers, with the comma after it."""
_escaped = re.compile(rb'["\\\x00-\x1f\x7f]').search

Entry = Sequence[Any]
"""One raw entry as the server sends it: ``[id, [field, value, …]]``, all bytes."""

LONGEST_ID = 50
LARGEST_HEADERS_BYTES = 65_536
LONGEST_TTL_S = 10 * 365 * 86_400
"""Most characters of an id, bytes of headers as they are stored, and seconds to live of a message."""


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message to append.

    Attributes:
        id: 1–50 characters, the deduplication key.
        body: one JSON value, the bytes as sent.
        key: dot-separated tokens, at most 255 characters, or None.
        headers: a JSON object of strings, encoded, or None.
        ttl_s: whole seconds ≥ 1 until it expires, or None.
    """

    id: str
    body: bytes
    key: str | None = None
    headers: bytes | None = None
    ttl_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored message. ``timestamp_ms`` is unix ms, ``expires_ms`` ms of the steady clock; ``body`` is JSON text."""

    id: str
    offset: int
    timestamp_ms: int
    body: bytes
    key: str | None
    headers: bytes | None
    expires_ms: int | None
    cumulative_bytes: int

    @property
    def timestamp(self) -> str:
        """RFC 3339, UTC, milliseconds."""
        return timestamp(self.timestamp_ms)


def parse(entry: Entry, *, ahead_ms: int = 0) -> Message:
    """A raw entry as a message; ``ahead_ms``: by how much the wall clock is ahead, which people see its end by."""
    offset, timestamp_ms = position(entry)
    fields = entry[1]
    optional = {fields[n]: fields[n + 1] for n in range(6, len(fields), 2)}
    key, expires = optional.get(b"k"), optional.get(b"x")
    return Message(
        id=fields[1].decode(),
        offset=offset,
        timestamp_ms=timestamp_ms,
        body=fields[3],
        key=None if key is None else key.decode(),
        headers=optional.get(b"h"),
        expires_ms=None if expires is None else int(expires) + ahead_ms,
        cumulative_bytes=int(fields[5]),
    )


def position(entry: Entry) -> tuple[int, int]:
    """Offset and time (unix ms) of a raw entry."""
    offset, _, timestamp_ms = entry[0].partition(b"-")
    return int(offset), int(timestamp_ms)


def body_bytes(entry: Entry) -> int:
    """The size of an entry's body as it was sent."""
    return len(entry[1][3])


def expires_ms(entry: Entry) -> int | None:
    """When this entry's own time to live ends (ms of the steady clock), or None."""
    fields = entry[1]
    if len(fields) > 6 and fields[-2] == b"x":
        return int(fields[-1])
    return None


def key(entry: Entry) -> bytes | None:
    """The key of a raw entry, or None."""
    fields = entry[1]
    return fields[7] if len(fields) > 6 and fields[6] == b"k" else None


def headers(entry: Entry) -> bytes | None:
    """The headers of a raw entry as JSON, or None."""
    fields = entry[1]
    return next((fields[n + 1] for n in range(6, len(fields), 2) if fields[n] == b"h"), None)


def answer_bytes(entry: Entry) -> int:
    """At most so many bytes does a message take in an answer: what was sent, escaped, and the names of its fields."""
    fields = entry[1]
    size = LARGEST_FRAME_BYTES + _text_bytes(fields[1]) + len(fields[3])
    for n in range(6, len(fields), 2):
        if fields[n] == b"k":
            size += _text_bytes(fields[n + 1])
        elif fields[n] == b"h":
            size += len(fields[n + 1])
    return size


def _text_bytes(text: bytes) -> int:
    return len(text) if _escaped(text) is None else len(msgspec.json.encode(text.decode())) - len('""')


def carried_bytes(entry: Entry) -> int:
    """Bytes of its body and its headers, as ``max_bytes`` of a fetch counts them."""
    fields = entry[1]
    return len(fields[3]) + sum([len(fields[n + 1]) for n in range(6, len(fields), 2) if fields[n] == b"h"])


def to_json(entry: Entry) -> bytes:
    """A raw entry as the API's JSON object; the body is copied, never decoded."""
    offset, _, timestamp_ms = entry[0].partition(b"-")
    fields = entry[1]
    head = b'{"id":%b,"offset":%b,"timestamp":"%b","body":%b' % (
        msgspec.json.encode(fields[1].decode()),
        offset,
        _timestamp_text(timestamp_ms),
        fields[3],
    )
    if len(fields) > 6:
        for n in range(6, len(fields), 2):
            if fields[n] == b"k":
                head += b',"key":' + msgspec.json.encode(fields[n + 1].decode())
            elif fields[n] == b"h":
                head += b',"headers":' + fields[n + 1]
    return head + b"}"


def timestamp(unix_ms: int) -> str:
    """Unix milliseconds as RFC 3339 in UTC with milliseconds."""
    seconds, milliseconds = divmod(unix_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=4096)
def _timestamp_text(unix_ms: bytes) -> bytes:
    # Messages of one batch share their time.
    return timestamp(int(unix_ms)).encode()


@lru_cache(maxsize=4096)
def _second(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
