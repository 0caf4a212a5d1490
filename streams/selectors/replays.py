"""Replays of a workspace."""

from itertools import islice

from django.db.models import Q, QuerySet

from streams.access import Caller, may_see
from streams.models import Replay, ReplayState

MOST_LOOKED_AT = 500
FINISHED = (ReplayState.FAILED, ReplayState.SUCCEEDED, ReplayState.CANCELLED)
"""The states in which a replay has nothing to do, and waits for nobody."""


def replays_latest(caller: Caller, *, limit: int = 100) -> list[Replay]:
    """The newest replays that a caller may see."""
    newest = Replay.objects.filter(workspace=caller.workspace).order_by("-id")[:MOST_LOOKED_AT]
    return [each for each in newest if may_see(caller, each)][:limit]


def replays_unfinished(caller: Caller, *, stream: str) -> list[Replay]:
    """All replays of a stream, as source or target, that are under way or wait to be started; newest first."""
    found = _of_stream(caller, stream).exclude(state__in=FINISHED)
    return [each for each in found if may_see(caller, each)]


def replays_finished(
    caller: Caller, *, stream: str, before: int | None, limit: int
) -> tuple[list[Replay], bool]:
    """A page of the others, newest first, those before an id, and whether there are more."""
    found = _of_stream(caller, stream).filter(state__in=FINISHED)
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(islice((each for each in found.iterator() if may_see(caller, each)), limit + 1))
    return rows[:limit], len(rows) > limit


def _of_stream(caller: Caller, stream: str) -> QuerySet[Replay]:
    held = Replay.objects.filter(workspace=caller.workspace)
    return held.filter(Q(source=stream) | Q(target=stream)).order_by("-id")
