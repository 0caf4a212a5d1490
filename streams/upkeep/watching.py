"""Watching the groups: every ten seconds a sample of each that has something to do, and what follows from it.

A group at rest costs next to nothing: it is looked at when its stream changes, and before what is known of it ends.
"""

import asyncio
import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streams import health, verdicts
from streams.edges import nearest_ms
from streams.health import Health
from streams.log import healths, latency, open_polls, pending, spent, standing, trails
from streams.log.append import append
from streams.log.client import AsyncLog
from streams.log.entries import NewMessage
from streams.log.errors import Damaged, GroupNotFound, StoreFull, StoreUnavailable, StreamNotFound
from streams.log.group_meta import Counters
from streams.log.keys import GroupName
from streams.log.standing import GroupState
from streams.log.trails import Looked, Point
from streams.verdicts import Sample

AT_ONCE = 100
MINUTE_MS = 60_000

ALL_EVERY_S = healths.KEPT_S / 4
"""Every group is looked at in so long: what is known of one at rest would end otherwise, and it would be unknown."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A group after a look at it.

    Attributes:
        ack_ms: ms from publish to acknowledgement → how many messages it ever acknowledged after so long.
        is_changed: whether it is in another status than at the look before.
    """

    stream_id: str
    name: str
    state: GroupState
    health: Health
    ack_ms: Mapping[int, int] = field(default_factory=dict)
    is_changed: bool = False


class Watch:
    """Remembers which groups have something to do; what is known of each is in the store, so a new worker goes on.

    Args:
        every_s: between two looks.
        all_every_s: between two looks at all groups.
    """

    def __init__(
        self, log: AsyncLog, *, every_s: float = verdicts.EVERY_MS / 1000, all_every_s: float = ALL_EVERY_S
    ) -> None:
        self._log, self._every_s, self._all_every_s = log, every_s, all_every_s
        self._changed: set[str] = set()
        self._fresh: set[str] = set()
        self._named: dict[str, list[str]] = {}
        self._awake: set[tuple[str, str]] = set()
        self._damaged: dict[GroupName, Damaged] = {}
        self._looked = self._looked_at_all = float("-inf")

    def changed(self, stream_ids: Iterable[str]) -> None:
        """Note which streams changed; their groups are looked at next time."""
        self._fresh.update(stream_ids)

    async def retire(self, stream_ids: Iterable[str]) -> dict[GroupName, Counters]:
        """Make dead letters of what is spent, in every group that has something to do or whose stream changed.

        Args:
            stream_ids: all streams that can be reached.

        Returns:
            The counters of all these groups.
        """
        there = set(stream_ids)
        fresh = sorted(self._take_fresh() & there)
        self._named |= await self._log.run(standing.names_of(fresh))
        groups = {each for each in self._awake if each[0] in there} | {
            (each, name) for each, names in self._named.items() if each in there for name in names
        }
        return await self._log.run(spent.retire_these(groups))

    async def look(self, stream_ids: Iterable[str], *, away: Collection[str] = ()) -> list[Watched]:
        """Sample the groups whose turn it is; empty until ten seconds have passed.

        Args:
            stream_ids: all streams that can be reached; at first, and every ``all_every_s``, each of them is asked for
                its groups.
            away: the others, whose groups are left for when they can be.
        """
        if time.monotonic() - self._looked < self._every_s:
            return []
        self._looked = time.monotonic()
        there = set(stream_ids)
        self._take_fresh()
        is_for_all = self._looked - self._looked_at_all >= self._all_every_s
        asked = there if is_for_all else self._changed & there
        found = await self._log.run(standing.names_of(sorted(asked)))
        left = {each for each in self._awake if each[0] in away}
        wanted = sorted(
            (self._awake - left) | {(each, name) for each, names in found.items() for name in names}
        )
        polls = await self._log.run(open_polls.counted())
        watched: list[Watched] = []
        self._damaged = {}
        for first in range(0, len(wanted), AT_ONCE):
            part = wanted[first : first + AT_ONCE]
            looks = (self._one(*each, polls=polls.get(each, 0)) for each in part)
            watched += [each for each in await asyncio.gather(*looks) if each is not None]
        if changed := [each.state.steady_ms for each in watched if each.is_changed]:
            await self._log.run(healths.change(at_ms=max(changed)))
        self._awake = left | {(each.stream_id, each.name) for each in watched if not each.health.is_settled}
        self._awake |= self._damaged.keys()
        self._changed, self._named = self._changed & set(away), {}
        if is_for_all:
            self._looked_at_all = self._looked
        return watched

    @property
    def damaged(self) -> Collection[Damaged]:
        """What could not be read of groups in the last look; they are looked at again each time."""
        return self._damaged.values()

    @property
    def with_groups(self) -> set[str]:
        """The streams that changed since the last look and have groups, as ``retire`` found them."""
        return set(self._named)

    def _take_fresh(self) -> set[str]:
        """What changed since the last call; a look comes back to it."""
        fresh, self._fresh = self._fresh, set()
        self._changed |= fresh
        return fresh

    async def _one(self, stream_id: str, name: str, *, polls: int) -> Watched | None:
        try:
            state = await self._log.run(standing.inspect(stream_id, name))
            is_overdue = await self._log.run(
                pending.is_overdue_for_last(stream_id, name, now_ms=state.steady_ms)
            )
            await self._log.run(pending.members(stream_id, name))  # who is gone is forgotten
            held = await self._log.run(pending.held(stream_id, name, after_ms=state.steady_ms))
            ack_ms = await self._log.run(latency.acknowledged(stream_id, name))
            before = health.read(await self._log.run(healths.one(stream_id, name)))
            fresh = health.looked(before, sample_of(state, held=held, polls=polls, is_overdue=is_overdue))
            await self._log.run(healths.put(stream_id, name, health.written(fresh)))
        except (GroupNotFound, StreamNotFound):
            return None
        except Damaged as error:
            self._damaged[stream_id, name] = error
            return None
        is_changed = before is None or before.verdict.status != fresh.verdict.status
        return Watched(stream_id, name, state, fresh, ack_ms, is_changed)


