"""How many groups are doing, for lists and totals: one read a group, of what the worker found."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from streams import health, store
from streams.access import Caller
from streams.log import healths
from streams.log.client import Op
from streams.log.commands import Steady
from streams.models import Group, Stream
from streams.selectors.silences import sampling
from streams.selectors.streams import streams_of
from streams.verdicts import Status, Verdict

WORST_FIRST: tuple[Status, ...] = (
    "losing",
    "poisoned",
    "stopped",
    "stalled",
    "slow",
    "unknown",
    "catching up",
    "paused",
    "ok",
)
MOST = 1000
"""Groups that are looked at for one list; the others have no word."""


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group's row and name, its stream's, the verdict on it, and what the worker saw last (None: not known).

    Attributes:
        lag_seconds: age of its oldest message not acknowledged.
        lag, pending, dead_letters: messages not delivered, out and not acknowledged, and dead.
    """

    pk: int
    name: str
    stream: str
    verdict: Verdict
    lag_seconds: float | None = None
    lag: int | None = None
    pending: int | None = None
    dead_letters: int | None = None


@dataclass(frozen=True, slots=True)
class GroupSums:
    """What some groups come to together, as far as it is known; the oldest message that any of them has to do.

    None where there are groups and nothing is known of any.
    """

    lag: int | None = 0
    pending: int | None = 0
    dead_letters: int | None = 0
    lag_seconds: float | None = 0.0


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """The groups that a caller may see.

    Attributes:
        total: how many there are.
        by_status: how many of them are in each status, the worst first; of the first ``MOST``.
        troubled: of the first ``MOST``, those that are losing, poisoned, stopped, stalled or slow, the worst first.
    """

    total: int
    by_status: Mapping[Status, int]
    troubled: Sequence[JudgedGroup]


def worst_groups(streams: Sequence[Stream]) -> dict[int, JudgedGroup]:
    """By the stream's key; streams without a group are left out. A group that was never watched is unknown."""
    return {pk: worst_of(groups) for pk, groups in groups_by_stream(streams).items()}


def groups_by_stream(streams: Sequence[Stream]) -> dict[int, list[JudgedGroup]]:
    """The groups of some streams, by the stream's key; streams without a group are left out."""
    found: dict[int, list[JudgedGroup]] = {}
    for pk, group in _judged(Group.objects.filter(stream__in=[stream.pk for stream in streams])):
        found.setdefault(pk, []).append(group)
    return found


def worst_of(groups: Iterable[JudgedGroup]) -> JudgedGroup:
    """The one that is doing worst, of one at least."""
    return min(groups, key=_badness)


def sums_of(groups: Iterable[JudgedGroup]) -> GroupSums:
    """Groups together."""
    given = list(groups)
    known = [each for each in given if each.lag is not None]
    if given and not known:
        return GroupSums(lag=None, pending=None, dead_letters=None, lag_seconds=None)
    return GroupSums(
        lag=sum(each.lag or 0 for each in known),
        pending=sum(each.pending or 0 for each in known),
        dead_letters=sum(each.dead_letters or 0 for each in known),
        lag_seconds=max((each.lag_seconds or 0.0 for each in known), default=0.0),
    )


def groups_of(caller: Caller) -> "QuerySet[Group]":
    """The groups of all streams that a caller may see, by name, then by their streams'."""
    return (
        Group.objects.filter(stream__in=streams_of(caller))
        .select_related("stream")
        .order_by("name", "stream__name")
    )


def groups_judged(groups: "QuerySet[Group]") -> list[JudgedGroup]:
    """Groups, the worst first: one read of each, and nothing closer."""
    return sorted((group for _, group in _judged(groups, most=None)), key=_badness)


def groups_of_streams(streams: "QuerySet[Stream]") -> dict[int, list[JudgedGroup]]:
    """All groups of many streams by the stream's key, the stream with the worst first, and in each its worst."""
    judged = _judged(Group.objects.filter(stream__in=streams), most=None)
    found: dict[int, list[JudgedGroup]] = {}
    for pk, group in sorted(judged, key=lambda each: _badness(each[1])):
        found.setdefault(pk, []).append(group)
    return found


def statuses_changed_ms() -> int:
    """When a group was last seen in another status than before, in steady ms; it differs once one is."""
    return store.log().run(healths.changed_ms())


def group_totals(caller: Caller) -> GroupTotals:
    """How all groups stand."""
    groups = Group.objects.filter(stream__in=streams_of(caller))
    judged = sorted((group for _, group in _judged(groups)), key=_badness)
    return GroupTotals(
        total=len(judged) if len(judged) < MOST else groups.count(),
        by_status=by_status(judged),
        troubled=[group for group in judged if _needs_someone(group)],
    )


def groups_with_dead_letters(caller: Caller) -> list[JudgedGroup]:
    """Those that had dead letters when they were sampled last, the most first; of the first ``MOST`` by name."""
    judged = [group for _, group in _judged(Group.objects.filter(stream__in=streams_of(caller)))]
    return sorted((each for each in judged if each.dead_letters), key=lambda each: -(each.dead_letters or 0))


def by_status(judged: Iterable[JudgedGroup]) -> dict[Status, int]:
    """How many groups are in each status, the worst first."""
    counts = Counter(group.verdict.status for group in judged)
    return {status: counts[status] for status in WORST_FIRST if counts[status]}


def _needs_someone(group: JudgedGroup) -> bool:
    return WORST_FIRST.index(group.verdict.status) < WORST_FIRST.index("unknown")


def _judged(groups: "QuerySet[Group]", *, most: int | None = MOST) -> list[tuple[int, JudgedGroup]]:
    """The key of its stream and what is known of it, of the first groups by name."""
    named = list(
        groups.order_by("name", "stream__name").values_list(
            "stream__pk", "stream__stream_id", "stream__name", "name", "pk"
        )[:most]
    )
    if not named:
        return []

    def op() -> Op[tuple[int, list[bytes | None]]]:
        now_ms: int = yield Steady()
        return now_ms, (yield from healths.many([(stream_id, name) for _, stream_id, _, name, _ in named]))

    now_ms, kept = store.log().run(op())
    silent_ms = sampling().silent_ms or 0
    return [
        (stream_pk, _told(pk, name, stream, held, now_ms=now_ms, silent_ms=silent_ms))
        for (stream_pk, _, stream, name, pk), held in zip(named, kept, strict=True)
    ]


def _told(pk: int, name: str, stream: str, held: bytes | None, *, now_ms: int, silent_ms: int) -> JudgedGroup:
    watched = health.read_brief(held)
    verdict = health.told(watched, now_ms=now_ms, silent_ms=silent_ms)
    if watched is None or verdict is not watched[0]:
        return JudgedGroup(pk, name, stream, verdict)
    last = watched[1]
    return JudgedGroup(
        pk,
        name,
        stream,
        verdict,
        last.lag_ms / 1000,
        lag=last.lag,
        pending=last.pending,
        dead_letters=last.dead,
    )


def _badness(group: JudgedGroup) -> tuple[int, float]:
    return WORST_FIRST.index(group.verdict.status), -(group.lag_seconds or 0)
