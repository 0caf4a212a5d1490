"""Bringing back what was removed for a while (``removals``), or letting it go for good.

It comes back as it was, with its offsets and times, and unread by the groups that had not read it: as if it had never
been removed. What a limit would have taken meanwhile stays away.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from streams.log import keys, trim
from streams.log.client import Op, Script
from streams.log.errors import DoneInPart, LogError, RemovalNotFound, RemovalTaken, StoreFull
from streams.log.group_scripts import group_script
from streams.log.removals import groups_of, keys_of_groups
from streams.log.trim import Removed

SLICE = 80
"""Messages brought back or given to a group in one call, a few milliseconds."""

END_SLICE = 30

DONE = 1
"""What a group is told that has all that an undo brought back."""

_OF_READER = (
    keys.group,
    keys.pending,
    keys.due,
    keys.leases,
    keys.turns,
    keys.parked,
    keys.ready,
    keys.parked_aside,
    keys.members,
    keys.shelved,
)


def undo(stream_id: str, number: int, *, partial: bool = False) -> Op[Removed]:
    """Bring back what a removal took; answers what came back.

    Args:
        partial: bring back what the limits have left; else a removal that is not whole any more is refused.

    Raises:
        StreamNotFound, StreamSealed, RemovalNotFound, RemovedSince, RemovalTaken: nothing came back.
        DoneInPart: it was refused, or cut off, in the middle; the next one brings back the rest.
    """
    yield from trim.expire(stream_id)
    upto = yield ("HGET", keys.removals(stream_id), f"{number}:upto")
    if upto is None:
        raise RemovalNotFound
    names = yield from groups_of(stream_id)
    of_groups = keys_of_groups(stream_id, names, *_OF_READER)
    if int(upto):
        messages, size = yield Script(
            "undo_purge",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.removals(stream_id),
                *of_groups,
            ],
            [keys.wake(stream_id), number, int(partial), *names],
        )
    else:
        messages, size = yield from _undo_singles(stream_id, number, names, of_groups, partial=partial)
    try:
        yield from give_back(stream_id)
        yield from trim.keep_newest_of_keys(stream_id, until_s=time.monotonic() + trim.AT_ONCE_S)
    except LogError as why:
        raise DoneInPart(why, messages, size) from None
    return Removed(messages, size)


@dataclass(frozen=True, slots=True)
class _Plan:
    """So many of the oldest of a removal's single messages stay away, and so many of the others can come back."""

    stay: int
    messages: int
    bytes: int


def _undo_singles(
    stream_id: str, number: int, names: Sequence[str], of_groups: Sequence[str], *, partial: bool
) -> Op[tuple[int, int]]:
    """How many single messages came back, and their bytes.

    Those for which there was no room any more when it came to them are looked at again: others may have come to the end
    of their own time meanwhile, and the removal goes for good only once nothing of it can come.
    """
    messages = size = 0
    try:
        plan = yield from _look(stream_id, number, partial=partial)
        while True:
            stay, can, can_bytes = plan.stay, plan.messages, plan.bytes
            passed = done = 0
            while not done:
                came, came_bytes, done, left, over, over_bytes = yield Script(
                    "undo_delete",
                    [*_of_undo(stream_id), *of_groups],
                    [keys.wake(stream_id), number, stay, can, can_bytes, passed, SLICE, *names],
                )
                messages, size, stay = messages + came, size + came_bytes, stay + left
                can, can_bytes = can - came - over, can_bytes - came_bytes - over_bytes
                passed += over
            if not passed:
                return messages, size
            plan = yield from _look_again(stream_id, number, partial=partial)
    except LogError as why:
        if messages:
            raise DoneInPart(why, messages, size) from None
        raise


def _look(stream_id: str, number: int, *, partial: bool) -> Op[_Plan]:
    """What of a removal's single messages can come back.

    Raises:
        RemovalTaken: these, or others, cannot come back, and ``partial`` does not say to go on; or nothing can.
    """
    can = size = seen = done = took = 0
    while not done:
        can, size, seen, done, took = yield Script(
            "undo_look", _of_undo(stream_id), [number, SLICE, seen, can, size]
        )
    if not can or (can < took and not partial):
        raise RemovalTaken(can, took)
    waiting: int = yield ("ZCOUNT", keys.aside(stream_id), number, number)
    return _Plan(max(0, waiting - seen), can, size)


def _look_again(stream_id: str, number: int, *, partial: bool) -> Op[_Plan]:
    """What can come back of what was passed over; with ``partial`` it may be nothing, and then goes for good.

    Raises:
        RemovalTaken: part of it cannot come back, and ``partial`` does not say to go on.
    """
    try:
        plan: _Plan = yield from _look(stream_id, number, partial=partial)
    except RemovalTaken as taken:
        if taken.left or not partial:
            raise
        waiting: int = yield ("ZCOUNT", keys.aside(stream_id), number, number)
        return _Plan(waiting, 0, 0)
    return plan


def _of_undo(stream_id: str) -> list[str]:
    return [make(stream_id) for make in (keys.log, keys.meta, keys.gone, keys.aside, keys.removals)]


def give_back(stream_id: str) -> Op[None]:
    """Give groups that were behind what an undo brought back; goes on where a process that ended had stopped."""
    fields = yield ("HGETALL", keys.removals(stream_id))
    for field, value in zip(fields[::2], fields[1::2], strict=True):
        kind, _, number = field.decode().partition(":")
        for name, *_ in json.loads(value) if kind == "back" else ():
            while (yield _give_back(stream_id, number, name)) != DONE:
                pass


def give_back_out(stream_id: str, group: str) -> Op[None]:
    """Give a group what it had out of what an undo brought back; who fetches from it does so first."""
    fields = yield ("HKEYS", keys.removals(stream_id))
    for field in fields:
        kind, _, number = field.decode().partition(":")
        if kind == "back":
            while not (yield _give_back(stream_id, number, group)):
                pass


def _give_back(stream_id: str, number: str, group: str) -> Script:
    return Script(
        "give_back_aside",
        [
            keys.log(stream_id),
            keys.meta(stream_id),
            keys.gone(stream_id),
            keys.removals(stream_id),
            *keys_of_groups(stream_id, [group], *_OF_READER),
        ],
        [keys.wake(stream_id), number, group, SLICE],
    )


def end(stream_id: str, number: int = 0) -> Op[int]:
    """Remove for good what can no longer be undone; with ``number`` also this one and those before it.

    Returns:
        How many removals have ended.

    Raises:
        StreamNotFound, RemovalNotFound.
    """
    if number and not (yield ("HEXISTS", keys.removals(stream_id), f"{number}:upto")):
        raise RemovalNotFound
    if not number and not (yield ("EXISTS", keys.removals(stream_id))):
        return 0
    with suppress(StoreFull):  # it waits for room, which what ends here makes
        yield from give_back(stream_id)
    ended = done = 0
    while not done:
        some, done = yield Script(
            "aside_end",
            [*keys.removing(stream_id), keys.aside(stream_id), keys.removals(stream_id)],
            [number, END_SLICE],
        )
        ended += some
    if ended:
        yield from trim.drop(stream_id)
        for name in (yield from groups_of(stream_id)):
            yield from _forget_leases(stream_id, name)
    return ended


def _forget_leases(stream_id: str, name: str) -> Op[None]:
    after = 0
    while True:
        after = yield group_script("shelf_sweep", stream_id, name, [after, SLICE])
        if not after:
            return
