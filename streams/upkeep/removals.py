"""Which streams have lost messages, or the history some of them, and no event tells yet; of others nothing is asked."""

import time
from collections.abc import Iterable, Mapping, Set

from streams.log.stats import State
from streams.upkeep.sampling import Sample

AGAIN_AFTER_S = 60.0
"""A stream whose period is not over is looked at again after so long."""

MOST_AT_ONCE = 200


class Removals:
    """Remembers how much was gone of each stream, and missed by the history, when that was recorded last."""

    def __init__(self) -> None:
        self._settled: dict[str, tuple[int, int]] = {}
        self._waiting: dict[str, float] = {}

    def due(self, samples: Iterable[Sample]) -> list[str]:
        """The streams to look at now, at most ``MOST_AT_ONCE``."""
        now = time.monotonic()
        for sample in samples:
            if (sample.offset - sample.messages, sample.missed) != self._settled.get(sample.stream_id):
                self._waiting.setdefault(sample.stream_id, now)
        ready = [stream_id for stream_id, at in self._waiting.items() if at <= now]
        return ready[:MOST_AT_ONCE]

    def settled(self, states: Mapping[str, State], done: Set[str]) -> None:
        """What was looked at, and which of it is recorded."""
        again = time.monotonic() + AGAIN_AFTER_S
        for stream_id, state in states.items():
            if stream_id in done:
                self._settled[stream_id] = state.offset - state.messages, state.missed
                self._waiting.pop(stream_id, None)
            else:
                self._waiting[stream_id] = again

    def forget(self, stream_ids: Iterable[str]) -> None:
        """Streams that are gone."""
        for stream_id in stream_ids:
            self._settled.pop(stream_id, None)
            self._waiting.pop(stream_id, None)
