"""How streams stand: counters that the scripts keep anyway, read in one round trip."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from streams.log import damage, keys, meta, trim
from streams.log.client import Op, Pipeline, Reachable, Script, Scripts
from streams.log.errors import Damaged, StoreUnavailable, StreamLost, StreamNotFound, StreamSealed

EXACT_WITHIN_S, GLANCE_WITHIN_S = 2.0, 0.05
"""How long a look takes away what is over by its own time, so that its counts leave all of it out: one whose counts are
told, and one of the worker's many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a stream stands at one moment.

    Attributes:
        offset: last assigned, 0 if none ever was.
        first_offset: lowest visible; ``offset`` + 1 when the stream is empty.
        messages, bytes: visible ones, bytes of their bodies.
        committed_offset, lag: the committed position, and visible messages above it.
        first_ms: unix ms of the first visible message; None when empty.
        last_ms: unix ms of the newest message, also when that one has gone since; None when empty.
        keys_count: keys whose newest message is still stored, be it only for the history or an undo.
        duplicates: publishes refused as already known.
        archived_offset: everything up to it is in the history.
        appended_bytes: bytes of everything ever appended.
        by_hand_messages, by_hand_bytes: what people took away and did not bring back.
        limit_pending: messages that a limit a key, set on what was there, has yet to look at; 0: all limits hold.
        missed: messages that retention removed before the history had them.
    """

    offset: int
    first_offset: int
    messages: int
    bytes: int
    committed_offset: int
    lag: int
    first_ms: int | None
    last_ms: int | None
    keys_count: int
    duplicates: int
    archived_offset: int
    appended_bytes: int
    by_hand_messages: int
    by_hand_bytes: int
    limit_pending: int
    missed: int

    @property
    def by_retention_messages(self) -> int:
        """Messages that retention has removed in all: what is gone, less what people took away."""
        return self.offset - self.messages - self.by_hand_messages


EMPTY = State(
    offset=0,
    first_offset=1,
    messages=0,
    bytes=0,
    committed_offset=0,
    lag=0,
    first_ms=None,
    last_ms=None,
    keys_count=0,
    duplicates=0,
    archived_offset=0,
    appended_bytes=0,
    by_hand_messages=0,
    by_hand_bytes=0,
    limit_pending=0,
    missed=0,
)


def inspect(stream_id: str) -> Op[State]:
    """How one stream stands, what has just expired already left out.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    found = {stream_id: (yield _inspection(stream_id))}
    yield from _note_expired(found, within_s=EXACT_WITHIN_S)
    return _state(found[stream_id])


def inspect_many(
    stream_ids: Sequence[str], *, within_s: float = GLANCE_WITHIN_S, strict: bool = False
) -> Op[dict[str, State]]:
    """How several streams stand, in one round trip; those that are gone are left out.

    So are those that are damaged, those in memory while their server does not answer or has lost them, and those on a
    node of a cluster that is away; that is an error with ``strict``.

    Args:
        within_s: how long what is over by its own time may be taken away first, in all, where much is.
    """
    if not strict:
        stream_ids = yield Reachable(stream_ids)
    if not stream_ids:
        return {}
    replies = yield Scripts([_inspection(stream_id) for stream_id in stream_ids])
    found: dict[str, list[int]] = {}
    for stream_id, reply in zip(stream_ids, replies, strict=True):
        is_left_out = isinstance(reply, Damaged) and not strict
        if isinstance(reply, StoreUnavailable) and not keys.in_memory(stream_id) and not is_left_out:
            raise reply
        if not isinstance(reply, StreamNotFound | StoreUnavailable):
            found[stream_id] = reply
    yield from _note_expired(found, within_s=within_s)
    return {stream_id: _state(reply) for stream_id, reply in found.items()}


class Figures(msgspec.Struct, frozen=True, gc=False):
    """How a stream stood when a script counted last; what has expired since is still in it, at most 20 s long.

    Attributes:
        messages, bytes: visible ones, bytes of their bodies.
        lag: visible messages above the committed offset, single deletions among them not taken off.
        last_ms: unix ms of the last message, None when empty.
    """

    messages: int
    bytes: int
    lag: int
    last_ms: int | None


NONE = Figures(0, 0, 0, None)
"""Those of an empty stream."""


