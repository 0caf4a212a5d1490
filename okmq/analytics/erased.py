"""Which streams something was erased of while messages of them that were read before wait here to be given on."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class ErasedMeanwhile(Exception):
    """Something was erased of a stream since what is about to be given on was read: it is to be read again."""


class ErasedSince:
    """Has nothing given on that was read before an erasure, once that looks through what was given.

    An erasure writes the history anew, notes that here, and then takes what it is about from the groups. So what was
    read before is given on and seen by it, or not given on; and what is read after the note lacks it.
    """

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._giving: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def times(self, stream_id: str) -> int:
        """How often something was erased of a stream; to be asked before it is read."""
        return self._times[stream_id]

    def note(self, stream_id: str) -> None:
        """Something was erased; a call that is just giving on what was read before is waited for."""
        with self._giving[stream_id]:
            self._times[stream_id] += 1

    @contextmanager
    def giving(self, stream_id: str, *, read_at: int) -> Iterator[None]:
        """Around each call that gives on what was read.

        Args:
            read_at: what ``times`` said before it was read.

        Raises:
            ErasedMeanwhile: something was erased since.
        """
        with self._giving[stream_id]:
            if self._times[stream_id] != read_at:
                raise ErasedMeanwhile
            yield
