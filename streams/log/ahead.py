"""Goes on with a census after an answer that was not complete, so that one of the next questions finds it whole.

In a thread of its own, which rests as long as it works: who publishes meanwhile waits for one page at most.
"""

import threading
import time

from streams.log import meta
from streams.log.census import KEPT, Census, Kept, look
from streams.log.client import Log, Op
from streams.log.errors import LogError, StreamNotFound

WORK_S = 0.02
FOR_S = 300.0
"""So long after the last question it gives up."""


class Ahead:
    """The streams whose census is being completed."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._asked: dict[str, tuple[Log, float]] = {}
        self._thread: threading.Thread | None = None

    def go_on(self, log: Log, stream_id: str) -> None:
        """Complete the census of a stream, which a question has just given back."""
        with self._lock:
            self._asked[stream_id] = (log, time.monotonic())
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="census", daemon=True)
                self._thread.start()

    def is_busy(self) -> bool:
        """Whether there is something left to do."""
        with self._lock:
            return self._thread is not None

    def _run(self) -> None:
        pause = threading.Event()
        while turn := self._turn():
            began = time.monotonic()
            over = [stream_id for stream_id, log in turn.items() if self._is_over(log, stream_id)]
            with self._lock:
                for stream_id in over:
                    self._asked.pop(stream_id, None)
            pause.wait(max(WORK_S, time.monotonic() - began))

    def _turn(self) -> dict[str, Log]:
        """What to go on with; where there is nothing this thread ends."""
        with self._lock:
            since_s = time.monotonic() - FOR_S
            self._asked = {stream_id: each for stream_id, each in self._asked.items() if each[1] > since_s}
            if not self._asked:
                self._thread = None
            return {stream_id: log for stream_id, (log, _) in self._asked.items()}

    def _is_over(self, log: Log, stream_id: str) -> bool:
        """Go on for a moment; whether there is nothing left to do."""
        census = self._kept.borrow(stream_id)
        if census is None:
            return True  # a question has it, and asks again where it does not come to the end
        reached: Census | None = None
        try:
            reached, is_complete = log.run(
                _down_to_the_floor(stream_id, census, until_s=time.monotonic() + WORK_S)
            )
        except LogError:
            return True
        finally:
            self._kept.give_back(stream_id, reached)
        return is_complete or reached.is_full


def _down_to_the_floor(stream_id: str, census: Census, *, until_s: float) -> Op[tuple[Census, bool]]:
    counters = (yield from meta.counters_of([stream_id])).get(stream_id)
    if counters is None:
        raise StreamNotFound
    return (yield from look(stream_id, census, first=counters.floor, until_s=until_s, always=1))


AHEAD = Ahead(KEPT)
