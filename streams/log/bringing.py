"""Messages of the history that come to one group alone, with the offsets, times and ids that they had.

They are in flight from the moment they are given, with their bodies beside them, as dead letters that are delivered
again are: whatever is done with a delivery can be done with them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from streams.log import group_meta, keys
from streams.log.client import Op
from streams.log.dead_letters import DeadLetter
from streams.log.errors import GroupNotFound
from streams.log.group_scripts import group_script

HISTORY = "history"
"""The reason in what stands for a message that never died; its ``died_ms`` is 0."""


class Brought(NamedTuple):
    """How far a replay has come with a group.

    Attributes:
        position: the offset up to which it is done.
        given: messages that it gave the group.
        passed: those that it passed over: the group has them, gets them without it, or does not want them.
        room: how many more the group may have at a time.
        is_paused: whether the group delivers nothing at present.
    """

    position: int
    given: int
    passed: int
    room: int = 0
    is_paused: bool = False


def of_history(
    *, offset: int, timestamp_ms: int, id: str, body: str, key: str | None, headers: str | None
) -> bytes:
    """A message of the history as ``bring_back`` takes it; ``headers`` is JSON text."""
    letter = DeadLetter(
        offset=offset,
        timestamp_ms=timestamp_ms,
        id=id,
        body=body,
        key=key,
        headers=headers,
        reason=HISTORY,
        deliveries=0,
        died_ms=0,
    )
    return msgspec.msgpack.encode(letter)


def generation(stream_id: str, name: str) -> Op[int]:
    """What tells a group from itself before it was moved, or made anew.

    Raises:
        GroupNotFound.
    """
    counters = yield ("HGET", keys.group(stream_id, name), group_meta.COUNTERS)
    if counters is None:
        raise GroupNotFound
    return group_meta.unpack(counters).generation


def bring_back(
    stream_id: str,
    name: str,
    *,
    replay: int,
    generation: int,
    known: Brought,
    letters: Sequence[bytes] = (),
    upto: int = 0,
) -> Op[Brought]:
    """Give a group messages of the history, as many as it has room for. What an earlier call gave is not given again.

    Args:
        replay: on whose behalf; how far it is, is kept with the group.
        known: how far it is as the caller knows it; the group may know better.
        letters: up to 1000, as ``of_history`` makes them; offsets ascend.
        upto: up to this offset it is done once the last of them is dealt with.

    Raises:
        StreamNotFound, GroupNotFound, GroupMoved, StoreFull: nothing was given.
    """
    args = [keys.wake(stream_id), replay, generation, known.position, known.given, known.passed, upto]
    position, given, passed, room, is_paused = yield group_script(
        "bring_back", stream_id, name, [*args, *letters]
    )
    return Brought(position, given, passed, room, bool(is_paused))


def forget(stream_id: str, name: str, *, replay: int) -> Op[None]:
    """A replay brings the group nothing more; what it gave stays."""
    yield ("HDEL", keys.brought(stream_id, name), replay)
