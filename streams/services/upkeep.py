"""What the worker writes down."""

from collections.abc import Mapping

from streams.access import SYSTEM
from streams.models import Stream, Token
from streams.selectors import moment
from streams.services.events import event_record


def tokens_note_used(used_ms: Mapping[int, int]) -> None:
    """Note when tokens were last used: token id → unix ms."""
    for token_id, at_ms in used_ms.items():
        Token.objects.filter(pk=token_id).update(last_used_at=moment(at_ms))


def process_restarted(name: str, *, note: str) -> None:
    """Record that a process had to be started again."""
    event_record(
        None,
        kind="process.restarted",
        actor=SYSTEM,
        after={"process": name, "note": note},
        summary=f"Process {name} was restarted{f': {note}' if note else ''}.",
    )


def history_missed(stream_id: str, *, messages: int) -> None:
    """Record that retention removed messages before the history had them."""
    stream = Stream.objects.select_related("workspace").filter(stream_id=stream_id).first()
    if stream is None:
        return
    event_record(
        stream.workspace,
        kind="history.gap",
        actor=SYSTEM,
        stream=stream.name,
        after={"messages": messages},
        summary=f"{messages} messages of {stream.name} were removed before the history had them.",
    )
