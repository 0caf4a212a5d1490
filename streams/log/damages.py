"""Which streams and groups hold something that cannot be read: a look at them, and what the worker notes of it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from streams.log import damage, group_meta, keys, meta
from streams.log.client import Op, Pipeline, small
from streams.log.errors import Damaged

NOTED_S = 15
"""The worker notes what it met every few seconds; without it nobody says what is so."""


class Noted(NamedTuple):
    """What the worker could not read: of which stream (internal id) and group, "" where of none, and why."""

    stream_id: str
    group: str
    why: str


def look(stream_ids: Sequence[str]) -> Op[list[Damaged]]:
    """What cannot be read of the counters and settings of these streams and of their groups; two round trips.

    Raises:
        StoreUnavailable: their server does not answer.
    """
    if not stream_ids:
        return []
    asked = [
        command
        for stream_id in stream_ids
        for command in (("HMGET", keys.meta(stream_id), *meta.FIELDS), ("SMEMBERS", keys.groups(stream_id)))
    ]
    replies = yield Pipeline(asked, apart=True)
    damaged: list[Damaged] = []
    of_groups: list[tuple[str, ...]] = []
    for (_, key, *_), reply in zip(asked[::2], replies[::2], strict=True):
        damaged += _unreadable(key, reply, meta.read)
    for stream_id, reply in zip(stream_ids, replies[1::2], strict=True):
        key = keys.groups(stream_id)
        if wrong := _unreadable(key, reply, lambda members: [each.decode() for each in members]):
            damaged += wrong
        else:
            of_groups += [
                ("HMGET", keys.group(stream_id, each.decode()), *group_meta.FIELDS) for each in reply
            ]
    found = (yield Pipeline(of_groups, apart=True)) if of_groups else []
    for (_, key, *_), reply in zip(of_groups, found, strict=True):
        damaged += _unreadable(key, reply, group_meta.read)
    return damaged


def _unreadable(key: str, reply: Any, read: Callable[[Any], object]) -> list[Damaged]:
    try:
        damage.readable([key], [reply], read, strict=True)
    except Damaged as error:
        return [error]
    return []


def note(met: Sequence[Noted]) -> Op[None]:
    """Let everybody know what the worker could not read lately."""
    if met:
        yield small("SET", keys.DAMAGED, msgspec.json.encode(met), "EX", NOTED_S)
    else:
        yield ("UNLINK", keys.DAMAGED)


def noted() -> Op[list[Noted]]:
    """What the worker could not read lately."""
    told = yield ("GET", keys.DAMAGED)
    return [] if told is None else _noted(told)


_noted = msgspec.json.Decoder(list[Noted]).decode
