"""A clock that a jump of the server's wall clock does not move; due times follow it.

Scripts know only the wall clock, and somebody may set that: an hour ahead, and everything in flight would be delivered
again at once; an hour back, and nothing would for an hour. So every process keeps the server's time as it saw it and
lets it run on by its own machine's clock, which nobody sets, and looks once a second whether the two still agree. When
they part, the server's clock was set: the worker notes by how much and when, for those who come later.

Timestamps of messages are the wall clock's, and ages go by them. That nothing is over early for it follows from what
was noted (``Times.cutoff_ms``); scripts have the same rule (``lua/lib/clock.lua``).
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

LOOK_EVERY_MS = 1_000
"""How long a process trusts its clock before it compares it with the server's."""

TOLD_FOR_MS = 2_000
"""How old a look may be for what scripts are told: a process that looks for other reasons never looks for them."""

STEP_MS = 250
"""A difference up to this is drift, and followed; more is a jump."""

ADOPT_AFTER_MS = 30_000
"""After so long a process gives in to a clock that differs from its own: six times what a new worker needs."""

DRIFT = 0.001
"""By so much two clocks may part that nobody sets: several times what crystals do, twice what the kernel corrects."""

ROUGH_MS = 5
"""Bounds further apart than this say too little: another process could be as far off the other way."""

FIRST_LOOKS = 5
"""So often a process looks at once, at first and where the server's clock was set, until its bounds are near enough."""

KNOWN_AFTER = 3
"""Looks that must have agreed before a process trusts its own clock more than the server's."""


LEFT_EVERY_MS, LEFT_FOR_MS = 10_000, 3_600_000
"""So often a worker leaves what it knows to processes of its machine that come later, and for so long they go by it."""

MACHINES_KEPT = 32
"""Of more machines than these what was left is forgotten, and left again."""

JUMPS_KEPT = 32
"""So many jumps of the server's clock are remembered; what was before counts as the least of it."""

UNKNOWN_MS = 2**53
"""In the place of a time that nobody noted: a jump that may have been at any."""

Jumps = tuple[tuple[int, int], ...]
"""From which steady ms on the server's wall clock was how many ms ahead of it: ``(from, ahead)``, in order. The first
holds for all before, the last now."""

NEVER_SET: Jumps = ((0, 0),)


def jumps_noted(text: bytes | str | None, *, ahead_ms: int) -> Jumps:
    """What was noted of jumps.

    Args:
        text: ``<from> <ahead> …``, or None.
        ahead_ms: what is noted to be the present. The version before notes only this: when it came is not known.
    """
    numbers = [int(number) for number in text.split()] if text else [0, 0]
    noted = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return noted if noted[-1][1] == ahead_ms else (*noted, (UNKNOWN_MS, ahead_ms))


@dataclass(frozen=True, slots=True)
class Times:
    """A moment, by the clocks of a server.

    Attributes:
        steady_ms: by the steady one.
        ahead_ms: by how much the wall clock is ahead of that now.
    """

    steady_ms: int
    ahead_ms: int = 0
    jumps: Jumps = NEVER_SET

    @property
    def wall_ms(self) -> int:
        """By the server's wall clock (unix ms)."""
        return self.steady_ms + self.ahead_ms

    def shown_ms(self, steady_ms: int) -> int:
        """What the wall clock shows at another time of the steady one, when nobody sets it."""
        return steady_ms + self.ahead_ms

    def cutoff_ms(self, ttl_ms: int) -> int:
        """Up to which timestamp (unix ms) messages are over that live for so long.

        A timestamp is not below the steady time of its publish and by how much the wall clock was ahead then. So what
        was published less than ``ttl_ms`` ago is above the least that this was since, whatever was set in between.
        """
        since_ms = self.steady_ms - ttl_ms
        least_ms = self.ahead_ms
        for from_ms, ahead_ms in reversed(self.jumps):
            least_ms = min(least_ms, ahead_ms)
            if from_ms <= since_ms:
                break
        return since_ms + least_ms


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process knows of the clocks without asking: the steady time in ms, and the jumps that were noted."""

    steady_ms: int
    jumps: Jumps = NEVER_SET

    @property
    def ahead_ms(self) -> int:
        """By how much the server's wall clock is ahead of it, as was noted."""
        return self.jumps[-1][1]

    def at(self, server_ms: int) -> Times:
        """The times when a server's wall clock shows so many unix ms, which is the better one while nobody sets it."""
        if abs(server_ms - self.ahead_ms - self.steady_ms) <= STEP_MS:
            return Times(server_ms - self.ahead_ms, self.ahead_ms, self.jumps)
        return Times(self.steady_ms, server_ms - self.steady_ms, self.jumps)


