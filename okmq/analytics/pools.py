"""The pools of Spark's fair scheduler: one for each lane of runs, each query and each step of a replay.

A processor that gets free goes to the pool with the fewest tasks running; of several with as many, such as none, always
to the one whose name comes first (Spark's ``FairSchedulingAlgorithm``). So where more is under way than there are
processors, names decide, and they are given in this order:

1. lanes of runs, for which retention waits;
2. what a workspace has first under way, the youngest before those that began earlier: most questions are small;
3. what it has beside that, so that nobody's second long query is in the way of another's first.

A pool that no file names is created when it is first used, with the weight 1, and stays until Spark ends; so they are
numbered, and the number of what has ended is taken again.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

PROPERTY = "spark.scheduler.pool"
"""What says on a thread which pool its jobs run in."""

FIRST, BESIDE = 1, 2
"""Ranks, behind that of lanes."""

MOST = 99


def of_lane(name: str) -> str:
    """The pool of a lane of runs."""
    return f"0-{name}"


class Pools:
    """Gives each that is under way a pool of its own; safe to share between threads."""

    def __init__(self) -> None:
        self._taken: defaultdict[int, set[int]] = defaultdict(set)
        self._taking = threading.Lock()

    @contextmanager
    def own(self, *, rank: int = FIRST) -> Iterator[str]:
        """The name of a pool that nothing else runs in meanwhile, and that comes first of its rank."""
        with self._taking:
            taken = self._taken[rank]
            number = min(taken, default=MOST + 1) - 1
            if number < 0:
                number = next(n for n in range(MOST + 1) if n not in taken)
            taken.add(number)
        try:
            yield f"{rank}-{number:02d}"
        finally:
            with self._taking:
                taken.discard(number)
