"""The group of each stream that is doing worst, for lists: one read a group, of what the worker found."""

from collections.abc import Sequence
from dataclasses import dataclass

from streams import health, store
from streams.health import Verdict
from streams.log import standing
from streams.log.client import Op
from streams.log.commands import Steady
from streams.models import Group, Stream

WORST_FIRST = ("losing", "poisoned", "stopped", "stalled", "slow", "unknown", "catching up", "paused", "ok")
STALE_MS = 3 * health.EVERY_MS
MOST = 1000
"""Groups that are looked at for one list; the others have no word."""


@dataclass(frozen=True, slots=True)
class WorstGroup:
    """A group's name, the verdict on it, and the age of its oldest message not acknowledged (None: not known)."""

    name: str
    verdict: Verdict
    lag_seconds: float | None


def worst_groups(streams: Sequence[Stream]) -> dict[int, WorstGroup]:
    """By the stream's key; streams without a group are left out. A group that was never watched is unknown."""
    ids = {stream.pk: stream.stream_id for stream in streams}
    names = list(
        Group.objects.filter(stream__in=ids).order_by("name").values_list("stream_id", "name")[:MOST]
    )

    def op() -> Op[tuple[int, list[bytes | None]]]:
        now_ms: int = yield Steady()
        return now_ms, (yield from standing.healths_of([(ids[pk], name) for pk, name in names]))

    if not names:
        return {}
    now_ms, kept = store.log().run(op())
    found: dict[int, WorstGroup] = {}
    for (pk, name), held in zip(names, kept, strict=True):
        group = _told(name, held, now_ms=now_ms)
        if pk not in found or _badness(group) < _badness(found[pk]):
            found[pk] = group
    return found


def _told(name: str, held: bytes | None, *, now_ms: int) -> WorstGroup:
    watched = health.read(held)
    if watched is None:
        return WorstGroup(name, Verdict("unknown", "Not watched for long enough to tell."), None)
    last = watched.samples[-1]
    if not last.is_at_rest and now_ms - last.at_ms > STALE_MS:
        return WorstGroup(name, Verdict("unknown", "The worker has not looked at this group lately."), None)
    return WorstGroup(name, watched.verdict, last.lag_ms / 1000)


def _badness(group: WorstGroup) -> tuple[int, float]:
    return WORST_FIRST.index(group.verdict.status), -(group.lag_seconds or 0)
