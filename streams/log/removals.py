"""Removing for a while only: what a person purged or deleted is kept aside, and can be undone (``undo``).

Nothing of it is in any answer or count.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streams.log import group_meta, keys, read, spent, trim
from streams.log.client import Op, Script
from streams.log.errors import DoneInPart, LogError
from streams.log.trim import Removed

DELETE_SLICE = 30

_OF_STANDING = (keys.group, keys.parked, keys.parked_aside)


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
        names = yield from groups_of(stream_id)
        messages, size, number, ended, done = yield Script(
            "set_aside",
            [
                keys.log(stream_id),
                keys.meta(stream_id),
                keys.gone(stream_id),
                keys.removals(stream_id),
                keys.groups(stream_id),
                keys.scratch(stream_id),
                *keys_of_groups(stream_id, names, *_OF_STANDING),
            ],
            [mode, value, keep_ms, json.dumps(facts), *names],
        )
        if done:
            return Removed(messages, size, ended), number or None


def purge_for_good(stream_id: str, *, below: int | None = None, keep: int | None = None) -> Op[Removed]:
    """``trim.purge``, with the removals of before that it makes final. Errors as there."""
    before = yield from removals(stream_id)
    removed = yield from trim.purge(stream_id, below=below, keep=keep)
    if not before:
        return removed
    left = {each.number: each.first for each in (yield from removals(stream_id))}
    return replace(
        removed, finals=tuple(each.number for each in before if left.get(each.number) != each.first)
    )


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
        names = yield from groups_of(stream_id)
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
                *keys_of_groups(stream_id, names, *_OF_STANDING),
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
                raise DoneInPart(why, messages, size, ended=ended, removal=number) from None
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
        first, last = int(fields["first"]), int(fields.get("stop", fields["upto"])) - 1
        if last < 0 and first < at.kept:  # single messages, of which something has reached the first
            (last,) = map(int, (yield _last_aside(stream_id, number)) or [b"-1"])
        if 0 < at.kept <= max(first, last) and int(fields["until"]) > at.times.steady_ms:
            found.append(
                Aside(
                    number=number,
                    messages=int(fields["messages"]),
                    bytes=int(fields["bytes"]),
                    first=max(first, at.kept),
                    until_ms=at.times.shown_ms(int(fields["until"])),
                    facts=json.loads(fields["facts"]),
                )
            )
    return found


def _last_aside(stream_id: str, number: int) -> tuple[object, ...]:
    return ("ZREVRANGEBYSCORE", keys.aside(stream_id), number, number, "LIMIT", 0, 1)


def told(number: int | None, removed: Removed) -> dict[str, Any]:
    """What is said of it: as which ``removal`` it can be undone, which other one ``ended`` before its time for it, and
    which ones it made final with what it took (``finals``).
    """
    said: dict[str, Any] = {} if number is None else {"removal": number}
    if removed.ended:
        said["ended"] = removed.ended
    if removed.finals:
        said["finals"] = list(removed.finals)
    return said


def groups_of(stream_id: str) -> Op[list[str]]:
    """The names of a stream's groups, in order."""
    return group_meta.names_in((yield ("SMEMBERS", keys.groups(stream_id))))


def keys_of_groups(stream_id: str, names: Sequence[str], *makers: Callable[[str, str], str]) -> list[str]:
    """The keys of some groups, group by group, as scripts take them."""
    return [make(stream_id, name) for name in names for make in makers]