def figures(stream_ids: Sequence[str]) -> Op[list[Figures]]:
    """The figures of many streams, one plain read each and together, in their order; zeros for one that is gone
    and for those in memory while their server does not answer.

    For sums and for the order of a list; what is shown of one stream comes from ``inspect``.
    """
    counted = yield from meta.counters_at_once(stream_ids)
    return [_figures(counters) if counters.messages else NONE for counters in counted]


def _figures(counters: meta.Counters) -> Figures:
    above = counters.last - max(counters.committed, counters.floor - 1)
    return Figures(counters.messages, counters.bytes, max(0, min(above, counters.messages)), counters.last_ms)


class Counted(msgspec.Struct, frozen=True, gc=False):
    """How a stream stands in what a monitoring system and the worker ask for; each as in ``State``.

    Attributes:
        first_ms: only where it had to be looked at closely.
        is_bounded: whether there is a limit, or something that waits for the history, for the worker to look after.
    """

    offset: int
    first_offset: int
    messages: int
    bytes: int
    committed_offset: int
    lag: int
    duplicates: int
    archived_offset: int
    appended_bytes: int
    missed: int
    by_retention_messages: int
    last_ms: int | None
    first_ms: int | None = None
    is_bounded: bool = True


def counted(stream_ids: Sequence[str]) -> Op[dict[str, Counted]]:
    """How many streams stand: by their counters where these say it all, and looked at closely where they do not, which
    is where messages go by time or from between others. Left out are the same as by ``inspect_many``.
    """
    # Those in memory are few, and their server may be away.
    closely = [stream_id for stream_id in stream_ids if keys.in_memory(stream_id)]
    durable = yield Reachable([stream_id for stream_id in stream_ids if not keys.in_memory(stream_id)])
    asked: list[tuple[str, ...]] = [("HMGET", keys.meta(stream_id), *meta.FIELDS) for stream_id in durable]
    asked += [("EXISTS", keys.expiry(stream_id)) for stream_id in durable]
    replies = (yield Pipeline(asked, apart=True)) if asked else []
    timed = dict(zip(durable, replies[len(durable) :], strict=True))
    found: dict[str, Counted] = {}
    for stream_id, known in damage.readable(durable, replies[: len(durable)], meta.read):
        if known is None:
            continue
        expires = timed[stream_id]
        settings, counters = known
        if expires or counters.removals or settings.get("ttl"):
            closely.append(stream_id)
        else:
            found[stream_id] = _counted(settings, counters)
    return found | (yield from _counted_closely(closely))


def counted_again(stream_ids: Sequence[str], before: Mapping[str, Counted]) -> Op[dict[str, Counted]]:
    """As ``counted``, with the time of the first message of each, which is looked for only where another is first
    than in ``before``.
    """
    found = yield from counted(stream_ids)
    unknown: list[str] = []
    for stream_id, now in found.items():
        if not now.messages or now.first_ms is not None:
            continue
        then = before.get(stream_id)
        if then is not None and then.first_offset == now.first_offset and then.first_ms is not None:
            found[stream_id] = msgspec.structs.replace(now, first_ms=then.first_ms)
        else:
            unknown.append(stream_id)
    looked = yield from _counted_closely(unknown)
    for stream_id in unknown:
        found.pop(stream_id)  # it may have gone meanwhile
    return found | looked


def _counted(settings: Mapping[str, Any], counters: meta.Counters) -> Counted:
    return Counted(
        counters.last,
        counters.floor,
        counters.messages,
        counters.bytes,
        counters.committed,
        counters.last - max(counters.committed, counters.floor - 1),
        counters.duplicates,
        counters.archived,
        counters.cum,
        counters.missed,
        counters.last - counters.messages - counters.by_hand,
        counters.last_ms if counters.messages else None,
        is_bounded=bool(counters.hidden or counters.held_since or counters.passed)
        or settings.get("retention") == "interest"
        or any(map(settings.get, ("ttl", "max_messages", "max_bytes", "max_messages_per_key"))),
    )


def _counted_closely(stream_ids: Sequence[str]) -> Op[dict[str, Counted]]:
    states = yield from inspect_many(stream_ids)
    return {
        stream_id: Counted(
            state.offset,
            state.first_offset,
            state.messages,
            state.bytes,
            state.committed_offset,
            state.lag,
            state.duplicates,
            state.archived_offset,
            state.appended_bytes,
            state.missed,
            state.by_retention_messages,
            state.last_ms,
            state.first_ms,
        )
        for stream_id, state in states.items()
    }


