"""Around what a service does to messages before it records it.

The log knows no transaction of the database. So what is about to be done has a sign in the log, and where this process
ends, or the store's answer is lost, before it is recorded, the worker records that it was asked for (``log.notes``).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from streams import store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import notes, stats
from streams.log.client import Op, T
from streams.log.errors import LogError, is_nothing_done
from streams.log.notes import Begun, Note
from streams.models import Stream


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that is being done to messages."""

    begun: Begun

    def run(self, operation: Op[T]) -> T:
        """Carry out an operation that belongs to it."""
        return store.log().run(notes.meanwhile(self.begun, operation))


@contextmanager
def on_record(
    stream: Stream, *, kind: str, actor: Actor, asked: Mapping[str, Any], group: str = ""
) -> Iterator[Deed]:
    """Around doing something in the log and recording it. Of a block that ends with a Refusal nothing is left to tell.
    The worker looks at the stream when it is done, so that pages which are open hear of it.

    Args:
        kind: of the event, as of the one that the block records.
        asked: ``after`` of the event where the outcome is not known.
    """
    note = Note(
        kind=kind,
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream=stream.name,
        token_id=0,
        actor=actor.name,
        address=actor.address,
        group=group,
        after=asked,
    )
    begun = store.log().run(notes.begin(note))
    try:
        yield Deed(begun)
    except Refusal:
        _over(begun)
        raise
    except LogError as error:
        if is_nothing_done(error):
            _over(begun)
        raise
    else:
        _over(begun)
        with suppress(LogError):  # what was done stays done where the store answers no more
            store.log().run(stats.touch([stream.stream_id]))


def _over(begun: Begun) -> None:
    with suppress(LogError):  # then the worker tells that it was asked for, though it is on record
        store.log().run(notes.end(begun))
