"""Whether anybody samples, and when nobody did."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from streams import store
from streams.log import lease
from streams.log.lease import Silence

SILENT_MS = 6_000
"""The worker samples every second, and is a second or two late where it is busy; by now its lease has ended."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """When the worker finished a round of samples last (unix ms); None where it never did."""

    at_ms: int | None
    now_ms: int

    @property
    def silent_ms(self) -> int | None:
        """How long that is ago."""
        return None if self.at_ms is None else max(0, self.now_ms - self.at_ms)

    @property
    def silent_s(self) -> float | None:
        return None if self.silent_ms is None else self.silent_ms / 1000

    @property
    def is_stale(self) -> bool:
        """Whether there were samples, and are none now."""
        return self.at_ms is not None and not self.is_going_on

    @property
    def is_going_on(self) -> bool:
        """Whether what no sample tells of is known to be at rest."""
        return self.silent_ms is not None and self.silent_ms <= SILENT_MS

    @property
    def known_until_ms(self) -> int:
        """Up to here (unix ms) what no sample tells of was at rest."""
        return self.at_ms if self.at_ms is not None and self.is_stale else self.now_ms


def sampling() -> Sampling:
    """Whether anybody samples now."""
    return Sampling(store.log().run(lease.sampled_ms()), int(time.time() * 1000))


def silences_between(*, since_ms: int, until_ms: int) -> list[Silence]:
    """When nobody sampled between two moments (unix ms), the oldest first; the last may go on."""
    found = store.log().run(lease.silences(since_ms=since_ms))
    seen = sampling()
    if seen.at_ms is not None and seen.is_stale:
        found.append(Silence(seen.at_ms, seen.now_ms))
    return [each for each in found if each.until_ms > since_ms and each.since_ms < until_ms]


def unsampled_seconds(found: Iterable[Silence], *, since_ms: int, until_ms: int) -> frozenset[int]:
    """The whole seconds (unix) within two moments in which nobody counted."""
    first, last = since_ms // 1000, until_ms // 1000
    return frozenset(
        second
        for each in found
        for second in range(max(first, each.since_ms // 1000 + 1), min(last + 1, each.until_ms // 1000))
    )
