"""What a stream's meta hash holds: the counters that the scripts keep, and the settings that they act on.

Both are one field each (MessagePack). The scripts read and write them through ``lua/lib/state.lua``; whoever reads them
from Python does it here.
"""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from streams.log import damage, keys
from streams.log.client import Op, Pipeline, Reachable
from streams.log.errors import StoreUnavailable

COUNTERS = "counters"
TAKEN = "taken"
"""The field with what people took away below the floor before the history had it: first, stop, first, stop, …"""

FIELDS = ("settings", COUNTERS)
"""The fields to ask HMGET for; ``read`` takes the reply."""


class Counters(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A stream's counters, in the order in which they are packed; new ones go to the end.

    Attributes:
        last, last_ms, last_id: offset, time (unix ms) and id of the last message; 0 and "" if none ever was.
        cum: bytes of everything ever appended.
        messages, bytes: visible ones, bytes of their bodies.
        floor, floor_cum: the lowest offset that may be visible, bytes of everything below it.
        committed: the committed offset.
        archived: everything up to it is in the history.
        purged: a version before noted here what ``TAKEN`` holds: everything up to it, from ``owed`` on; 0: nothing.
        held_since: since when (unix ms) something invisible is kept for the history, or 0.
        duplicates: publishes refused as already known.
        widest: bytes of the largest message ever appended: body, key and headers.
        ids_now, ids_since: the bucket that takes new ids, and since when (unix ms).
        ceiling: the offset up to which a stream in memory may hand out offsets; 0 for one that is durable.
        hidden: 1 while entries that went from between others are kept for the history, else 0.
        indexed: where messages a key are limited, those from here on are indexed by key; 0: none yet, 1: all.
        indexed_for: the limit that the index was begun for.
        removals: counted up by each message that goes from between others, and by each undo.
        passed: where messages are kept by interest, everything up to it has been looked at; 0: nothing yet.
        turn: the last kept message that was looked at again; -1: all were, and what is new comes next.
        kept: from here on something that was set aside may come back; 0: nothing was.
        crowded: 1 while count and size wait for messages to go that are over by their own time, else 0.
        ids_widened: when (unix ms) ids were last to be remembered for longer than before; 0: never.
        ids_before: 0 while nothing is in the bucket that does not take new ids, else 1.
        returns: messages that ever came back to between others.
        keyed: 0 while no message with a key ever came; 1, too, where an older version did not note it.
        owed: see ``purged``.
        by_hand, by_hand_bytes: messages that people took away and did not bring back, bytes of their bodies.
        loose: what is visible above it has a key, which ``keys.by_key`` knows; -1: nobody noted it.
        keys_from: no key that ``keys.by_key`` knows has its newest message below it.
        missed: messages that went physically before the history had them, and that no person took away.
        ids_ahead: by how many ms ``ids_since`` is ahead of the steady clock as it was then.
    """

    last: int = 0
    last_ms: int = 0
    last_id: str = ""
    cum: int = 0
    messages: int = 0
    bytes: int = 0
    floor: int = 1
    floor_cum: int = 0
    committed: int = 0
    archived: int = 0
    purged: int = 0
    held_since: int = 0
    duplicates: int = 0
    widest: int = 0
    ids_now: int = 0
    ids_since: int = 0
    ceiling: int = 0
    hidden: int = 0
    indexed: int = 0
    indexed_for: int = 0
    removals: int = 0
    passed: int = 0
    turn: int = 0
    kept: int = 0
    crowded: int = 0
    ids_widened: int = 0
    ids_before: int = 1
    returns: int = 0
    keyed: int = 1
    owed: int = 0
    by_hand: int = 0
    by_hand_bytes: int = 0
    loose: int = -1
    keys_from: int = 0
    missed: int = 0
    ids_ahead: int = 0


_counters = msgspec.msgpack.Decoder(Counters).decode
_settings = msgspec.msgpack.Decoder(dict[str, Any]).decode
_ranges = msgspec.msgpack.Decoder(list[int]).decode
NEW = Counters(keyed=0, loose=0)
"""What a stream without a message has."""


def pack_settings(settings: Mapping[str, Any]) -> bytes:
    """The settings as the scripts take them: unset and false ones left out, true is 1."""
    told = {name: value for name, value in settings.items() if value is not None and value is not False}
    return msgspec.msgpack.encode({name: 1 if value is True else value for name, value in told.items()})


def pack(counters: Counters) -> bytes:
    """Counters as the scripts take them."""
    return msgspec.msgpack.encode(counters)


def counters_of(stream_ids: Iterable[str], *, strict: bool = False) -> Op[dict[str, Counters]]:
    """The counters of several streams, in a round trip a server; those that are gone are left out.

    So are those that are damaged, and those in memory while their server does not answer; that is an error with
    ``strict``.
    """
    wanted = sorted(stream_ids, key=keys.in_memory)
    durable = bisect(wanted, False, key=keys.in_memory)
    found = yield from _counters_of(wanted[:durable], strict=strict)
    fleeting: Sequence[str] = wanted[durable:]
    if fleeting and not strict:
        fleeting = yield Reachable(fleeting)
    if fleeting:
        try:
            found |= yield from _counters_of(fleeting, strict=strict)
        except StoreUnavailable:
            if strict:
                raise
    return found


def counters_at_once(stream_ids: Sequence[str]) -> Op[list[Counters]]:
    """The counters of many streams in their order; those of a new stream for one that is gone or damaged, and for those
    in memory while their server does not answer or on a node of a cluster that is away.
    """
    there = yield Reachable(stream_ids)
    in_memory = [stream_id for stream_id in there if keys.in_memory(stream_id)]
    durable = [stream_id for stream_id in there if not keys.in_memory(stream_id)] if in_memory else there
    found = yield from _counters_there(durable, in_memory=False)
    with suppress(StoreUnavailable):
        found |= yield from _counters_there(in_memory, in_memory=True)
    return [found.get(stream_id, NEW) for stream_id in stream_ids]


def _counters_there(stream_ids: Sequence[str], *, in_memory: bool) -> Op[dict[str, Counters]]:
    if not stream_ids:
        return {}
    replies = yield Pipeline(
        [("HGET", keys.meta(stream_id), COUNTERS) for stream_id in stream_ids],
        in_memory=in_memory,
        apart=True,
    )
    return dict(damage.readable(stream_ids, replies, unpack))


def _counters_of(wanted: Sequence[str], *, strict: bool) -> Op[dict[str, Counters]]:
    replies = yield Pipeline([("HMGET", keys.meta(stream_id), *FIELDS) for stream_id in wanted], apart=True)
    found = damage.readable(wanted, replies, read, strict=strict)
    return {stream_id: held[1] for stream_id, held in found if held is not None}


def taken_of(counters: Mapping[str, Counters]) -> Op[dict[str, list[range]]]:
    """Stream id → the offsets that people took away and the history has not got, in order; only where there are any.

    Args:
        counters: of the streams, as ``counters_of`` gave them.
    """
    wanted = [stream_id for stream_id, held in counters.items() if held.floor - 1 > held.archived]
    if not wanted:
        return {}
    replies = yield Pipeline([("HGET", keys.meta(stream_id), TAKEN) for stream_id in wanted], apart=True)
    found = {}
    for stream_id, ends in damage.readable(wanted, replies, _ends):
        held = counters[stream_id]
        taken = [range(first, stop) for first, stop in zip(ends[::2], ends[1::2], strict=True)]
        if held.purged > held.archived:
            taken.append(range(held.owed if held.owed > held.archived + 1 else 1, held.purged + 1))
        if taken:
            found[stream_id] = sorted(taken, key=lambda each: each.start)
    return found


def _ends(packed: bytes | None) -> list[int]:
    return [] if packed is None else _ranges(packed)


def read(reply: Sequence[bytes | None]) -> tuple[dict[str, Any], Counters] | None:
    """Settings that are set and counters from the reply to an HMGET of ``FIELDS``; None: there is no such stream."""
    settings, counters = reply
    if settings is None:
        return None
    return _settings(settings), unpack(counters)


def unpack(counters: bytes | None) -> Counters:
    """The counters in the reply to an HGET of ``COUNTERS``; those of a new stream where there are none."""
    return NEW if counters is None else _counters(counters)
