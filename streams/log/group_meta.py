"""A consumer group's settings and counters as the scripts keep them: two packed fields of one hash."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

SETTINGS, COUNTERS = FIELDS = ("settings", "counters")


class Counters(msgspec.Struct, array_like=True, frozen=True):
    """The first of a group's counters, in the order of ``lua/lib/group.lua``; only the scripts write them."""

    delivered: int
    generation: int
    ordered: int
    made_ms: int
    sequence: int
    redelivered: int
    missed: int
    seen: int
    acked: int
    paused_until: int
    fetched_ms: int
    acked_ms: int
    unfinished: int
    swept: int
    dead_lettered: int
    looked: int
    looked_floor: int
    look_from: int
    look_removals: int
    look_floor: int
    retired_ms: int


class Held(NamedTuple):
    """What the log holds of a group: ``settings`` as ``pack_settings`` got them, and its counters."""

    settings: Mapping[str, Any]
    counters: Counters


_settings = msgspec.msgpack.Decoder(dict[str, Any]).decode
_counters = msgspec.msgpack.Decoder(Counters).decode


def pack_settings(settings: Mapping[str, Any]) -> bytes:
    """The settings as the scripts take them."""
    return msgspec.msgpack.encode(settings)


def unpack(counters: bytes) -> Counters:
    """The counters in the reply to an HGET of ``COUNTERS``."""
    return _counters(counters)


def read(reply: Sequence[bytes | None]) -> Held | None:
    """What the reply to an HMGET of ``FIELDS`` says; None: there is no such group."""
    settings, counters = reply
    if settings is None or counters is None:
        return None
    return Held(_settings(settings), _counters(counters))


def names_in(members: Iterable[bytes]) -> list[str]:
    """The names among the members of ``keys.groups``, in order; what is no name is left out."""
    found = []
    for name in members:
        with suppress(UnicodeDecodeError):
            found.append(name.decode())
    return sorted(found)
