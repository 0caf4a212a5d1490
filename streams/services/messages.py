"""Messages taken away by a person: one, or all of a stream's."""

from streams import store
from streams.access import Actor
from streams.errors import refusal_of
from streams.log import read, stats, trim
from streams.log.errors import LogError
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
        log.run(trim.delete(stream.stream_id, [offset]))
        log.run(stats.touch([stream.stream_id]))
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    event_record(
        stream.workspace,
        kind="message.deleted",
        actor=actor,
        stream=stream.name,
        before={"offset": offset},
        summary=f"Message {offset} of stream {stream.name} was deleted.",
    )


def stream_purge(stream: Stream, *, actor: Actor) -> int:
    """Remove all messages of a stream; offsets go on and the committed offset stays.

    Returns:
        How many messages went.

    Raises:
        Refusal: ``operation_denied`` where the stream forbids it.
    """
    log = store.log()
    try:
        removed = log.run(trim.purge(stream.stream_id))
        log.run(stats.touch([stream.stream_id]))
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    event_record(
        stream.workspace,
        kind="stream.purged",
        actor=actor,
        stream=stream.name,
        before={"messages": removed.messages, "bytes": removed.bytes},
        summary=f"Stream {stream.name} was purged of {removed.messages} messages.",
    )
    return removed.messages
