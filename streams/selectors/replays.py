"""Replays of a workspace."""

from streams.access import Caller, may_see
from streams.models import Replay

MOST_LOOKED_AT = 500


def replays_latest(caller: Caller, *, stream: str = "", limit: int = 100) -> list[Replay]:
    """The newest replays that a caller may see, of one stream (as source or target) or of all."""
    newest = Replay.objects.filter(workspace=caller.workspace).order_by("-id")[:MOST_LOOKED_AT]
    found = [each for each in newest if may_see(caller, each)]
    return [each for each in found if stream in {"", each.source, each.target}][:limit]
