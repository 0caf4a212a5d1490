"""Messages, looked at; nothing here moves anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streams import moments, store
from streams.log import entries, lag, read, search
from streams.log.client import Clocks, Op, one
from streams.log.clock import Reading
from streams.log.entries import Entry, Message
from streams.log.errors import MessageNotFound
from streams.log.read import Wanted
from streams.models import Stream


def messages_from(
    stream: Stream, *, offset: int, limit: int, stop: int | None = None, keys: Sequence[str] = ()
) -> list[Message]:
    """Visible messages from an offset on (and below ``stop``), ascending; looking moves nothing.

    Args:
        keys: patterns, one of which matches each; it is looked as far as it takes.
    """
    wanted = lag.wanted_by(keys)

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        return (yield from read.forward(stream.stream_id, at, offset, limit, stop=stop, wanted=wanted))

    return _shown(store.log().run(op()))


def messages_before(
    stream: Stream, *, offset: int | None, limit: int, start: int = 0, keys: Sequence[str] = ()
) -> list[Message]:
    """The newest visible messages below an offset (the very newest when None) and from ``start``, ascending.

    Args:
        keys: as ``messages_from``.
    """
    wanted = lag.wanted_by(keys)

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        before = at.last + 1 if offset is None else offset
        return (yield from read.backward(stream.stream_id, at, before, limit, start=start, wanted=wanted))

    return _shown(store.log().run(op()))


def offset_at(stream: Stream, time: datetime) -> int:
    """The first visible offset at or after a time; the next offset when there is none."""
    return store.log().run(read.offset_at(stream.stream_id, moments.unix_ms(time)))


def message_at(stream: Stream, offset: int) -> Message:
    """The message at an offset; raises the log's MessageNotFound."""
    (shown,) = _shown([store.log().run(read.message(stream.stream_id, offset))])
    return shown


@dataclass(frozen=True, slots=True)
class Found:
    """What a bounded search came to.

    Attributes:
        messages: in the order of the search.
        scanned: how many were looked at for it.
        rest: the offsets (first, end excluded) that were not looked at yet; None when nothing is left.
        size_bytes, span_ms: of what was looked at, the size of the bodies, and when the oldest and newest came.
    """

    messages: list[Message]
    scanned: int
    rest: tuple[int, int] | None
    size_bytes: int
    span_ms: tuple[int, int] | None


def messages_found(
    stream: Stream,
    *,
    start: int = 0,
    stop: int | None = None,
    limit: int,
    wanted: Wanted | None = None,
    newest_first: bool = False,
    seconds: float = search.LONGEST_S,
) -> Found:
    """Visible messages from ``start`` to below ``stop`` (None: the end); with ``wanted`` a slice of a search, which
    ends after so many seconds.
    """

    def op() -> Op[search.Slice]:
        at = yield from read.position(stream.stream_id)
        return (
            yield from search.search(
                stream.stream_id,
                at,
                start=start,
                stop=stop,
                limit=limit,
                wanted=wanted,
                newest_first=newest_first,
                seconds=seconds,
            )
        )

    found = store.log().run(op())
    return Found(_shown(found.found), found.scanned, found.rest, found.size_bytes, found.span_ms)


def _shown(found: Sequence[Entry]) -> list[Message]:
    """As people see them: when they expire by the wall clock of now."""
    reading: Reading = store.log().run(one(Clocks()))
    return [entries.parse(entry, ahead_ms=reading.ahead_ms) for entry in found]


def entries_page(
    stream: Stream, *, start: int, stop: int, limit: int, wanted: Wanted | None
) -> tuple[list[Entry], int | None]:
    """Raw visible entries from ``start`` to below ``stop``, and where the next page begins; a page may be empty."""

    def op() -> Op[search.Slice]:
        at = yield from read.position(stream.stream_id)
        return (
            yield from search.search(stream.stream_id, at, start=start, stop=stop, limit=limit, wanted=wanted)
        )

    found = store.log().run(op())
    return found.found, found.rest[0] if found.rest else None


def messages_between(stream: Stream, offsets: Sequence[int]) -> list[int]:
    """How many messages stand from each offset to below the next; counted without reading them."""
    return store.log().run(search.counts_between(stream.stream_id, offsets))


def offsets_at(stream: Stream, times_ms: Sequence[int]) -> list[int]:
    """The first visible offset at or after each of some ascending times (unix ms)."""
    return store.log().run(search.offsets_at(stream.stream_id, times_ms))


def offset_of_id(stream: Stream, message_id: str) -> int | None:
    """Where the message with an id stands, as long as the id is remembered and the message is there."""
    offset = store.log().run(read.offset_of_id(stream.stream_id, message_id))
    if offset is None:
        return None
    try:
        message_at(stream, offset)
    except MessageNotFound:
        return None
    return offset
