"""What the machine had left for a proof: processors that others took, and moments at which nothing ran at all.

The load average tells neither: it is the proof itself that fills it. What counts is time that processors spent on
processes that are none of ours, or that the host of a virtual machine kept to itself (steal), and beats that a thread
which does nothing else has missed.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

BEAT_S, MISSED_S = 0.05, 0.25
"""How often it beats, and what is more than a thread waits for its turn."""

LEAST_LEFT = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
USER, NICE, SYSTEM, STEAL = 0, 1, 2, 7
"""Places in the first line of ``/proc/stat``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """``others_s``: seconds of processors that others had, since some time in the past; 0 where that is not told."""

    at: float
    others_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was taken from us in a span.

    Attributes:
        slowed: how many times as long everything took, at least 1.
        stalled_s: how long nothing ran.
    """

    slowed: float = 1.0
    stalled_s: float = 0.0

    def allows_s(self, seconds: float) -> float:
        """How long may take here what may take so long on a machine of our own."""
        return seconds * self.slowed + self.stalled_s


@dataclass(kw_only=True)
class Machine:
    """Watches it while its block runs."""

    missed: list[tuple[float, float]] = field(default_factory=list)
    """Spans without a beat."""

    @contextmanager
    def watched(self) -> Iterator["Machine"]:
        ends = threading.Event()
        thread = threading.Thread(target=self._beat, args=(ends,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ends.set()
            thread.join()

    def taken(self, since: Moment) -> Taken:
        """What was taken from then until now."""
        now = look()
        return Taken(slowed=slowed(since, now), stalled_s=self.stalled_s(since.at, now.at))

    def stalled_s(self, began: float, ended: float) -> float:
        """For how long of a span there was no beat."""
        return sum(max(0.0, min(end, ended) - max(start, began)) for start, end in list(self.missed))

    def _beat(self, ends: threading.Event) -> None:
        before = monotonic()
        while not ends.wait(BEAT_S):
            now = monotonic()
            if now - before > MISSED_S:
                self.missed.append((before, now))
            before = now


def slowed(before: Moment, after: Moment) -> float:
    """How many times as long everything took from the one to the other, of what others left us."""
    whole_s = (after.at - before.at) * (os.cpu_count() or 1)
    if whole_s <= 0:
        return 1.0
    share = max(0.0, after.others_s - before.others_s) / whole_s
    return 1 / max(LEAST_LEFT, 1 - share)


def look() -> Moment:
    """This moment."""
    return Moment(at=monotonic(), others_s=max(0.0, _worked_s() - ours_s()))


def _worked_s() -> float:
    """All processors, for whomever; interrupts, which nobody's process is charged for, are left out."""
    try:
        told = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    return sum(int(told[place]) for place in (USER, NICE, SYSTEM, STEAL)) / TICKS


def ours_s() -> float:
    """This process, what it started and what that started, with those of them that have ended."""
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with suppress(OSError):
                    told = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                    children.setdefault(int(told[1]), []).append(int(entry.name))
                    times[int(entry.name)] = sum(map(int, told[11:15])) / TICKS
    ours, left = 0.0, [os.getpid()]
    while left:
        pid = left.pop()
        ours += times.get(pid, 0.0)
        left += children.get(pid, [])
    return ours
