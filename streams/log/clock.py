"""A clock that a jump of the server's wall clock does not move; due times follow it.

Scripts know only the wall clock, and somebody may set that: an hour ahead, and everything in flight would be delivered
again at once; an hour back, and nothing would for an hour. So every process keeps the server's time as it saw it and
lets it run on by its own machine's clock, which nobody sets, and looks once a second whether the two still agree. When
they part, the server's clock was set: the worker notes by how much, for those who come later.
"""

import math
import time
from collections.abc import Callable

LOOK_EVERY_MS = 1_000
"""How long a process trusts its clock before it compares it with the server's."""

STEP_MS = 250
"""A difference up to this is drift, and followed; more is a jump."""

ADOPT_AFTER_MS = 30_000
"""After so long a process gives in to a clock that differs from its own: six times what a new worker needs."""

ROUGH_MS = 50
"""A first look that took longer says too little: on a busy machine it could be off by half of what it took."""

FIRST_LOOKS = 5
"""So often a process looks at once, until one look was quick."""

KNOWN_AFTER = 3
"""Looks that must have agreed before a process trusts its own clock more than the server's."""


def machine_ms() -> float:
    """Milliseconds of a clock that nobody sets and that runs on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * 1000


class SteadyClock:
    """One process's steady clock of one store.

    Args:
        corrects: whether this process notes a jump for the others (the worker does).
        machine: milliseconds of this machine's own clock.
    """

    def __init__(self, *, corrects: bool = False, machine: Callable[[], float] = machine_ms) -> None:
        self._corrects, self.machine = corrects, machine
        self._ahead_ms: float | None = None
        self._looked_ms = -math.inf
        self._agreed_ms = -math.inf
        self._agreed = 0
        self._quickest_ms = math.inf

    def fresh_ms(self) -> int | None:
        """The steady time in ms, about unix time but for the jumps since; None when it is time to ``compare``."""
        ahead_ms, now_ms = self._ahead_ms, self.machine()
        if ahead_ms is None or now_ms - self._looked_ms >= LOOK_EVERY_MS:
            self._looked_ms = now_ms  # others who ask meanwhile need not look, too
            return None
        return int(now_ms + ahead_ms)

    def now_ms(self) -> int:
        """The steady time in ms, once it was compared."""
        assert self._ahead_ms is not None
        return int(self.machine() + self._ahead_ms)

    @property
    def is_rough(self) -> bool:
        """Whether it was compared a few times only, and never quickly: another look tells the time better."""
        return self._quickest_ms > ROUGH_MS and self._agreed < FIRST_LOOKS

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
        least_ms, most_ms = server_ms - answered_ms, server_ms - asked_ms
        self._quickest_ms = min(self._quickest_ms, most_ms - least_ms)
        held_ms = self._ahead_ms
        nearest_ms = (least_ms + most_ms) / 2 if held_ms is None else min(max(held_ms, least_ms), most_ms)
        is_known = self._agreed >= KNOWN_AFTER and answered_ms - self._agreed_ms < ADOPT_AFTER_MS
        if held_ms is None or abs(nearest_ms - held_ms) <= STEP_MS:
            self._ahead_ms, self._agreed_ms, self._agreed = nearest_ms, answered_ms, self._agreed + 1
        elif not is_known:
            self._ahead_ms, self._agreed_ms, self._agreed = nearest_ms, answered_ms, 1
        elif self._corrects:
            return round(nearest_ms - held_ms)
        return 0
