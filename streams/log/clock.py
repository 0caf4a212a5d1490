"""A clock that a jump of the server's wall clock does not move; due times follow it.

Scripts know only the wall clock, and somebody may set that: an hour ahead, and everything in flight would be delivered
again at once; an hour back, and nothing would for an hour. So every process keeps the server's time as it saw it and
lets it run on by its own machine's clock, which nobody sets, and looks once a second whether the two still agree. When
they part, the server's clock was set: the worker notes by how much, for those who come later.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

LOOK_EVERY_MS = 1_000
"""How long a process trusts its clock before it compares it with the server's."""

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


def machine_ms() -> float:
    """Milliseconds of a clock that nobody sets and that runs on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000


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

    def fresh_ms(self, *, latest: bool = False, about: bool = False) -> int | None:
        """As ``now_ms``; None when it is time to ``compare``, which ``about`` needs once: to look takes its time."""
        now_ms = self.machine()
        if about and self._ahead is not None:
            return round(now_ms + self._ahead.middle)
        if self._ahead is None or now_ms - self._looked_ms >= LOOK_EVERY_MS:
            self._looked_ms = now_ms  # others who ask meanwhile need not look, too
            return None
        return self.now_ms(latest=latest)

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

    def compare(self, server_ms: float, *, asked_ms: float) -> int:
        """Take the server's time over, or keep the own; returns by how many ms the server's clock jumped.

        Args:
            server_ms: its wall clock without the jumps that are known.
            asked_ms: ``machine`` just before it was asked.

        Returns:
            0 where there was no jump, or where it is not for this process to note it.
        """
        answered_ms = self._looked_ms = self.machine()
        # The server read its clock somewhere between the two moments: what lies within is no difference.
        look = Bounds(server_ms - answered_ms, server_ms - asked_ms).after(answered_ms - asked_ms)
        held = self._ahead and self._ahead.after(answered_ms - self._agreed_ms)
        is_known = self._agreed >= KNOWN_AFTER and answered_ms - self._agreed_ms < ADOPT_AFTER_MS
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

    def _follow(self, ahead: Bounds, at_ms: float, agreed: int) -> None:
        self._ahead, self._agreed_ms, self._agreed = ahead, at_ms, agreed
        self._set_to, self._seen_set = None, 0
