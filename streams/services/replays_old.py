"""Replays that nobody wants any more: those that were left to wait are ended, those that ended long ago go."""

from datetime import datetime, timedelta

from streams.models import Event, Replay, ReplayState
from streams.services.replays import ENDED, WAITING, replay_lapsed

KEPT = timedelta(days=30)
"""How long a replay that has ended is kept, and how long one waits for somebody to start it or to have it go on."""

LAPSED = f"Nobody started it, or had it go on, for {KEPT.days} days."


def replays_forget(*, now: datetime) -> None:
    """Let go of what ended long ago, and end what was left to wait."""
    before = now - KEPT
    Replay.objects.filter(finished_at__lt=before, state__in=[*ENDED, ReplayState.FAILED]).delete()
    waiting = Replay.objects.filter(state__in=WAITING, created_at__lt=before).select_related("workspace")
    for replay in waiting:
        if not _touched(replay, since=before):
            replay_lapsed(replay, why=LAPSED)


def _touched(replay: Replay, *, since: datetime) -> bool:
    """Whether somebody started or paused it, or it failed: each is an event."""
    told = Event.objects.filter(workspace_id=replay.workspace_id, stream=replay.target, time__gte=since)
    return told.filter(kind__startswith="history.replay_", after__replay=replay.pk).exists()
