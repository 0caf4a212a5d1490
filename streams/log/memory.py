"""Streams in memory: begun on a server that loses everything when it ends, and begun again above all they had.

What must outlive that server stands on the durable one: names, tokens, and for each memory stream the offset up to
which some may have been handed out. Offsets are reserved there in blocks before the memory server may hand them out,
so a stream that is begun again continues above everything that anybody was ever told, whatever was lost.

Two words keep a call that comes too late from doing harm. A server's *life* is a random word that it keeps beside its
data; what is begun names the life that was seen before its block was reserved, and counts only in that life.
"""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from streams.log import config, groups, keys, trim
from streams.log.client import Op, Pipeline, Script, Steady, small

BLOCK = 100_000
"""Offsets reserved at a time: one more round trip for so many messages, and at most such a gap after a loss."""

NOTED_AT_ONCE = 1000
"""Arguments of a function have to fit on Lua's stack."""


def begin(
    stream: config.Registered, settings: Mapping[str, Any], groups_of: Mapping[str, groups.Settings]
) -> Op[int | None]:
    """Begin a memory stream that its server does not hold, with its groups at its start; else change its settings.

    Args:
        groups_of: name → settings of its consumer groups.

    Returns:
        None where it was there. Otherwise it was begun now, is empty, and this is the last offset that may have been
        handed out before: 0 for one that is new.

    Raises:
        StoreUnavailable: the memory server or the durable one does not answer.
    """
    stream_id = stream.stream_id
    meta = keys.meta(stream_id)
    names = [keys.group(stream_id, name) for name in groups_of]
    published = config.published(stream, settings)
    told = [part for name, each in groups_of.items() for part in (name, *groups.published(each))]
    steady_ms = yield Steady()
    while True:
        # The life first, then the block: a block that is older than this life may lie below what was handed out.
        life = yield Script("life", [meta], [secrets.token_hex(8)])
        ceiling = (yield _reservation(stream_id)) if life else 0
        if not life:
            yield from trim.expire_before_limits([stream_id])
        last = max(0, ceiling - BLOCK)
        begun = yield Script(
            "begin",
            [keys.log(stream_id), meta, keys.gone(stream_id), keys.groups(stream_id), *names],
            [life, last, ceiling, steady_ms, len(published), *published, *told],
        )
        if begun >= 0:
            return last if begun else None


def offsets_reserve(stream_id: str) -> Op[None]:
    """Let a memory stream hand out another block of offsets.

    Raises:
        StreamNotFound, StreamLost: it is not there (any more).
    """
    ceiling = yield _reservation(stream_id)
    yield Script("ceiling", [keys.meta(stream_id)], [ceiling])


def _reservation(stream_id: str) -> Script:
    return small("HINCRBY", keys.MEMORY_RESERVED, stream_id, BLOCK)


def reservations_restore(reserved: Mapping[str, int]) -> Op[None]:
    """Note up to which offsets memory streams may have given some, where the durable server has forgotten it."""
    if not reserved:
        return
    held = yield ("HMGET", keys.MEMORY_RESERVED, *reserved)
    for (stream_id, upto), known in zip(reserved.items(), held, strict=True):
        if known is None:
            yield small("HSETNX", keys.MEMORY_RESERVED, stream_id, upto)


def life() -> Op[tuple[str, bool]]:
    """The life that the memory server is in, and whether all memory streams were begun in it.

    Raises:
        StoreUnavailable: the memory server does not answer, or there is none.
    """
    found, filled = yield Pipeline([("GET", keys.MEMORY_LIFE), ("GET", keys.MEMORY_FILLED)])
    if found is None:
        yield small("SET", keys.MEMORY_LIFE, secrets.token_hex(8), "NX")
        found = yield ("GET", keys.MEMORY_LIFE)
    return found.decode(), found == filled


def filled_set(life: str) -> Op[None]:
    """Say that all memory streams were begun in this life."""
    yield small("SET", keys.MEMORY_FILLED, life)


class Held(NamedTuple):
    """What a memory stream holds: its messages, and how many of them the history has yet to copy."""

    messages: int = 0
    unarchived: int = 0


def held_set(held: Mapping[str, Held]) -> Op[None]:
    """Note what memory streams hold, on the durable server, for the day that they are lost."""
    notes = [(stream_id, f"{each.messages} {each.unarchived}") for stream_id, each in held.items()]
    for first in range(0, len(notes), NOTED_AT_ONCE):
        some = notes[first : first + NOTED_AT_ONCE]
        yield small("HSET", keys.MEMORY_HELD, *(part for item in some for part in item))


def held_take(stream_id: str) -> Op[Held]:
    """Take the note of ``held_set`` away: what a stream held when it was last noted."""
    noted, _ = yield Pipeline([("HGET", keys.MEMORY_HELD, stream_id), ("HDEL", keys.MEMORY_HELD, stream_id)])
    return Held(*map(int, (noted or b"").split()))
