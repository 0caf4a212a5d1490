"""The pools of Spark's fair scheduler that queries and replays run in, one for each that is under way.

Spark shares the processors among pools, and serves what is in one pool in the order in which it came. A pool that no
file names is created when it is first used, with the weight 1, and stays until Spark ends; so pools are numbered, and
the number of what has ended is taken again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PROPERTY = "spark.scheduler.pool"
"""What says on a thread which pool its jobs run in."""


class Pools:
    """Gives each that is under way a pool of its own.

    Args:
        name: what the names of the pools begin with.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._taken: set[int] = set()
        self._taking = threading.Lock()

    @contextmanager
    def own(self) -> Iterator[str]:
        """The name of a pool that nothing else runs in meanwhile."""
        with self._taking:
            number = next(n for n in range(len(self._taken) + 1) if n not in self._taken)
            self._taken.add(number)
        try:
            yield f"{self._name}-{number}"
        finally:
            with self._taking:
                self._taken.discard(number)
