"""What failed and nobody has put right yet: runs of the history, and replays."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, F, Max, Min, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from streams.access import Caller, may_see
from streams.models import Replay, ReplayState, Run, Stream
from streams.models.history import RunState
from streams.selectors.replays import MOST_LOOKED_AT

ASKED = ("source", "target", "group", "from_offset", "to_offset", "since", "until", "key", "where")
"""Two replays that are alike in these are of the same messages to the same place."""


@dataclass(frozen=True, slots=True)
class FailingRuns:
    """The runs of a job that failed since the last that succeeded.

    Attributes:
        since: when the first of them failed.
        last: the id of the last of them.
        error: why that one did.
    """

    job: str
    count: int
    since: datetime
    last: int
    error: str


@dataclass(frozen=True, slots=True)
class FailingReplay:
    """A replay that failed, and the stream on whose page it can be started again or ended."""

    replay: Replay
    stream: str


def runs_failing() -> list[FailingRuns]:
    """The jobs of the history whose last run failed; none while the history is switched off."""
    if not settings.ENV.history:
        return []
    of_job = Run.objects.filter(job=OuterRef("job"), state=RunState.SUCCEEDED).order_by("-pk")
    failed = (
        Run.objects.filter(state=RunState.FAILED, finished_at__isnull=False)
        .annotate(succeeded=Coalesce(Subquery(of_job.values("pk")[:1]), 0))
        .filter(pk__gt=F("succeeded"))
    )
    found = failed.order_by("job").values("job").annotate(Count("pk"), Min("finished_at"), Max("pk"))
    if not found:
        return []
    last = Run.objects.in_bulk([each["pk__max"] for each in found])
    return [
        FailingRuns(run.job, each["pk__count"], each["finished_at__min"], run.pk, run.error)
        for each in found
        if (run := last.get(each["pk__max"]))
    ]


def replays_failing(caller: Caller) -> list[FailingReplay]:
    """The replays of a workspace that failed and that a caller may see, newest first: those that nobody started again,
    ended or asked for once more since, and that have a stream on whose page that can be done.
    """
    found = _failing(Replay.objects.filter(workspace=caller.workspace))
    return [each for each in found if may_see(caller, each.replay)]


def replays_failing_counts(caller: Caller) -> Counter[tuple[int, str]]:
    """Workspace and stream → how many of ``replays_failing`` stand on its page; of all workspaces for who rules them
    all.
    """
    if caller.rules_all:
        found = _failing(Replay.objects.all())
    else:
        found = replays_failing(caller)
    return Counter((each.replay.workspace_id, each.stream) for each in found)


def _failing(replays: QuerySet[Replay]) -> list[FailingReplay]:
    if not replays.filter(state=ReplayState.FAILED).exists():  # the look is cheap, and mostly all
        return []
    newest = replays.exclude(state=ReplayState.CANCELLED).order_by("-pk")[:MOST_LOOKED_AT]
    failed = [each for each in _last_asked(newest) if each.state == ReplayState.FAILED]
    names = {name for each in failed for name in (each.source, each.target)}
    held = set(Stream.objects.filter(name__in=names).values_list("workspace_id", "name"))
    return [
        FailingReplay(each, pages[0])
        for each in failed
        if (pages := [name for name in (each.source, each.target) if (each.workspace_id, name) in held])
    ]


def _last_asked(newest: Iterable[Replay]) -> list[Replay]:
    """Of those that are alike the first."""
    found: dict[Hashable, Replay] = {}
    for each in newest:
        found.setdefault((each.workspace_id, *(getattr(each, name) for name in ASKED)), each)
    return list(found.values())
