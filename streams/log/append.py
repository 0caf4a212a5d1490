"""Publishing into a stream."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from streams.log import keys, memory, stats
from streams.log.client import Op, Script, Scripts
from streams.log.entries import NewMessage
from streams.log.errors import KeysApart, LogError, OffsetsUsedUp, StreamFull

BATCH_LIMIT = 1000
"""Most messages in one batch: a longer script would make everyone else wait."""

BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of bodies in one of ``batches``; one message at least."""


class HasBody(Protocol):
    """What is to be published, in whatever form."""

    @property
    def body(self) -> bytes: ...


AnyMessage = TypeVar("AnyMessage", bound=HasBody)


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


def batches(messages: Iterable[AnyMessage], *, most: int = BATCH_LIMIT) -> Iterator[list[AnyMessage]]:
    """Many messages in order, in batches of at most ``most`` and ``BATCH_BYTES``."""
    batch: list[AnyMessage] = []
    size = 0
    for each in messages:
        if batch and (len(batch) >= most or size + len(each.body) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += len(each.body)
    if batch:
        yield batch


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


def append_told(stream_id: str, messages: Sequence[NewMessage]) -> Op[list[Appended]]:
    """As ``append``, and tell the worker, which samples what has changed."""
    placed = yield from append(stream_id, messages)
    yield from stats.touch([stream_id])
    return placed


def append_what_fits(
    stream_id: str, messages: Sequence[NewMessage]
) -> Op[tuple[list[Appended], StreamFull | None]]:
    """As ``append_told``, but as many in order as a full stream has room for, and why it refused the next; None: all.

    A batch is taken whole or not at all, so one that does not fit is sent in halves, again and again.

    Raises:
        As ``append`` does, but for ``StreamFull``; what was sent before stays.
    """
    placed: list[Appended] = []
    most = len(messages)
    while len(placed) < len(messages):
        part = messages[len(placed) : len(placed) + most]
        try:
            placed += yield from append_told(stream_id, part)
        except StreamFull as full:
            if len(part) == 1:
                return placed, full
            most = len(part) // 2
    return placed, None


@dataclass(slots=True)
class Batch:
    """What goes into one of several streams; ``is_unbounded``: the stream has no limits, as far as is known."""

    stream_id: str
    is_unbounded: bool = False
    messages: list[NewMessage] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether nothing can have to go for it: one message that stays, into a stream without limits."""
        return self.is_unbounded and len(self.messages) == 1 and self.messages[0].ttl_s is None


def append_each(batches: Sequence[Batch]) -> Op[list[list[Appended] | LogError]]:
    """Append to several durable streams with one write: a batch each, and what ``append`` would answer or raise.

    The plain ones share a call. Of one that turns out not to be plain nothing was stored, and it is sent again.

    Raises:
        StoreUnavailable: it is not known which were stored.
    """
    plain = [at for at, batch in enumerate(batches) if batch.is_plain]
    others = [at for at, batch in enumerate(batches) if not batch.is_plain]
    shared = [_shared_call([batches[at] for at in plain])] if plain else []

    def alone(at: int) -> Script:
        return _call(batches[at].stream_id, batches[at].messages)

    replies = yield Scripts([*shared, *map(alone, others)])
    answers = dict(zip(others, replies[len(shared) :], strict=True))
    if shared:
        answers.update(zip(plain, _shared_answers(replies[0], len(plain)), strict=True))
    left = [at for at, answer in answers.items() if answer is None]
    if left:
        again = yield Scripts([*map(alone, left)])
        answers.update(zip(left, again, strict=True))
    told = [answers[at] for at in range(len(batches))]
    return [answer if isinstance(answer, LogError) else _appended(answer) for answer in told]


def _shared_call(batches: Sequence[Batch]) -> Script:
    each: list[str] = []
    arguments: list[Any] = []
    for batch in batches:
        (message,) = batch.messages
        each += keys.appending_one(batch.stream_id)
        arguments += (keys.wake(batch.stream_id), message.id, message.body)
        arguments += (message.key or "", message.headers or b"")
    return Script("append_each", each, arguments)


def _shared_answers(reply: Any, number: int) -> list[Any]:
    """Each one's own reply; None where nothing was done."""
    if isinstance(reply, KeysApart):
        return [None] * number
    if isinstance(reply, LogError):
        return [reply] * number
    return [[offset] if offset else None for offset in reply]


def _call(
    stream_id: str,
    messages: Sequence[NewMessage],
    expect: Expectation = NOTHING_EXPECTED,
) -> Script:
    arguments = _arguments(keys.wake(stream_id), messages, expect)
    return Script("append", keys.appending(stream_id), arguments)


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