def written(jumps: Jumps) -> str:
    """Jumps as they are noted; nothing where there never was one."""
    return "" if jumps == NEVER_SET else " ".join(f"{from_ms} {ahead_ms}" for from_ms, ahead_ms in jumps)


def told(steady_ms: int, jumps: str) -> int | str:
    """The time as scripts are told it."""
    return f"{steady_ms} {jumps}" if jumps else steady_ms


def unix_ms(told: Sequence[bytes | int]) -> int:
    """What ``TIME`` answered."""
    seconds, microseconds = told
    return int(seconds) * 1000 + int(microseconds) // 1000


def machine_ms() -> float:
    """Milliseconds of a clock that nobody sets and that runs on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000


@cache
def machine_name() -> str:
    """One for all processes whose ``machine_ms`` is the same clock, of one start of a kernel; "": nobody tells."""
    with suppress(OSError):
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{started} {Path('/proc/self/ns/time').readlink()}"
    return ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what the server's clock is ahead of the machine's, ms."""

    least: float
    most: float

    @property
    def middle(self) -> float:
        return (self.least + self.most) / 2

    @property
    def is_rough(self) -> bool:
        return self.most - self.least > ROUGH_MS

    def apart(self, other: Self) -> float:
        """How far two are from one another; 0 where they have something in common."""
        return max(0.0, other.least - self.most, self.least - other.most)

    def within(self, other: Self) -> Self:
        """What both say; what the other says, where they contradict one another."""
        if self.apart(other):
            return other
        return replace(self, least=max(self.least, other.least), most=min(self.most, other.most))

    def after(self, ms: float) -> Self:
        """What can be said so much later."""
        return replace(self, least=self.least - ms * DRIFT, most=self.most + ms * DRIFT)


