"""What the store holds that cannot be read: told of the one stream or group that it belongs to, while others go on."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from streams.log import routing
from streams.log.commands import Command
from streams.log.errors import Damaged, LogError

UNREADABLE = (ValueError, LookupError, TypeError, msgspec.MsgspecError)
"""What an operation meets in a reply that is not what belongs there: no number, no UTF-8, no JSON or MessagePack."""

log = logging.getLogger(__name__)

T = TypeVar("T")
Named = TypeVar("Named")


def found(command: Command, error: Exception) -> Damaged:
    """The log's own error for a reply to a command that could not be read."""
    return Damaged(routing.key_of(command), f"{type(error).__name__}: {error}")


def readable(
    names: Iterable[Named], replies: Sequence[Any], read: Callable[[Any], T], *, strict: bool = False
) -> list[tuple[Named, T]]:
    """What replies say, each with the name of what it is of; what cannot be read is left out.

    Args:
        replies: to a ``Pipeline`` whose commands are refused apart.
        strict: raise instead of leaving out.

    Raises:
        LogError: a command was refused for another reason.
    """
    told = []
    for name, reply in zip(names, replies, strict=True):
        try:
            if isinstance(reply, LogError):
                raise reply
            told.append((name, read(reply)))
        except Damaged:
            if strict:
                raise
        except UNREADABLE as error:
            if strict:
                raise Damaged(str(name), f"{type(error).__name__}: {error}") from error
    return told


@contextmanager
def left_to_fsck() -> Iterator[None]:
    """Go on with what comes next where something of one stream or group cannot be read, and say so."""
    try:
        yield
    except Damaged as error:
        log.warning("What the message store holds cannot be read (okmq_fsck): %s", error)
