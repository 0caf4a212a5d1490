"""Waiting for a condition, never for a time; and time less what other work on the machine takes of it."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

LONG_ENOUGH_S = 30.0
"""For what must come but is promised in no time: reached only by what will not come."""

AT_ONCE = 3
"""Looks at a condition before its time is taken: what it costs to begin a watch is more than most need."""

MOST_STRETCHED = 6
"""Of so many seconds on the wall one was there, whatever the kernel tells: what will not come is told at last."""

PROC = Path("/proc")


class Stopwatch:
    """Seconds since it was made, less those that this process and all it started waited for a processor.

    A promise in seconds is held against these: on a quiet machine they are those of any clock, and one that is busy
    with something else takes nothing from what is measured. Several that wait at once count each, so that beside
    much other work a bound is wider than it need be, up to ``MOST_STRETCHED`` times, never narrower. What ended
    meanwhile is not asked any more.
    """

    def __init__(self) -> None:
        self._queued_s = queued_s()
        self._began = time.monotonic()

    @property
    def wall_s(self) -> float:
        """Seconds of the clock on the wall."""
        return time.monotonic() - self._began

    @property
    def elapsed_s(self) -> float:
        """Seconds that were really there."""
        wall_s = self.wall_s
        waited_s = sum(
            max(0.0, until_now_s - self._queued_s.get(thread, 0.0))
            for thread, until_now_s in queued_s().items()
        )
        return max(wall_s / MOST_STRETCHED, wall_s - waited_s)

    def is_over(self, within_s: float) -> bool:
        """Whether so many seconds were there; asks the kernel only when they have passed on the wall."""
        return self.wall_s > within_s and self.elapsed_s > within_s


def queued_s() -> dict[int, float]:
    """How long each thread of this process and of those that it started has waited for a processor, by its id."""
    found: dict[int, float] = {}
    processes = [os.getpid()]
    for process in processes:
        for thread in _threads(process):
            try:
                found[int(thread.name)] = int((thread / "schedstat").read_text().split()[1]) / 1e9
                processes += map(int, (thread / "children").read_text().split())
            except (OSError, IndexError):
                continue  # it ended in between
    return found


def _threads(process: int) -> list[Path]:
    try:
        return list((PROC / str(process) / "task").iterdir())
    except OSError:
        return []  # it ended in between


def until(condition: Callable[[], T], *, within_s: float = LONG_ENOUGH_S, what: str = "") -> T:
    """Ask again and again until the answer is true, and return it; the time is that of a ``Stopwatch``.

    Raises:
        AssertionError: it stayed false; the message says what was awaited and what the last answer was.
    """
    pause, looked = threading.Event(), 0
    watch: Stopwatch | None = None  # what comes at once needs none
    while True:
        answer = condition()
        if answer:
            return answer
        if watch is None and looked >= AT_ONCE:
            watch = Stopwatch()
        if watch is not None and watch.is_over(within_s):
            raise AssertionError(f"not within {within_s:g} s: {what or condition}; last answer: {answer!r}")
        looked += 1
        pause.wait(0.02)
