"""Undoing what was removed for a while, or ending the wait."""

from streams import store
from streams.access import Actor
from streams.errors import Refusal, refusal_of
from streams.log import removals, stats
from streams.log.errors import LogError, UndoneInPart
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record
from streams.services.messages import answer_lost


def removal_undo(stream: Stream, number: int, *, partial: bool = False, actor: Actor) -> Removed:
    """Bring back what a removal took: ids, offsets and times as they were, unread by groups that had not read it.

    Args:
        partial: take what the limits have left of it.

    Raises:
        Refusal: ``removal_not_found``, ``removed_since``, ``removal_taken``; ``operation_denied`` on a sealed stream.
    """
    log = store.log()
    try:
        back = log.run(removals.undo(stream.stream_id, number, partial=partial))
        log.run(stats.touch([stream.stream_id]))
    except UndoneInPart as part:
        _record(stream, number, part.messages, part.bytes, actor=actor)
        log.run(removals.undone_told(stream.stream_id, number, part))
        refusal = refusal_of(part.why, stream=stream.name)
        sentence = f"{refusal.message} {_messages(part.messages)} had come back before."
        raise Refusal(refusal.code, sentence, **refusal.details) from None
    except LogError as error:
        asked = {"removal": number, "messages": 0, "bytes": 0}
        answer_lost(error, stream, kind="stream.removal_undone", actor=actor, after=asked)
        raise refusal_of(error, stream=stream.name) from None
    _record(stream, number, back.messages, back.bytes, actor=actor)
    return back


def removal_end(stream: Stream, number: int, *, actor: Actor) -> None:
    """Let a removal, and those before it, be for good now.

    Raises:
        Refusal: ``removal_not_found``.
    """
    try:
        store.log().run(removals.end(stream.stream_id, number))
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    event_record(
        stream.workspace,
        kind="stream.removal_ended",
        actor=actor,
        stream=stream.name,
        after={"removal": number},
        summary=f"Removal {number} of {stream.name}, and those before it, were made final.",
    )


def _record(stream: Stream, number: int, messages: int, size: int, *, actor: Actor) -> None:
    event_record(
        stream.workspace,
        kind="stream.removal_undone",
        actor=actor,
        stream=stream.name,
        after={"removal": number, "messages": messages, "bytes": size},
        summary=f"{_messages(messages)} of {stream.name} brought back.",
    )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"
