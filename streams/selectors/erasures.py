"""Erasures of a workspace."""

from streams import bearer
from streams.access import Caller
from streams.models import Erasure

MOST_LOOKED_AT = 500


def erasures_latest(caller: Caller, *, limit: int = 100) -> list[Erasure]:
    """The newest erasures in the streams that a caller may see."""
    newest = Erasure.objects.filter(workspace=caller.workspace).order_by("-id")[:MOST_LOOKED_AT]
    return [each for each in newest if bearer.streams_cover(caller.streams, each.stream)][:limit]
