"""Publishing into a stream."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from streams.log import keys, memory
from streams.log.client import Op, Script
from streams.log.entries import NewMessage
from streams.log.errors import OffsetsUsedUp

BATCH_LIMIT = 1000
"""Most messages in one batch: a longer script would make everyone else wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a publisher believes of the stream (JetStream's Nats-Expected-* headers); 0 and "" mean none yet."""

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
    call = Script("append", _keys(stream_id), [keys.wake(stream_id), *_arguments(messages, expect)])
    while True:
        try:
            offsets = yield call
        except OffsetsUsedUp:
            yield from memory.offsets_reserve(stream_id)
        else:
            break
    return [Appended(abs(offset), offset < 0) for offset in offsets]


@lru_cache(maxsize=4096)
def _keys(stream_id: str) -> tuple[str, ...]:
    return (
        keys.log(stream_id),
        keys.meta(stream_id),
        keys.gone(stream_id),
        keys.ids(stream_id, 0),
        keys.ids(stream_id, 1),
        keys.by_key(stream_id),
        keys.expiry(stream_id),
        keys.hidden(stream_id),
        keys.latest(stream_id),
        keys.went(stream_id),
        keys.groups(stream_id),
    )


def _arguments(messages: Sequence[NewMessage], expect: Expectation) -> list[Any]:
    """The script's arguments after the channel: columns, expectations, then a value a message and column."""
    has_key = any(message.key is not None for message in messages)
    has_headers = any(message.headers is not None for message in messages)
    has_ttl = any(message.ttl_s is not None for message in messages)
    arguments: list[Any] = [
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
