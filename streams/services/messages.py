"""Messages taken away by a person in the console: one, or all of a stream's. The data plane leaves notes instead.

For a while they can be brought back (``OKMQ_UNDO``, ``services.undo``).
"""

from django.conf import settings

from streams import store
from streams.access import Actor
from streams.errors import refusal_of
from streams.log import read, removals, trim
from streams.log.errors import LogError
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record
from streams.services.on_record import on_record
from streams.services.summaries import counted, was


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
                removed, _ = deed.run(
                    removals.delete(
                        stream.stream_id, [offset], keep_ms=settings.ENV.undo_s * 1000, facts=facts
                    )
                )
            else:
                removed = deed.run(trim.delete(stream.stream_id, [offset]))
            event_record(
                stream.workspace,
                kind=kind,
                actor=actor,
                stream=stream.name,
                after={"offsets": [offset], "count": removed.messages} | _ended(removed),
                summary=f"Message {offset} of {stream.name} was deleted.",
            )
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None


def stream_purge(stream: Stream, *, actor: Actor, below: int | None = None) -> int:
    """Remove all messages of a stream, or those below an offset; offsets go on and the committed offset stays.

    Returns:
        How many messages went.

    Raises:
        Refusal: ``operation_denied`` where the stream forbids it.
    """
    kind, given = "stream.purged", {} if below is None else {"offset": str(below)}
    asked = {"messages": 0, "bytes": 0, "asked": given}
    try:
        with on_record(stream, kind=kind, actor=actor, asked=asked) as deed:
            if settings.ENV.undo_s:
                facts = {"kind": kind, "actor": actor.name, "asked": given}
                removed, _ = deed.run(
                    removals.purge(
                        stream.stream_id, keep_ms=settings.ENV.undo_s * 1000, facts=facts, below=below
                    )
                )
            else:
                removed = deed.run(trim.purge(stream.stream_id, below=below))
            event_record(
                stream.workspace,
                kind=kind,
                actor=actor,
                stream=stream.name,
                after=asked | {"messages": removed.messages, "bytes": removed.bytes} | _ended(removed),
                summary=f"{counted(removed.messages)} of {stream.name} {was(removed.messages)} purged.",
            )
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    return removed.messages


def _ended(removed: Removed) -> dict[str, int]:
    return {"ended": removed.ended} if removed.ended else {}
