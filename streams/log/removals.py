"""Removing for a while only: what a person purged or deleted is kept aside, and can be undone.

Nothing of it is in any answer or count. It comes back as it was, with its offsets and times, and unread by the groups
that had not read it: as if it had never been removed. What a limit would have taken meanwhile stays away.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.log import entries, keys, read, spent, trim
from streams.log.client import Op, Pipeline, Script, Scripts
from streams.log.errors import DoneInPart, LogError, RemovalNotFound, RemovalTaken
from streams.log.group_scripts import group_script
from streams.log.trim import Removed

SLICE = 80
"""Messages brought back or given to a group in one call, a few milliseconds."""

DELETE_SLICE = END_SLICE = 30

DONE = 1
"""What a group is told that has all that an undo brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Something that was removed and can come back.

    Attributes:
        number: of the removal, ascending within a stream.
        messages, bytes: that were removed.
        first: the lowest offset among them that can come back.
        until_ms: unix ms at which it goes for good.
        facts: what was given to ``purge`` or ``delete``.
    """

    number: int
    messages: int
    bytes: int
    first: int
    until_ms: int
    facts: Mapping[str, Any]


def purge(
    stream_id: str,
    *,
    keep_ms: int,
    facts: Mapping[str, Any],
    below: int | None = None,
    keep: int | None = None,
) -> Op[tuple[Removed, int | None]]:
    """``trim.purge``, for ``keep_ms`` only; answers also the number of the removal, None where nothing went.

    Raises:
        StreamNotFound, StreamSealed, OperationDenied: nothing was removed.
    """
    mode, value = ("below", below) if below is not None else ("keep", keep or 0)
    yield from trim.expire(stream_id)
    while True:
        names = yield from _groups(stream_id)
        messages, size, number, ended, done = yield Script(
            "set_aside",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.removals(stream_id),
                keys.groups(stream_id),
                keys.scratch(stream_id),
                *_of_groups(stream_id, names, *_OF_STANDING),
            ],
            [mode, value, keep_ms, json.dumps(facts), *names],
        )
        if done:
            return Removed(messages, size, ended), number or None


def delete(
    stream_id: str,
    offsets: Sequence[int],
    *,
    keep_ms: int,
    facts: Mapping[str, Any],
    denied_by: str = "deny_delete",
    at_once: int = DELETE_SLICE,
    number: int | None = None,
) -> Op[tuple[Removed, int | None]]:
    """``trim.delete``, for ``keep_ms`` only; answers also the number of the removal, None where nothing went.

    Args:
        number: of the removal that it is a further part of.

    Raises:
        StreamNotFound, StreamSealed, OperationDenied: nothing was removed.
        RemovalOver: the removal can be undone no more, so the rest stays.
        DoneInPart: by one of these, or because the store went away, after some of them were removed.
    """
    yield from spent.retire_before_removal(stream_id)
    offsets = sorted(offsets)  # a record of where groups were goes by parts in this order
    messages = size = ended = 0
    at_once, at = min(at_once, DELETE_SLICE), 0
    while at < len(offsets):
        names = yield from _groups(stream_id)
        part = Script(
            "delete_aside",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.latest(stream_id),
                keys.aside(stream_id),
                keys.removals(stream_id),
                keys.groups(stream_id),
                keys.went(stream_id),
                *_of_groups(stream_id, names, *_OF_STANDING),
            ],
            [
                denied_by,
                number or 0,
                keep_ms,
                json.dumps(facts),
                len(names),
                *names,
                *offsets[at : at + at_once],
            ],
        )
        try:
            went, went_bytes, took, ended_now, done = yield part
        except LogError as why:
            if messages:
                raise DoneInPart(why, messages, size, ended=ended) from None
            raise
        if done:
            messages, size = messages + went, size + went_bytes
            number, ended = took, ended + ended_now
            at += at_once
    return Removed(messages, size, ended), number or None


def purge_found(
    stream_id: str, found: trim.Matching, *, keep_ms: int, facts: Mapping[str, Any], number: int | None = None
) -> Op[tuple[Removed, int | None]]:
    """``trim.purge_found``, for ``keep_ms`` only; ``number`` as of ``delete``."""
    return (
        yield from delete(
            stream_id,
            found.offsets,
            keep_ms=keep_ms,
            facts=facts,
            denied_by="deny_purge",
            at_once=found.at_once,
            number=number,
        )
    )


def removals(stream_id: str) -> Op[list[Aside]]:
    """What can be undone, oldest first."""
    reply = yield ("HGETALL", keys.removals(stream_id))
    if not reply:
        return []
    at = yield from read.position(stream_id)
    held: dict[int, dict[str, bytes]] = {}
    for name, value in zip(reply[::2], reply[1::2], strict=True):
        number, _, field = name.decode().partition(":")
        if field and number.isdigit():
            held.setdefault(int(number), {})[field] = value
    found = []
    for number, fields in sorted(held.items()):
        first, last = int(fields["first"]), int(fields["upto"]) - 1
        if last < 0 and first < at.kept:  # single messages, of which something has reached the first
            (last,) = map(int, (yield _last_aside(stream_id, number)) or [b"-1"])
        if 0 < at.kept <= max(first, last) and int(fields["until"]) > at.now_ms:
            found.append(
                Aside(
                    number=number,
                    messages=int(fields["messages"]),
                    bytes=int(fields["bytes"]),
                    first=max(first, at.kept),
                    until_ms=int(fields["until"]),
                    facts=json.loads(fields["facts"]),
                )
            )
    return found


def lowest_above_archived(stream_ids: Sequence[str]) -> Op[dict[str, int]]:
    """Stream id → the lowest offset above what the history has that was set aside; streams without one are left out.

    It may come back, so the history goes no further until it has, or has gone for good.
    """
    if not stream_ids:
        return {}
    replies = yield Scripts(
        [
            Script("aside_above", [make(stream_id) for make in (keys.meta, keys.aside, keys.removals)])
            for stream_id in stream_ids
        ]
    )
    found = zip(stream_ids, replies, strict=True)
    return {stream_id: reply for stream_id, reply in found if isinstance(reply, int) and reply > 0}


def set_aside(stream_id: str, first: int, last: int) -> Op[read.Wanted]:
    """Tells which stored entries between two offsets (both included) were set aside; one round trip."""
    flat, runs = yield Pipeline(
        [
            ("HGETALL", keys.removals(stream_id)),
            ("ZRANGEBYSCORE", keys.gone(stream_id), first - first % read.GONE_BLOCK, last),
        ]
    )
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    purged = [
        range(int(fields[name.replace(b"upto", b"first")]), int(upto))
        for name, upto in fields.items()
        if name.endswith(b":upto")
    ]
    single = {int(run.partition(b":")[0]) for run in runs if run.endswith(b":a")}

    def is_aside(entry: entries.Entry) -> bool:
        offset = entries.position(entry)[0]
        return offset in single or any(offset in each for each in purged)

    return is_aside


def _last_aside(stream_id: str, number: int) -> tuple[object, ...]:
    return ("ZREVRANGEBYSCORE", keys.aside(stream_id), number, number, "LIMIT", 0, 1)


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
    names = yield from _groups(stream_id)
    of_groups = _of_groups(stream_id, names, *_OF_READER)
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
        stay = yield from _look(stream_id, number, partial=partial)
        messages = size = done = 0
        part = Script(
            "undo_delete",
            [*_of_undo(stream_id), *of_groups],
            [keys.wake(stream_id), number, stay, SLICE, *names],
        )
        while not done:
            try:
                came, came_bytes, done = yield part
            except LogError as why:
                if messages:
                    raise DoneInPart(why, messages, size) from None
                raise
            messages, size = messages + came, size + came_bytes
    try:
        yield from give_back(stream_id)
        yield from trim.keep_newest_of_keys(stream_id, until_s=time.monotonic() + trim.AT_ONCE_S)
    except LogError as why:
        raise DoneInPart(why, messages, size) from None
    return Removed(messages, size)


def _look(stream_id: str, number: int, *, partial: bool) -> Op[int]:
    """How many of the oldest of a removal's single messages have to stay away.

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
    return max(0, waiting - seen)


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
            *_of_groups(stream_id, [group], *_OF_READER),
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
        for name in (yield from _groups(stream_id)):
            yield from _forget_leases(stream_id, name)
    return ended


def _forget_leases(stream_id: str, name: str) -> Op[None]:
    after = 0
    while True:
        after = yield group_script("shelf_sweep", stream_id, name, [after, SLICE])
        if not after:
            return


_OF_STANDING = (keys.group, keys.parked, keys.parked_aside)
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


def _groups(stream_id: str) -> Op[list[str]]:
    return sorted(name.decode() for name in (yield ("SMEMBERS", keys.groups(stream_id))))


def _of_groups(stream_id: str, names: Sequence[str], *makers: Callable[[str, str], str]) -> list[str]:
    return [make(stream_id, name) for name in names for make in makers]
