"""Which groups have lost or given up messages that no event tells of yet; nothing is asked for the others."""

import time
from collections.abc import Iterable, Set

from streams.log.keys import GroupName
from streams.log.standing import GroupState
from streams.upkeep.watching import Watched

AGAIN_AFTER_S = 60.0
"""A group whose period is not over is looked at again after so long."""

MOST_AT_ONCE = 200


class Losses:
    """Remembers what each group had lost and given up when that was recorded last."""

    def __init__(self) -> None:
        self._settled: dict[GroupName, tuple[int, int, int]] = {}
        self._waiting: dict[GroupName, tuple[float, GroupState]] = {}

    def due(self, watched: Iterable[Watched]) -> dict[GroupName, GroupState]:
        """The groups to record now, at most ``MOST_AT_ONCE``, after these were looked at."""
        now = time.monotonic()
        for each in watched:
            named = (each.stream_id, each.name)
            if _figures(each.state) != self._settled.get(named, (0, 0, 0)):
                at, _ = self._waiting.get(named, (now, each.state))
                self._waiting[named] = (at, each.state)
        ready = [(named, state) for named, (at, state) in self._waiting.items() if at <= now]
        return dict(ready[:MOST_AT_ONCE])

    def settled(self, shown: dict[GroupName, GroupState], done: Set[GroupName]) -> None:
        """What was shown, and which of it is recorded."""
        again = time.monotonic() + AGAIN_AFTER_S
        for named, state in shown.items():
            if named in done:
                self._settled[named] = _figures(state)
                self._waiting.pop(named, None)
            else:
                self._waiting[named] = (again, state)


def _figures(state: GroupState) -> tuple[int, int, int]:
    return state.lost, state.unfinished, state.dead_lettered
