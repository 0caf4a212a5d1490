"""Messages taken away by a person in the console: one, or all of a stream's. The data plane leaves notes instead.

For a while they can be brought back (``OKMQ_UNDO``, ``services.undo``).
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings

from streams import store
from streams.access import Actor
from streams.errors import refusal_of
from streams.log import read, removals, stats, trim
from streams.log.errors import NOTHING_DONE, LogError, StoreUnavailable
from streams.log.notes import UNKNOWN
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record


def message_delete(stream: Stream, *, offset: int, actor: Actor) -> None:
    """Delete one message; its offset stays empty.

    Raises:
        Refusal: ``message_not_found``; ``operation_denied`` where the stream forbids it.
    """
    log = store.log()
    try:
        log.run(read.message(stream.stream_id, offset))
        if settings.ENV.undo_s:
            facts = {"kind": "message.deleted", "actor": actor.name}
            removed, _ = log.run(
                removals.delete(stream.stream_id, [offset], keep_ms=settings.ENV.undo_s * 1000, facts=facts)
            )
        else:
            removed = log.run(trim.delete(stream.stream_id, [offset]))
    except LogError as error:
        asked = {"offsets": [offset], "count": 0}
        _answer_lost(error, stream, kind="message.deleted", actor=actor, after=asked)
        raise refusal_of(error, stream=stream.name) from None
    event_record(
        stream.workspace,
        kind="message.deleted",
        actor=actor,
        stream=stream.name,
        after={"offsets": [offset], "count": removed.messages} | _ended(removed),
        summary=f"Message {offset} of {stream.name} was deleted.",
    )
    tell_worker(stream)


def stream_purge(stream: Stream, *, actor: Actor, below: int | None = None) -> int:
    """Remove all messages of a stream, or those below an offset; offsets go on and the committed offset stays.

    Returns:
        How many messages went.

    Raises:
        Refusal: ``operation_denied`` where the stream forbids it.
    """
    log = store.log()
    asked = {} if below is None else {"offset": str(below)}
    try:
        if settings.ENV.undo_s:
            facts = {"kind": "stream.purged", "actor": actor.name, "asked": asked}
            removed, _ = log.run(
                removals.purge(stream.stream_id, keep_ms=settings.ENV.undo_s * 1000, facts=facts, below=below)
            )
        else:
            removed = log.run(trim.purge(stream.stream_id, below=below))
    except LogError as error:
        nothing = {"messages": 0, "bytes": 0, "asked": asked}
        _answer_lost(error, stream, kind="stream.purged", actor=actor, after=nothing)
        raise refusal_of(error, stream=stream.name) from None
    event_record(
        stream.workspace,
        kind="stream.purged",
        actor=actor,
        stream=stream.name,
        after={"messages": removed.messages, "bytes": removed.bytes, "asked": asked} | _ended(removed),
        summary=f"{removed.messages} message{'s' * (removed.messages != 1)} of {stream.name} purged.",
    )
    tell_worker(stream)
    return removed.messages


def _ended(removed: Removed) -> dict[str, int]:
    return {"ended": removed.ended} if removed.ended else {}


def is_answer_lost(error: LogError) -> bool:
    """Whether the store may have done what it was asked for, or a part of it."""
    return isinstance(error, StoreUnavailable) and not isinstance(error, NOTHING_DONE)


def tell_worker(stream: Stream) -> None:
    """Have the worker look at a stream; what was done stays done where the store answers no more."""
    with suppress(LogError):
        store.log().run(stats.touch([stream.stream_id]))


def _answer_lost(
    error: LogError, stream: Stream, *, kind: str, actor: Actor, after: Mapping[str, Any]
) -> None:
    """Record what a person asked for where the store's answer was lost."""
    if is_answer_lost(error):
        event_record(
            stream.workspace,
            kind=kind,
            actor=actor,
            stream=stream.name,
            after={**after, **UNKNOWN},
            summary=f"Asked for of {stream.name}; the store's answer was lost.",
        )