class SteadyClock:
    """One process's steady clock of one store.

    Args:
        corrects: whether this process notes a jump for the others (the worker does).
        machine: milliseconds of this machine's own clock.
    """

    def __init__(self, *, corrects: bool = False, machine: Callable[[], float] = machine_ms) -> None:
        self._corrects, self.machine = corrects, machine
        self._ahead: Bounds | None = None
        self._set_to: Bounds | None = None
        self._looked_ms = -math.inf
        self._agreed_ms = -math.inf
        self._agreed = self._seen_set = 0
        self._jumps, self._jumps_written = NEVER_SET, ""
        self._left_ms = -math.inf
        self.machine_name = machine_name() if machine is machine_ms else ""

    @property
    def is_known(self) -> bool:
        """Whether it has agreed with the server's often enough, and lately, to be trusted more."""
        return self._agreed >= KNOWN_AFTER and self.machine() - self._agreed_ms < ADOPT_AFTER_MS

    def to_leave(self) -> str | None:
        """What others of this machine can go by, where it is for this process to leave it, and now."""
        now_ms = self.machine()
        is_due = self._corrects and self.machine_name and now_ms - self._left_ms >= LEFT_EVERY_MS
        if not is_due or self._ahead is None or self._set_to is not None or not self.is_known:
            return None
        self._left_ms = now_ms
        return f"{self._ahead.least:.3f} {self._ahead.most:.3f} {self._agreed_ms:.3f}"

    @property
    def jumps(self) -> Jumps:
        """The jumps that were noted, as of the last look."""
        return self._jumps

    @jumps.setter
    def jumps(self, noted: Jumps) -> None:
        if noted != self._jumps:
            self._jumps, self._jumps_written = noted, written(noted)

    @property
    def misses_a_jump(self) -> bool:
        """Whether one is noted without its time, which is for this process to mend."""
        return self._corrects and self._jumps[-1][0] == UNKNOWN_MS

    @property
    def was_compared(self) -> bool:
        """Whether the time is known, however long ago it was looked at."""
        return self._ahead is not None

    def is_to_look(self) -> bool:
        """Whether it is for the caller to ``compare`` before it has the time ``told``."""
        return self._is_stale(TOLD_FOR_MS)

    def told(self) -> int | str:
        """The time as scripts are told it, about right, once it was compared."""
        return told(self._about_ms(), self._jumps_written)

    def reading(self) -> Reading:
        """The same, for whoever decides without a script."""
        return Reading(self._about_ms(), self._jumps)

    def _about_ms(self) -> int:
        assert self._ahead is not None
        return round(self.machine() + self._ahead.middle)

    def _is_stale(self, after_ms: float) -> bool:
        now_ms = self.machine()
        if self._ahead is not None and now_ms - self._looked_ms < after_ms:
            return False
        self._looked_ms = now_ms  # others who ask meanwhile need not look, too
        return True

    def fresh_ms(self, *, latest: bool = False) -> int | None:
        """As ``now_ms``; None when it is time to ``compare``."""
        return None if self._is_stale(LOOK_EVERY_MS) else self.now_ms(latest=latest)

    def now_ms(self, *, latest: bool = False) -> int:
        """The steady time in ms, about unix time but for the jumps since, once it was compared.

        No process knows it exactly. What is leased until the latest that it may be, and comes again by the earliest,
        comes to nobody before its time, whichever processes are asked.

        Args:
            latest: what it is at most, not at least.
        """
        assert self._ahead is not None
        now_ms = self.machine()
        ahead = self._ahead.after(now_ms - self._agreed_ms)
        return math.ceil(now_ms + ahead.most) if latest else math.floor(now_ms + ahead.least)

    @property
    def is_rough(self) -> bool:
        """Whether another look tells the time better, or by how much it was set."""
        if self._set_to is not None:
            return self._set_to.is_rough and self._seen_set < FIRST_LOOKS
        return self._ahead is not None and self._ahead.is_rough and self._agreed < FIRST_LOOKS

    def compare(self, server_ms: float, *, asked_ms: float, left: bytes | None = None) -> int:
        """Take the server's time over, or keep the own; returns by how many ms the server's clock jumped.

        Args:
            server_ms: its wall clock without the jumps that are known.
            asked_ms: ``machine`` just before it was asked.
            left: what a worker left to this machine, for a process that does not know the time yet.

        Returns:
            0 where there was no jump, or where it is not for this process to note it.
        """
        answered_ms = self._looked_ms = self.machine()
        # The server read its clock somewhere between the two moments: what lies within is no difference.
        look = Bounds(server_ms - answered_ms, server_ms - asked_ms).after(answered_ms - asked_ms)
        is_known = self.is_known or (left is not None and self._adopt(left))
        held = self._ahead and self._ahead.after(answered_ms - self._agreed_ms)
        if held is None or held.apart(look) <= STEP_MS:
            self._follow(look if held is None else held.within(look), answered_ms, self._agreed + 1)
        elif not is_known:
            self._follow(look, answered_ms, 1)
        elif self._corrects:
            has_seen = self._set_to is not None and self._set_to.apart(look) == 0
            self._set_to = self._set_to.within(look) if self._set_to and has_seen else look
            self._seen_set += 1
            return round(self._set_to.middle - held.middle)
        return 0

    def _adopt(self, left: bytes) -> bool:
        """Go by what a worker left, unless that is too old."""
        least, most, at_ms = map(float, left.split())
        if self.machine() - at_ms >= LEFT_FOR_MS:
            return False
        self._ahead, self._agreed_ms, self._agreed = Bounds(least, most), at_ms, KNOWN_AFTER
        return True

    def _follow(self, ahead: Bounds, at_ms: float, agreed: int) -> None:
        self._ahead, self._agreed_ms, self._agreed = ahead, at_ms, agreed
        self._set_to, self._seen_set = None, 0
