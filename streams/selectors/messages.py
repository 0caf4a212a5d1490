"""Messages, looked at; nothing here moves anything."""

from datetime import datetime
from typing import Any

from streams import store
from streams.log import entries, read
from streams.log.entries import Message
from streams.models import Stream


def messages_from(stream: Stream, *, offset: int, limit: int) -> list[Message]:
    """Visible messages from an offset on, ascending; looking moves nothing."""

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        return (yield from read.forward(stream.stream_id, at, offset, limit))

    return [entries.parse(entry) for entry in store.log().run(op())]


def messages_before(stream: Stream, *, offset: int | None, limit: int) -> list[Message]:
    """The newest visible messages below an offset (the very newest when None), ascending."""

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        return (
            yield from read.backward(stream.stream_id, at, at.last + 1 if offset is None else offset, limit)
        )

    return [entries.parse(entry) for entry in store.log().run(op())]


def offset_at(stream: Stream, time: datetime) -> int:
    """The first visible offset at or after a time; the next offset when there is none."""
    return store.log().run(read.offset_at(stream.stream_id, int(time.timestamp() * 1000)))


def message_at(stream: Stream, offset: int) -> Message:
    """The message at an offset; raises the log's MessageNotFound."""
    return entries.parse(store.log().run(read.message(stream.stream_id, offset)))
