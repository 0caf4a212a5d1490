"""Dead letters: what a group delivers no more, kept with its body until it is replayed or deleted."""

import time
from collections.abc import Sequence

import msgspec

from streams.log import keys
from streams.log.client import Op, Pipeline
from streams.log.errors import DoneInPart, LogError, MessageNotFound
from streams.log.group_scripts import group_script

REPLAY_SLICE = 100
"""Most dead letters replayed in one call of the script."""


MAX_DELIVER = "max_deliver"
"""The reason of what was delivered as often as the group allows; others are what a consumer gave with term."""


class DeadLetter(msgspec.Struct, kw_only=True):
    """A message that is delivered no more; ``died_ms`` and ``timestamp_ms`` are unix ms, ``body`` is JSON text."""

    offset: int
    timestamp_ms: int
    id: str
    body: str
    reason: str
    deliveries: int
    died_ms: int
    key: str | None = None
    headers: str | None = None


def page(
    stream_id: str, name: str, *, start: int | None = None, limit: int = 100, newest_first: bool = False
) -> Op[list[DeadLetter]]:
    """Dead letters in offset order, or from the highest offset down; the server takes steps for these alone.

    Args:
        start: the offset to begin at; None for the first in this order.
    """
    command, begin, end = (
        ("ZREVRANGEBYSCORE", "+inf", "-inf") if newest_first else ("ZRANGEBYSCORE", "-inf", "+inf")
    )
    begin = begin if start is None else str(start)
    found = yield (command, keys.dead(stream_id, name), begin, end, "LIMIT", 0, limit)
    return [msgspec.msgpack.decode(letter, type=DeadLetter) for letter in found]


def those_dead(stream_id: str, name: str, offsets: Sequence[int]) -> Op[list[int]]:
    """Which of these offsets hold dead letters, without their bodies."""
    found: list[int] = []
    for first in range(0, len(offsets), REPLAY_SLICE):
        part = offsets[first : first + REPLAY_SLICE]
        replies = yield Pipeline([("ZCOUNT", keys.dead(stream_id, name), offset, offset) for offset in part])
        found += [offset for offset, count in zip(part, replies, strict=True) if count]
    return found


def replay(stream_id: str, name: str, offsets: Sequence[int]) -> Op[int]:
    """Deliver dead letters again with a fresh count; returns how many there were.

    Raises:
        StreamNotFound, GroupNotFound, StoreFull: none is.
        DoneInPart: by one of these, or because the store went away, after some of them are.
    """
    total = 0
    for first in range(0, len(offsets), REPLAY_SLICE):
        part = group_script(
            "dead_replay", stream_id, name, [keys.wake(stream_id), *offsets[first : first + REPLAY_SLICE]]
        )
        try:
            total += yield part
        except LogError as why:
            if total:
                raise DoneInPart(why, total) from None
            raise
    return total


def replay_all(stream_id: str, name: str) -> Op[int]:
    """Deliver all dead letters again, in slices; returns how many there were. Errors as ``replay``."""
    total = start = 0
    while True:
        try:
            offsets = yield group_script("dead_offsets", stream_id, name, [start, REPLAY_SLICE])
            if not offsets:
                return total
            total += yield from replay(stream_id, name, offsets)
        except LogError as why:
            if total:
                raise DoneInPart(why, total) from None
            raise
        start = offsets[-1] + 1


def delete(stream_id: str, name: str, *, offset: int | None = None) -> Op[int]:
    """Delete the dead letter at an offset, or all; returns how many.

    Raises:
        MessageNotFound: there is none at this offset.
    """
    low, high = ("-inf", "+inf") if offset is None else (offset, offset)
    removed: int = yield ("ZREMRANGEBYSCORE", keys.dead(stream_id, name), low, high)
    if offset is not None and not removed:
        raise MessageNotFound
    return removed


def delete_these(stream_id: str, name: str, offsets: Sequence[int]) -> Op[int]:
    """Delete the dead letters at these offsets; returns how many there were."""
    total = 0
    for first in range(0, len(offsets), REPLAY_SLICE):
        part = offsets[first : first + REPLAY_SLICE]
        replies = yield Pipeline(
            [("ZREMRANGEBYSCORE", keys.dead(stream_id, name), offset, offset) for offset in part]
        )
        total += sum(replies)
    return total


def erase(
    stream_id: str, name: str, *, offset: int | None = None, key: str = "", up_to: int | None = None
) -> Op[int]:
    """Remove for good what a group keeps of the message at an offset, or of all messages of a key: its dead letters,
    and what was replayed and is not acknowledged. What the stream holds itself stays. Returns how many there were.

    Args:
        up_to: of a key none above this offset; None is all.

    Raises:
        StreamNotFound, GroupNotFound: there is none.
    """
    if offset is not None:
        return (yield from _erase_these(stream_id, name, [offset]))
    total = 0
    # A letter may pass from one place to the other meanwhile, back too: replayed, and dead again after a seek.
    for place in ("dead", "replayed", "dead"):
        start = 0
        while True:
            following, offsets = yield group_script("dead_of_key", stream_id, name, [key, place, start])
            total += yield from _erase_these(stream_id, name, _reached(offsets, up_to))
            start = int(following)
            if not start:
                break
    return total


def kept(
    stream_id: str,
    name: str,
    *,
    offset: int | None = None,
    key: str = "",
    up_to: int | None = None,
    until_s: float,
) -> Op[tuple[int, bool]]:
    """How many ``erase`` would remove now, and whether all were looked at.

    Args:
        until_s: monotonic seconds at which it ends, with what it has found.
    """
    if offset is not None:
        dead, replayed = yield Pipeline(
            [
                ("ZCOUNT", keys.dead(stream_id, name), offset, offset),
                ("HEXISTS", keys.replayed(stream_id, name), offset),
            ]
        )
        return int(bool(dead or replayed)), True
    found: set[int] = set()
    for place in ("dead", "replayed"):
        start = 0
        while True:
            following, offsets = yield group_script("dead_of_key", stream_id, name, [key, place, start])
            found.update(_reached(offsets, up_to))
            start = int(following)
            if not start:
                break
            if time.monotonic() > until_s:
                return len(found), False
    return len(found), True


def _reached(offsets: Sequence[int], up_to: int | None) -> list[int]:
    return [offset for offset in offsets if up_to is None or int(offset) <= up_to]


def _erase_these(stream_id: str, name: str, offsets: Sequence[int]) -> Op[int]:
    total = 0
    for first in range(0, len(offsets), REPLAY_SLICE):
        part = offsets[first : first + REPLAY_SLICE]
        total += yield group_script("dead_erase", stream_id, name, [keys.wake(stream_id), *part])
    return total
