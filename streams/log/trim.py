"""Taking messages away: by hand, by limits, by their own time to live."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from streams.log import entries, keys, losses, read, spent
from streams.log.client import Op, Pipeline, Script, Scripts
from streams.log.errors import Damaged, DoneInPart, LogError, StoreFull, StreamLost, StreamNotFound

PAGE = 30
"""Messages looked at in one call that may take each of them from between others: a few milliseconds."""

AT_ONCE_S = 0.25
"""So long a limit a key is applied before the answer, where it is set or messages come back; the worker goes on."""

DELETE_SLICE = 100
"""Messages that one call deletes, each looked for by itself."""

LOOK, LOOK_BYTES = 250, 1 << 20
"""What a purge by key reads at once, and the bytes of what one call of it deletes: others are answered in between."""

HOLD_FOR_HISTORY_MS = 3_600_000
"""How long the history may keep a removed message from going physically."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Messages and bytes that are no longer visible.

    Attributes:
        ended: the removal that became final before its time, so that this one can be undone; 0: none did.
        finals: the removals that became final, whole or below it, by what went for good.
    """

    messages: int
    bytes: int
    ended: int = 0
    finals: tuple[int, ...] = ()

    def __add__(self, more: "Removed") -> "Removed":
        return Removed(
            self.messages + more.messages,
            self.bytes + more.bytes,
            self.ended or more.ended,
            self.finals + more.finals,
        )


def purge(stream_id: str, *, below: int | None = None, keep: int | None = None) -> Op[Removed]:
    """Remove by hand everything below an offset, or all but the newest ``keep``, or everything.

    Works in slices, so nobody else waits long; a purge that is interrupted has removed the oldest part. Offsets
    go on and the committed offset stays (the streams guide, "Deleting messages"). What is over by its own time is
    neither kept nor counted.

    Raises:
        StreamNotFound, StreamSealed, OperationDenied: nothing was removed.
    """
    yield from expire(stream_id)
    if below is not None:
        removed = yield from _raise_floor(stream_id, "below", below)
    else:
        removed = yield from _raise_floor(stream_id, "keep", keep or 0)
    with suppress(LogError):  # it is gone for everybody; the worker goes on where this ends
        yield from drop(stream_id)
    return removed


def apply_limits(stream_id: str) -> Op[Removed]:
    """Hide what the stream's limits no longer allow, after what is over by its own time: it makes room first.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    return (yield from _raise_floor(stream_id, "limits", 0))


