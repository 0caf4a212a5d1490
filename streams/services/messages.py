"""Messages taken away by a person in the console: one, some, or all of a stream's. The data plane leaves notes instead.

For a while they can be brought back (``OKMQ_UNDO``, ``services.undo``).
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from streams import store
from streams.access import Actor
from streams.errors import refusal_of
from streams.log import lag, read, removals, trim
from streams.log.client import Op
from streams.log.errors import DoneInPart, LogError, is_nothing_done
from streams.log.notes import uncounted
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record
from streams.services.on_record import on_record
from streams.services.summaries import finals_said, outcome_said


def message_delete(stream: Stream, *, offset: int, actor: Actor) -> None:
    """Delete one message; its offset stays empty.

    Raises:
        Refusal: ``message_not_found``; ``operation_denied`` where the stream forbids it.
    """
    kind = "message.deleted"
    try:
        store.log().run(read.message(stream.stream_id, offset))
        with on_record(stream, kind=kind, actor=actor, asked={"offsets": [offset], "count": 0}) as deed:
            if settings.ENV.undo_s:
                facts = {"kind": kind, "actor": actor.name}
                removed, number = deed.run(
                    removals.delete(
                        stream.stream_id, [offset], keep_ms=settings.ENV.undo_s * 1000, facts=facts
                    )
                )
            else:
                removed, number = deed.run(trim.delete(stream.stream_id, [offset])), None
            event_record(
                stream.workspace,
                kind=kind,
                actor=actor,
                stream=stream.name,
                after={"offsets": [offset], "count": removed.messages} | removals.told(number, removed),
                summary=f"Message {offset:,} of {stream.name} was deleted.",
            )
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None


def stream_purge(stream: Stream, *, actor: Actor, below: int | None = None, key: str = "") -> int:
    """Remove all messages of a stream, or those below an offset; offsets go on and the committed offset stays.

    Args:
        key: a pattern: of them only those whose key it matches.

    Returns:
        How many messages went.

    Raises:
        Refusal: ``operation_denied`` where the stream forbids it; by key also after some of them went.
    """
    kind, given = "stream.purged", {} if below is None else {"offset": str(below)}
    given |= {"key": key} if key else {}
    asked = {"messages": 0, "bytes": 0, "asked": given}
    operation = _purging(
        stream.stream_id,
        below=below,
        key=key,
        facts={"kind": kind, "actor": actor.name, "asked": given},
    )
    try:
        with on_record(stream, kind=kind, actor=actor, asked=asked) as deed:
            cut_off: DoneInPart | None = None
            try:
                removed, number = deed.run(operation)
            except DoneInPart as error:
                cut_off, number = error, error.removal
                removed = Removed(error.messages, error.bytes, error.ended)
            is_unsure = cut_off is not None and not is_nothing_done(cut_off.why)
            after = (
                asked
                | {"messages": removed.messages, "bytes": removed.bytes}
                | removals.told(number, removed)
            )
            event_record(
                stream.workspace,
                kind=kind,
                actor=actor,
                stream=stream.name,
                after=uncounted(after) if is_unsure else after,
                summary=outcome_said(kind, stream.name, removed.messages, "purged", is_unsure=is_unsure)
                + finals_said(after),
            )
            if cut_off is not None:
                raise refusal_of(cut_off, stream=stream.name)
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    return removed.messages


def _purging(
    stream_id: str, *, below: int | None, key: str, facts: Mapping[str, Any]
) -> Op[tuple[Removed, int | None]]:
    """What went, and the number of the removal where it can be undone."""
    keep_ms = settings.ENV.undo_s * 1000
    if not key:
        if keep_ms:
            return (yield from removals.purge(stream_id, keep_ms=keep_ms, facts=facts, below=below))
        return (yield from removals.purge_for_good(stream_id, below=below)), None
    wanted = lag.wanted_by([key])
    assert wanted is not None
    found = yield from trim.matching(stream_id, wanted, below=below)
    if keep_ms:
        return (yield from removals.purge_found(stream_id, found, keep_ms=keep_ms, facts=facts))
    return (yield from trim.purge_found(stream_id, found)), None
