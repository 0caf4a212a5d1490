"""Undoing what was removed for a while, or ending the wait."""

from streams.access import Actor
from streams.errors import Refusal, refusal_of
from streams.log import undo
from streams.log.errors import DoneInPart, LogError, is_nothing_done
from streams.log.notes import uncounted
from streams.log.trim import Removed
from streams.models import Stream
from streams.services.events import event_record
from streams.services.on_record import on_record
from streams.services.summaries import outcome_said

BACK = " Groups that lost unread messages by it have these back, unless they were moved by a seek since."
"""Ends the summary of an undo of a stream with groups. How many of which group these are nobody counts: while messages
are given back, others come, go and are acknowledged."""


def removal_undo(stream: Stream, number: int, *, partial: bool = False, actor: Actor) -> Removed:
    """Bring back what a removal took: ids, offsets and times as they were, unread by groups that had not read it.

    Args:
        partial: take what the limits have left of it.

    Raises:
        Refusal: ``removal_not_found``, ``removed_since``, ``removal_taken``; ``operation_denied`` on a sealed stream.
    """
    asked = {"removal": number, "messages": 0, "bytes": 0}
    with on_record(stream, kind="stream.removal_undone", actor=actor, asked=asked) as deed:
        try:
            back = deed.run(undo.undo(stream.stream_id, number, partial=partial))
        except LogError as error:
            raise _refused(error, stream, number, actor=actor) from None
        _record(stream, number, back, actor=actor)
    return back


def removal_end(stream: Stream, number: int, *, actor: Actor) -> None:
    """Let a removal, and those before it, be for good now.

    Raises:
        Refusal: ``removal_not_found``.
    """
    kind, asked = "stream.removal_ended", {"removal": number}
    try:
        with on_record(stream, kind=kind, actor=actor, asked=asked) as deed:
            deed.run(undo.end(stream.stream_id, number))
            event_record(
                stream.workspace,
                kind=kind,
                actor=actor,
                stream=stream.name,
                after=asked,
                summary=f"Removal {number} of {stream.name} and those before it were made final.",
            )
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None


def _refused(error: LogError, stream: Stream, number: int, *, actor: Actor) -> Refusal:
    """Record what came back before an undo was refused or cut off; what whoever asked is told."""
    why, back = error, Removed(0, 0)
    if isinstance(error, DoneInPart):
        why, back = error.why, Removed(error.messages, error.bytes)
    is_unsure = not is_nothing_done(why)
    if back.messages or is_unsure:
        _record(stream, number, back, actor=actor, is_unsure=is_unsure)
    return refusal_of(error, stream=stream.name)


def _record(stream: Stream, number: int, back: Removed, *, actor: Actor, is_unsure: bool = False) -> None:
    after = {"removal": number, "messages": back.messages, "bytes": back.bytes}
    event_record(
        stream.workspace,
        kind="stream.removal_undone",
        actor=actor,
        stream=stream.name,
        after=uncounted(after) if is_unsure else after,
        summary=outcome_said(
            "stream.removal_undone", stream.name, back.messages, "restored", is_unsure=is_unsure
        )
        + (BACK if back.messages and stream.groups.exists() else ""),
    )
