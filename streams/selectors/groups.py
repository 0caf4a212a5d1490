"""Consumer groups: their rows together with how they stand in the log."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from streams import health, store
from streams.edges import nearest_ms
from streams.errors import group_not_found
from streams.health import Health
from streams.log import healths, keys, lag, open_polls, pending, standing, stats
from streams.log.client import Op, Reachable, one
from streams.log.errors import Damaged, GroupNotFound, StoreUnavailable, StreamNotFound
from streams.log.pending import InFlight, Wanted
from streams.log.standing import GroupState
from streams.log.together import together
from streams.models import Group, Stream
from streams.selectors.silences import Sampling, sampling
from streams.selectors.times import moment
from streams.verdicts import Verdict

AT_ONCE = 100
"""Groups in one round trip: nobody else waits for more than some milliseconds."""

SPENT_LOOKED_AT = 100_000
"""Messages in flight that are looked at, before it is said that not all were."""

QUIET_MS = 60_000
"""A group that has neither fetched nor answered for so long is not being worked on."""


MemberState = Literal["active", "idle", "silent"]
"""``active``: it has messages in flight; ``idle``: none, and fetched or answered within the last minute; ``silent``: it
has some, and has neither fetched nor answered for longer than its delivery lasts, a minute at least.
"""


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer that works for a group; ``ack_rate`` as of ``pending.Member``."""

    name: str
    ack_pending: int
    ack_rate: float | None
    last_active: datetime | None
    state: MemberState


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group's row and how it stands.

    Attributes:
        waiting: open polls.
        members: consumers with messages in flight, or active within the last minute, by name.
        watched: what the worker found when it looked last; None when it has not yet.
        seen: when the worker sampled last.
    """

    group: Group
    state: GroupState
    waiting: int
    members: list[Member]
    watched: Health | None
    seen: Sampling

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest message that is not acknowledged; 0 when all are."""
        if self.state.oldest_ms is None or not (self.state.lag or self.state.ack_pending):
            return 0.0
        return max(0.0, (self.state.now_ms - self.state.oldest_ms) / 1000)

    @property
    def unfetched_ms(self) -> int:
        """How long ago the last fetch ended or, where there was none, the group was made; 0 while a poll is open."""
        if self.waiting:
            return 0
        # Differences of the steady clock; a group made before it was noted is taken for one made when its row was.
        made_ms = self.state.made_ms or int(self.group.created_at.timestamp() * 1000)
        return max(0, self.state.steady_ms - max(self.state.fetched_ms or 0, made_ms))

    @property
    def edge_seconds(self) -> float | None:
        """Until a limit of the stream takes the oldest message that is not acknowledged, by count and bytes at the rate
        of the last minutes; None where nothing threatens it.
        """
        if not (self.state.lag or self.state.ack_pending):
            return None
        edge_ms = nearest_ms(self.state, self.watched.samples if self.watched else [])
        return None if edge_ms is None else edge_ms / 1000

    @property
    def paused_until(self) -> datetime | None:
        until_ms = self.state.paused_until_ms
        return moment(until_ms) if until_ms is not None and until_ms > 0 else None

    @property
    def health(self) -> Verdict:
        """How the group is doing over the last minutes, as the worker judged it (see ``streams.health``).

        Unknown when it has not looked for a while at a group that has something to do.
        """
        watched = self.watched
        return health.told(
            (watched.verdict, watched.samples[-1]) if watched else None,
            now_ms=self.state.steady_ms,
            is_at_rest=not self.state.lag and not self.state.ack_pending,
            is_paused=self.state.paused_until_ms is not None,
            silent_ms=self.seen.silent_ms or 0,
            generation=self.state.generation,
        )

    @property
    def status(self) -> str:
        """``paused``, ``stalled`` (something to do and nobody does it), ``lagging``, ``idle`` or ``ok``.

        It is told of this moment; the verdict over the last minutes says whether a lag is one to speak of.
        """
        quiet_ms = self.state.quiet_ms
        is_quiet = not self.waiting and (quiet_ms is None or quiet_ms > QUIET_MS)
        if self.state.paused_until_ms is not None:
            return "paused"
        if not self.state.lag and not self.state.ack_pending:
            return "idle" if is_quiet else "ok"
        if is_quiet or self.health.status in {"stopped", "stalled"}:
            return "stalled"
        # A verdict that is too old for what waits now is unknown.
        return "lagging" if self.state.lag and self.health.status != "ok" else "ok"


def group_views(groups_: Iterable[Group]) -> list[GroupView]:
    """Groups with their streams, and how they stand; those that the log no longer has are left out, and damaged ones.

    It costs some round trips for each hundred of them.

    Raises:
        StoreUnavailable: a server that holds some of them does not answer, or lost them and they are not there again.
    """
    return _views(groups_)[0]


def _views(groups_: Iterable[Group]) -> tuple[list[GroupView], list[tuple[Group, Damaged]]]:
    """As ``group_views``, and the groups that are damaged, with why."""
    wanted, log = list(groups_), store.log()
    if not wanted:
        return [], []
    polls, seen = log.run(open_polls.counted()), sampling()
    found: list[GroupView] = []
    damaged: list[tuple[Group, Damaged]] = []
    for first in range(0, len(wanted), AT_ONCE):
        part = wanted[first : first + AT_ONCE]
        views = log.run(together([_view(group, polls, seen) for group in part]))
        for group, view in zip(part, views, strict=True):
            if isinstance(view, GroupView):
                found.append(view)
            elif isinstance(view, StreamNotFound):
                _demand_not_lost(group.stream.stream_id)
            elif isinstance(view, Damaged):
                damaged.append((group, view))
            elif not isinstance(view, GroupNotFound):
                raise view
    return found, damaged