def due(stream_ids: Sequence[str]) -> Op[list[str]]:
    """The streams that have to be tended, and those of which that cannot be told; one round trip for all."""
    if not stream_ids:
        return []
    replies = yield Scripts([_look(stream_id) for stream_id in stream_ids])
    return [stream_id for stream_id, reply in zip(stream_ids, replies, strict=True) if reply != 0]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Entries physically removed, how many of them the history did not get in time, and whether all went that may.

    Attributes:
        left: entries that are there and seen by nobody.
    """

    entries: int
    missed: int
    is_done: bool = True
    left: int = field(default=0, compare=False)


def drop(
    stream_id: str, *, hold_ms: int | None = None, until_s: float = math.inf, times: int = 1
) -> Op[Dropped]:
    """Physically remove what is invisible: what was purged and what the history has at once, the rest after a wait.

    What the history did not get in time is also counted for good (``stats.State.missed``).

    Args:
        hold_ms: how long a message waits for the history at most, counted from when it has to; None is
            ``HOLD_FOR_HISTORY_MS``. It waits for eleven twelfths of that at least.
        until_s: as of ``expire_some``.
        times: each call works so many times as long as usual, which everybody else waits for.
    """
    yield from spent.retire_before_removal(stream_id)
    entries_ = missed = 0
    counted: int | str = ""
    while True:
        removed, done, unseen, left = yield Script(
            "drop",
            [
                *keys.removing(stream_id),
                keys.aside(stream_id),
                keys.expiry(stream_id),
                keys.removals(stream_id),
            ],
            [HOLD_FOR_HISTORY_MS if hold_ms is None else hold_ms, counted, times],
        )
        if done < 0:
            counted = yield from losses.settle(stream_id)
            continue
        if unseen:
            yield Script("touch", [keys.TOUCHED], [stream_id])
        entries_, missed = entries_ + removed, missed + unseen
        if done or time.monotonic() >= until_s:
            return Dropped(entries_, missed, is_done=bool(done), left=left)


def keep_newest_of_keys(stream_id: str, *, until_s: float = math.inf) -> Op[tuple[Removed, bool]]:
    """Apply ``max_messages_per_key`` to what was there before it was set; a publish takes care of what comes after.

    Goes on where it, or a process that has ended, stopped, in calls of milliseconds. On a full server it stops at once.

    Args:
        until_s: as of ``expire_some``.

    Returns:
        What went now, and whether all has been looked through.
    """
    yield from spent.retire_before_removal(stream_id)
    messages = size = 0
    while True:
        try:
            went, is_done = yield from push_out_some(stream_id)
        except StoreFull:  # the index by key has no room; what else removes messages makes some
            return Removed(messages, size), False
        messages, size = messages + went.messages, size + went.bytes
        if is_done or time.monotonic() >= until_s:
            return Removed(messages, size), is_done


def push_out_some(stream_id: str) -> Op[tuple[Removed, bool]]:
    """One call of it, for who has just begun it.

    Raises:
        StoreFull: it did nothing.
    """
    messages, size, done = yield Script("per_key", [*keys.removing(stream_id), keys.expiry(stream_id)])
    return Removed(messages, size), bool(done)


def release(stream_id: str, *, pages: int | None = None) -> Op[tuple[Removed, bool]]:
    """Take away what no group wants any more, where messages are kept by interest.

    Args:
        pages: of ``PAGE`` messages, at most so many; None goes on to the end.

    Returns:
        What went now, and whether all has been looked at.
    """
    messages = size = seen = 0
    before: list[bytes] | None = None
    while True:
        names = sorted((yield ("SMEMBERS", keys.groups(stream_id))))
        of_groups = [
            make(stream_id, name.decode())
            for name in names
            for make in (keys.group, keys.pending, keys.parked, keys.ready, keys.runs)
        ]
        went, went_bytes, done = yield Script(
            "release",
            [*keys.removing(stream_id), keys.kept(stream_id), keys.groups(stream_id), *of_groups],
            [PAGE, *names],
        )
        messages, size, seen = messages + went, size + went_bytes, seen + 1
        # The same names again: a group is listed and not there.
        if done == 1 or seen == pages or (done < 0 and names == before):
            return Removed(messages, size), done == 1
        before = names if done < 0 else None


def expire(stream_id: str) -> Op[int]:
    """Take away messages whose own time to live is over, in calls of milliseconds; returns how many expired now."""
    return (yield from expire_some(stream_id, until_s=math.inf)).messages


@dataclass(frozen=True, slots=True)
class Expired:
    """Messages that expired, whether none is left that is over, and where one is for how long it has been."""

    messages: int
    is_done: bool
    late_ms: int


def expire_some(stream_id: str, *, until_s: float) -> Op[Expired]:
    """The same for a while.

    Args:
        until_s: begin no further call then, by ``time.monotonic``; the next one goes on.
    """
    yield from spent.retire_before_removal(stream_id)
    total: int = 0
    while True:
        expired, done, late_ms = yield Script(
            "expire",
            [*keys.removing(stream_id), keys.expiry(stream_id)],
        )
        total += expired
        if done or time.monotonic() >= until_s:
            return Expired(total, bool(done), late_ms)


def expire_before_limits(stream_ids: Iterable[str]) -> Op[None]:
    """Take away what is over by its own time before other limits hold: nothing that may stay goes in its place."""
    asked = list(stream_ids)
    timed = (yield Pipeline([("EXISTS", keys.expiry(each)) for each in asked])) if asked else []
    for stream_id, is_timed in zip(asked, timed, strict=True):
        if is_timed:
            with suppress(
                StreamNotFound, StreamLost, Damaged
            ):  # it has gone meanwhile, or says itself what is wrong
                yield from expire(stream_id)


def delete(
    stream_id: str, offsets: Sequence[int], *, denied_by: str = "deny_delete", at_once: int = DELETE_SLICE
) -> Op[Removed]:
    """Delete single messages; offsets that hold none are passed over.

    Args:
        denied_by: the one-way switch that forbids it, ``deny_delete`` or, as part of a purge, ``deny_purge``.
        at_once: so many in one call.

    Raises:
        StreamNotFound, StreamSealed, OperationDenied: nothing was removed.
        DoneInPart: by one of these, or because the store went away, after some of them were.
    """
    yield from spent.retire_before_removal(stream_id)
    messages = size = 0
    for slice_ in _slices(offsets, at_once):
        part = Script("delete", [*keys.removing(stream_id), keys.expiry(stream_id)], [denied_by, *slice_])
        try:
            went = yield part
        except LogError as why:
            if messages:
                raise DoneInPart(why, messages, size) from None
            raise
        messages, size = messages + went[0], size + went[1]
    return Removed(messages, size)


@dataclass(frozen=True, slots=True)
class Matching:
    """The offsets of messages that are wanted, and how many of them one call may delete."""

    offsets: list[int]
    at_once: int

    def parts(self, size: int) -> "list[Matching]":
        """The same in parts of at most ``size`` messages; one where there are none."""
        return [Matching(list(part), self.at_once) for part in _slices(self.offsets, size)] or [self]


def purge_found(stream_id: str, found: Matching) -> Op[Removed]:
    """Remove by hand what ``matching`` found; errors as ``delete``."""
    return (yield from delete(stream_id, found.offsets, denied_by="deny_purge", at_once=found.at_once))


def matching(
    stream_id: str,
    wanted: read.Wanted,
    *,
    below: int | None = None,
    keep: int | None = None,
) -> Op[Matching]:
    """The messages that are wanted: those below an offset, or all but the newest ``keep`` of them; for a purge of them.

    Nobody waits longer for a look than for a small batch.

    Raises:
        StreamNotFound, StreamSealed, OperationDenied: before the search.
    """
    yield from delete(stream_id, [0], denied_by="deny_purge")  # refused before a long search, not after it
    at = yield from read.position(stream_id)
    found: list[int] = []
    start, look = at.floor, at.page(LOOK, LOOK_BYTES)
    while True:
        scan = read.Scan(until_s=0)  # one look: what was found is not held with its bodies
        page = yield from read.forward(
            stream_id, at, start, look, stop=below, wanted=wanted, scan=scan, look=look
        )
        found += [entries.position(entry)[0] for entry in page]
        if scan.stopped_at is not None:
            start = scan.stopped_at
        elif page:
            start = found[-1] + 1
        else:
            break
    if keep:
        found = found[:-keep]
    return Matching(found, at.page(DELETE_SLICE, LOOK_BYTES))


def _look(stream_id: str) -> Script:
    made = (keys.log, keys.meta, keys.gone, keys.latest, keys.went, keys.expiry, keys.kept, keys.removals)
    return Script("due", [make(stream_id) for make in made])


def _raise_floor(stream_id: str, mode: str, value: int) -> Op[Removed]:
    messages, size = yield Script(
        "trim",
        [*keys.removing(stream_id), keys.expiry(stream_id)],
        [mode, value],
    )
    return Removed(messages, size)


def _slices(offsets: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (offsets[n : n + size] for n in range(0, len(offsets), size))
