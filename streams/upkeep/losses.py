"""Which groups have lost or given up messages that no event tells of yet; nothing is asked for the others."""

import time
from collections.abc import Iterable, Mapping, Set

from streams.log.group_meta import Counters
from streams.log.keys import GroupName
from streams.log.standing import GroupState
from streams.upkeep.sampling import Sample

AGAIN_AFTER_S = 60.0
"""A group whose period is not over is looked at again after so long."""

MOST_AT_ONCE = 200
MOST_LOOKED_AT = 100


class Suspects:
    """Finds groups that may have lost or given up something, from what the worker reads every second anyway."""

    def __init__(self) -> None:
        self._counted: dict[GroupName, tuple[int, int, int]] = {}
        self._gone: dict[str, int] = {}
        self._edges: dict[GroupName, float] = {}
        self._queue: dict[GroupName, None] = {}

    def next(self, counters: Mapping[GroupName, Counters], samples: Iterable[Sample]) -> list[GroupName]:
        """The groups to look at now, at most ``MOST_LOOKED_AT``.

        Args:
            counters: of the groups that have something to do or whose stream changed.
            samples: of the streams that changed.
        """
        shrunk = {}
        for sample in samples:
            gone = sample.offset - sample.messages
            if self._gone.get(sample.stream_id, 0) != gone:
                self._gone[sample.stream_id], shrunk[sample.stream_id] = gone, sample.offset
        for named, held in counters.items():
            counted = (held.dead_lettered, held.unfinished, held.missed)
            is_other = self._counted.get(named, (0, 0, 0)) != counted
            if is_other or (named[0] in shrunk and not _is_at_rest(held, shrunk[named[0]])):
                self._queue[named] = None
            self._counted[named] = counted
        now = time.monotonic()
        over = [named for named, at in self._edges.items() if at <= now]
        for named in over:
            del self._edges[named]
        self._queue |= dict.fromkeys(over)
        # What has nothing to do any more, or cannot be reached, is not asked.
        self._queue = {named: None for named in self._queue if named in counters}
        found = list(self._queue)[:MOST_LOOKED_AT]
        for named in found:
            del self._queue[named]
        return found

    def looked(self, states: Mapping[GroupName, GroupState]) -> None:
        """Note when the age limit takes the oldest message that one of these groups has not acknowledged."""
        now = time.monotonic()
        for named, state in states.items():
            if state.edge_ms is None:
                self._edges.pop(named, None)
            else:
                self._edges[named] = now + state.edge_ms / 1000


class Losses:
    """Remembers what each group had lost and given up when that was recorded last."""

    def __init__(self) -> None:
        self._settled: dict[GroupName, tuple[int, int, int]] = {}
        self._waiting: dict[GroupName, tuple[float, GroupState]] = {}

    def due(self, states: Mapping[GroupName, GroupState]) -> dict[GroupName, GroupState]:
        """The groups to record now, at most ``MOST_AT_ONCE``, after these were looked at."""
        now = time.monotonic()
        for named, state in states.items():
            if _figures(state) != self._settled.get(named, (0, 0, 0)):
                at, _ = self._waiting.get(named, (now, state))
                self._waiting[named] = (at, state)
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


def _is_at_rest(held: Counters, last_offset: int) -> bool:
    """Whether a group surely has nothing ahead of it and nothing in flight, so that it cannot lose anything."""
    return held.delivered >= last_offset and held.sequence - held.redelivered <= held.acked