def sample_of(state: GroupState, *, held: int, polls: int, is_overdue: bool = False) -> Sample:
    """What the engine needs of a group's state; ``is_overdue`` as ``pending.is_overdue_for_last`` says."""
    since_ms = state.made_ms or state.steady_ms
    is_at_rest = not state.lag and not state.ack_pending
    return Sample(
        at_ms=state.steady_ms,
        lag=state.lag,
        pending=state.ack_pending,
        held=held,
        floor=state.ack_floor,
        deliveries=state.deliveries,
        acked=state.acked,
        redelivered=state.redelivered,
        dead=state.dead_letters,
        removed=state.lost + state.unfinished,
        polls=polls,
        fetched_ms=state.fetched_ms or since_ms,
        acked_ms=state.acked_ms or 0,
        lag_ms=0 if is_at_rest or state.oldest_ms is None else max(0, state.now_ms - state.oldest_ms),
        edge_ms=None if is_at_rest else state.edge_ms,
        ttl_ms=state.ttl_ms,
        room_messages=None if is_at_rest else state.room_messages,
        max_messages=state.max_messages,
        room_bytes=None if is_at_rest else state.room_bytes,
        max_bytes=state.max_bytes,
        offset=state.offset,
        appended_bytes=state.appended_bytes,
        is_last_chance=state.is_last_chance or is_overdue,
        on_last=state.on_last,
        generation=state.generation,
        is_more_on_last=state.on_last >= standing.LAST_COUNTED,
        is_paused=state.paused_until_ms is not None,
    )


async def record(log: AsyncLog, metrics_stream_id: str, watched: Sequence[Watched], *, at_ms: int) -> None:
    """Append the samples to the trail of each group, and to the system's own stream; a full store takes none."""
    await _note_trails(log, watched)
    of_streams: dict[str, dict[str, Mapping[str, object]]] = {}
    for each in watched:
        if each.stream_id != metrics_stream_id:
            of_streams.setdefault(each.stream_id, {})[each.name] = _figures(each)
    if not of_streams:
        return
    body = json.dumps({"at": at_ms, "streams": {}, "groups": of_streams})
    try:
        await log.run(append(metrics_stream_id, [NewMessage(id=f"{at_ms}-groups", body=body.encode())]))
    except (StreamNotFound, StoreFull, StoreUnavailable):
        return


async def _note_trails(log: AsyncLog, watched: Sequence[Watched]) -> None:
    try:
        await log.run(trails.note({(each.stream_id, each.name): _trail(each.health) for each in watched}))
    except (StoreFull, StoreUnavailable):
        return


def _trail(watched: Health) -> Looked:
    """What the newest look adds to a group's trail: itself, and the highest of the minute that ended before it."""
    *before, last = watched.samples
    point = Point(last.at_ms, last.lag, last.lag_ms)
    if not before or before[-1].at_ms // MINUTE_MS == last.at_ms // MINUTE_MS:
        return Looked(point)
    ended = before[-1].at_ms // MINUTE_MS
    inside = [each for each in before if each.at_ms // MINUTE_MS == ended]
    highest = Point(before[-1].at_ms, max(each.lag for each in inside), max(each.lag_ms for each in inside))
    return Looked(point, highest)


def _figures(watched: Watched) -> Mapping[str, object]:
    state, sample = watched.state, watched.health.samples[-1]
    edge_ms = nearest_ms(sample, watched.health.samples)
    return {
        "made": state.made_ms,
        "delivered": state.delivered_offset,
        "deliveries": state.deliveries,
        "acked": state.acked,
        "ack_ms": watched.ack_ms,
        "lag": state.lag,
        "lag_seconds": round(sample.lag_ms / 1000, 3),
        "pending": state.ack_pending,
        "redelivered": state.redelivered,
        "dead": state.dead_letters,
        "dead_lettered": state.dead_lettered,
        "lost": state.lost,
        "status": watched.health.verdict.status,
        "edge": None if edge_ms is None else edge_ms / 1000,
        "quiet": 0.0
        if sample.polls
        else max(0, sample.at_ms - max(sample.fetched_ms, sample.acked_ms)) / 1000,
    }
