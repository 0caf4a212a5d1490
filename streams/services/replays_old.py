"""Replays that ended long ago go."""

from datetime import datetime, timedelta

from streams.models import Replay, ReplayState
from streams.services.replays import ENDED

KEPT = timedelta(days=30)
"""How long a replay that has ended is kept."""


def replays_forget(*, now: datetime) -> None:
    """Let go of what ended long ago."""
    Replay.objects.filter(finished_at__lt=now - KEPT, state__in=[*ENDED, ReplayState.FAILED]).delete()