def limits_note(stream_ids: Sequence[str]) -> Op[None]:
    """Have these streams note what their limits take away now. One that cannot (full, disk failing) does it later."""
    if stream_ids:
        yield Scripts(
            [Script("trim", [*keys.removing(each), keys.expiry(each)], ["limits", 0]) for each in stream_ids]
        )


def _note_expired(replies: dict[str, list[int]], *, within_s: float) -> Op[None]:
    """Looking writes nothing itself, so that it goes on where the server refuses writes. Where very much is over it is
    taken away, and looked at again.
    """
    yield from limits_note([stream_id for stream_id, reply in replies.items() if reply[-1] == 1])
    until_s = time.monotonic() + within_s
    for stream_id in [stream_id for stream_id, reply in replies.items() if reply[-1] == 2]:
        with suppress(StreamNotFound, StreamLost, StoreUnavailable):
            yield from trim.expire_some(stream_id, until_s=until_s)
            replies[stream_id] = yield _inspection(stream_id)


def _inspection(stream_id: str) -> Script:
    return Script(
        "inspect",
        [
            keys.log(stream_id),
            keys.meta(stream_id),
            keys.gone(stream_id),
            keys.by_key(stream_id),
            keys.expiry(stream_id),
        ],
    )


def _state(reply: list[int]) -> State:
    last, last_ms, first, first_ms, messages, size, committed, lag, count, duplicates, archived, cum = reply[
        :12
    ]
    by_hand, by_hand_size, limit_pending, missed = reply[15:19]
    return State(
        offset=last,
        first_offset=first,
        messages=messages,
        bytes=size,
        committed_offset=committed,
        lag=lag,
        first_ms=first_ms if messages else None,
        last_ms=last_ms if messages else None,
        keys_count=count,
        duplicates=duplicates,
        archived_offset=archived,
        appended_bytes=cum,
        by_hand_messages=by_hand,
        by_hand_bytes=by_hand_size,
        limit_pending=limit_pending,
        missed=missed,
    )


def touch(stream_ids: Sequence[str]) -> Op[None]:
    """Tell the worker that these streams have changed."""
    yield Script("touch", [keys.TOUCHED], stream_ids)


def take_touched(limit: int) -> Op[list[str]]:
    """The streams that have changed since the last call, at most ``limit``."""
    found = yield ("SPOP", keys.TOUCHED, limit)
    return [stream_id.decode() for stream_id in found]


PROMISES = ("fsync", "window", "memory")
"""What ``durability`` can say, the strongest first."""


def durability(stream_id: str) -> Op[str]:
    """What a stream's server does with a write before it answers, as it is set at this moment.

    Returns:
        ``fsync`` (on disk before the answer), ``window`` (with ``everysec`` on disk within about a second, longer
        while the disk stalls; with ``no`` when the system writes it; with ``no-appendfsync-on-rewrite`` once a
        rewrite is done) or ``memory`` (may be lost at a restart). A
        server that does not tell is taken for the weakest.
    """
    try:
        _, appendonly, appendfsync, is_paused = yield Pipeline(
            [
                ("EXISTS", keys.meta(stream_id)),  # says which server is asked
                ("CONFIG", "GET", "appendonly"),
                ("CONFIG", "GET", "appendfsync"),
                ("CONFIG", "GET", "no-appendfsync-on-rewrite"),
            ]
        )
    except StoreUnavailable as error:
        if "CONFIG" in str(error) or "NOPERM" in str(error):
            return "memory"
        raise
    if appendonly[1:] != [b"yes"]:
        return "memory"
    # Set so, nothing is flushed while the file is rewritten, which may begin at any moment.
    return "fsync" if appendfsync[1] == b"always" and is_paused[1:] == [b"no"] else "window"


def takes_messages(stream_id: str) -> Op[None]:
    """Check that a stream is there and not sealed.

    Raises:
        StreamNotFound: it is not there (any more).
        StreamSealed: it is read-only.
    """
    held = meta.read((yield ("HMGET", keys.meta(stream_id), *meta.FIELDS)))
    if held is None:
        raise StreamNotFound
    if held[0].get("sealed"):
        raise StreamSealed
