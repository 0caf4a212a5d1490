"""Publishing into a stream."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streams.log import keys, memory
from streams.log.client import Op, Script, Scripts
from streams.log.entries import NewMessage
from streams.log.errors import LogError, OffsetsUsedUp

BATCH_LIMIT = 1000
"""Most messages in one batch: a longer script would make everyone else wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a publisher believes of the stream (JetStream's Nats-Expected-* headers); an offset of 0 means none yet."""

    last_offset: int | None = None
    last_id: str | None = None
    last_key_offset: Mapping[str, int] = field(default_factory=dict)


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a message stands: its offset, and whether it stood there before."""

    offset: int
    duplicate: bool


NOTHING_EXPECTED = Expectation()


def append(
    stream_id: str,
    messages: Sequence[NewMessage],
    *,
    expect: Expectation = NOTHING_EXPECTED,
) -> Op[list[Appended]]:
    """Append a batch of 1 to 1000 messages: all or nothing, new offsets contiguous, known ids not stored again.

    Duplicates are settled before ``expect`` is checked, so that sending the same batch again is safe.

    Raises:
        StreamNotFound, StreamSealed, MessageTooLarge, StreamFull, WrongExpectation: nothing was stored.
        StoreUnavailable: it is not known whether the batch was stored; sending it again stores nothing twice.
    """
    call = _call(stream_id, messages, expect)
    while True:
        try:
            offsets = yield call
        except OffsetsUsedUp:
            yield from memory.offsets_reserve(stream_id)
        else:
            break
    return _appended(offsets)


def append_each(
    batches: Sequence[tuple[str, Sequence[NewMessage]]],
) -> Op[list[list[Appended] | LogError]]:
    """Append to several durable streams with one write: a batch each, and what ``append`` would answer or raise.

    Raises:
        StoreUnavailable: it is not known which were stored.
    """
    replies = yield Scripts([_call(stream_id, messages) for stream_id, messages in batches])
    return [reply if isinstance(reply, LogError) else _appended(reply) for reply in replies]


def _call(stream_id: str, messages: Sequence[NewMessage], expect: Expectation = NOTHING_EXPECTED) -> Script:
    return Script("append", keys.appending(stream_id), _arguments(keys.wake(stream_id), messages, expect))


def _appended(offsets: Sequence[int]) -> list[Appended]:
    return [Appended(abs(offset), offset < 0) for offset in offsets]


def _arguments(wake: str, messages: Sequence[NewMessage], expect: Expectation) -> list[Any]:
    """The script's arguments: the channel, columns, expectations, then a value a message and column."""
    has_key = has_headers = has_ttl = False
    for message in messages:
        has_key = has_key or message.key is not None
        has_headers = has_headers or message.headers is not None
        has_ttl = has_ttl or message.ttl_s is not None
    arguments: list[Any] = [
        wake,
        "ib" + "k" * has_key + "h" * has_headers + "t" * has_ttl,
        "" if expect.last_offset is None else expect.last_offset,
        "" if expect.last_id is None else expect.last_id,
        json.dumps(list(expect.last_key_offset.items())) if expect.last_key_offset else "",
    ]
    if not (has_key or has_headers or has_ttl):
        for message in messages:
            arguments += (message.id, message.body)
        return arguments
    for message in messages:
        arguments += (message.id, message.body)
        if has_key:
            arguments.append(message.key or "")
        if has_headers:
            arguments.append(message.headers or b"")
        if has_ttl:
            arguments.append(message.ttl_s or "")
    return arguments
