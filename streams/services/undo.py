"""Undoing what was removed for a while, or ending the wait."""

from streams import store
from streams.access import Actor
from streams.errors import Refusal, refusal_of
from streams.log import removals
from streams.log.errors import LogError, UndoneInPart
from streams.log.notes import UNKNOWN
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record
from streams.services.messages import is_answer_lost, tell_worker
from streams.services.removals import UNSURE


def removal_undo(stream: Stream, number: int, *, partial: bool = False, actor: Actor) -> Removed:
    """Bring back what a removal took: ids, offsets and times as they were, unread by groups that had not read it.

    Args:
        partial: take what the limits have left of it.

    Raises:
        Refusal: ``removal_not_found``, ``removed_since``, ``removal_taken``; ``operation_denied`` on a sealed stream.
    """
    try:
        back = store.log().run(removals.undo(stream.stream_id, number, partial=partial))
    except LogError as error:
        raise _refused(error, stream, number, actor=actor) from None
    _record(stream, number, back, actor=actor)
    tell_worker(stream)
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


def _refused(error: LogError, stream: Stream, number: int, *, actor: Actor) -> Refusal:
    """Record what came back before an undo was refused or cut off; what whoever asked is told."""
    why, back, before = error, Removed(0, 0), ""
    if isinstance(error, UndoneInPart):
        why, back = error.why, Removed(error.messages, error.bytes)
        before = f" {_messages(back.messages)} had come back before."
    if back.messages or is_answer_lost(why):
        _record(stream, number, back, actor=actor, is_unsure=is_answer_lost(why))
    refusal = refusal_of(why, stream=stream.name)
    return Refusal(refusal.code, refusal.message + before, **refusal.details)


def _record(stream: Stream, number: int, back: Removed, *, actor: Actor, is_unsure: bool = False) -> None:
    event_record(
        stream.workspace,
        kind="stream.removal_undone",
        actor=actor,
        stream=stream.name,
        after={"removal": number, "messages": back.messages, "bytes": back.bytes}
        | (UNKNOWN if is_unsure else {}),
        summary=f"{_messages(back.messages)} of {stream.name} brought back{UNSURE if is_unsure else ''}.",
    )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"