def _demand_not_lost(stream_id: str) -> None:
    """Of a stream in memory it is another thing that its server has lost it than that it was deleted."""
    if keys.in_memory(stream_id):
        with contextlib.suppress(StreamNotFound):
            store.log().run(stats.inspect(stream_id))


def reachable_views(groups_: Iterable[Group], *, with_memory: bool = True) -> list[GroupView]:
    """As ``group_views``; groups of streams in memory, or on a node of a cluster, are left out while that is away.

    Args:
        with_memory: whether the server of the streams in memory is asked at all.
    """
    return views_and_away(groups_, with_memory=with_memory)[0]


def views_and_away(
    groups_: Iterable[Group], *, with_memory: bool = True
) -> tuple[list[GroupView], list[Group]]:
    """As ``reachable_views``, and the groups that are left out as their server is away or what it holds is damaged."""
    wanted = list(groups_)
    there = set(store.log().run(one(Reachable([group.stream.stream_id for group in wanted]))))
    away = [group for group in wanted if group.stream.stream_id not in there]
    wanted = [group for group in wanted if group.stream.stream_id in there]
    in_memory = [group for group in wanted if keys.in_memory(group.stream.stream_id)]
    views, damaged = _views(group for group in wanted if not keys.in_memory(group.stream.stream_id))
    away += [group for group, _ in damaged]
    if not with_memory:
        return views, away
    try:
        views += group_views(in_memory)
    except StoreUnavailable:
        away += in_memory
    return views, away


def _view(group: Group, polls: Mapping[tuple[str, str], int], seen: Sampling) -> Op[GroupView]:
    stream_id = group.stream.stream_id
    state = yield from standing.inspect(stream_id, group.name)
    kept = yield from healths.one(stream_id, group.name)
    members = yield from pending.members(stream_id, group.name)
    return GroupView(
        group,
        state,
        polls.get((stream_id, group.name), 0),
        [
            Member(
                name,
                held.messages,
                held.ack_rate,
                moment(held.active_ms),
                member_state(held, now_ms=state.now_ms, longest_s=max(group.ack_wait, *group.backoff, 0)),
            )
            for name, held in sorted(members.items())
        ],
        health.read(kept),
        seen,
    )


def member_state(held: pending.Member, *, now_ms: int, longest_s: float) -> MemberState:
    """How a consumer is doing.

    Args:
        now_ms: unix ms of the store.
        longest_s: so long a delivery lasts at most, unless its consumer says that it works on it.
    """
    if not held.messages:
        return "idle"
    return "silent" if now_ms - held.active_ms > max(QUIET_MS, longest_s * 1000) else "active"


def delivered_again(view: GroupView) -> pending.Again:
    """How many messages each consumer has out for the second time or more; a bounded look."""
    if not view.state.redelivered or not view.state.ack_pending:
        return pending.Again({}, True)
    return store.log().run(pending.again(view.group.stream.stream_id, view.group.name))


def passed_in(group: Group, spans: Iterable[tuple[int, int]], *, waiting: bool = True) -> int:
    """How many messages that a group takes are stored in spans of offsets.

    Args:
        spans: the first offset of each, and the first behind it.
        waiting: with those that wait there for their key.
    """
    log, stream_id, count = store.log(), group.stream.stream_id, 0
    for low, high in spans:
        count += log.run(lag.matching_count(stream_id, low, high, group.filter_keys))
        if not waiting:
            count -= log.run(lag.parked(stream_id, group.name, below=high))
            count += log.run(lag.parked(stream_id, group.name, below=low))
    return count


def spent_by(group: Group, *, max_deliver: int) -> pending.Spent:
    """Which messages in flight become dead letters, unless they are answered in time, under fewer deliveries.

    What becomes one under the deliveries that the group is set to now is not among them.

    Args:
        max_deliver: as it would be, -1 for no limit.
    """
    held = group.max_deliver
    if max_deliver == -1 or max_deliver >= held != -1:
        return pending.Spent({}, True)
    spent = pending.spent(
        group.stream.stream_id,
        group.name,
        least=max_deliver,
        below=None if held == -1 else held,
        most=SPENT_LOOKED_AT,
    )
    return store.log().run(spent)


def group_positions(stream: Stream, *, limit: int = 50) -> list[tuple[str, int]]:
    """Name and last delivered offset of a stream's first groups by name: a look that costs as good as nothing."""
    names = list(Group.objects.filter(stream=stream).order_by("name").values_list("name", flat=True)[:limit])
    found = store.log().run(standing.positions(stream.stream_id, names))
    return [(name, offset) for name, offset in zip(names, found, strict=True) if offset is not None]


def group_view(group: Group) -> GroupView:
    """One group, and how it stands.

    Raises:
        Refusal: ``group_not_found`` when the log no longer has it.
        Damaged: what the log holds of it cannot be read.
    """
    found, damaged = _views([group])
    for _, error in damaged:
        raise error
    if not found:
        raise group_not_found(group.name)
    return found[0]


def in_flight(
    group: Group, *, wanted: Wanted | None = None, start: int = 0, limit: int = 100
) -> tuple[list[InFlight], int | None]:
    """A page of what a group has in flight, in offset order, and the offset that the next one begins at."""
    log = store.log()
    return log.run(pending.page(group.stream.stream_id, group.name, start=start, limit=limit, wanted=wanted))
