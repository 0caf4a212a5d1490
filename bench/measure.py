"""A measurement, and the medians and ratios of several rounds."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BODY = b'"' + b"x" * 98 + b'"'
"""100 bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One load in one round.

    Attributes:
        messages: published or read.
        elapsed_s: from the first request to the last answer.
        cpu_s: what the load generator itself used of a core.
        p99_s: how long the slowest of a hundred requests took, where that was noted.
    """

    messages: int
    elapsed_s: float
    cpu_s: float
    p99_s: float | None = None

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.elapsed_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Something to measure: what it is called, how many messages one request carries, and how to run it once."""

    name: str
    batch: int
    run: Callable[[], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A ratio of two loads that the project promises to reach."""

    of: str
    to: str
    at_least: float


class Stopwatch:
    """Wall time, and processor time of this process."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.cpu_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts what happens inside."""
        began, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.elapsed_s += time.perf_counter() - began
            self.cpu_s += time.process_time() - cpu

    def measured(self, messages: int, *, latencies_s: Sequence[float] = ()) -> Measured:
        """So many messages in the time that was counted; ``latencies_s`` of the requests, ascending."""
        p99_s = latencies_s[len(latencies_s) * 99 // 100] if latencies_s else None
        return Measured(messages, self.elapsed_s, self.cpu_s, p99_s)


def ratio(rounds: Iterable[dict[str, Measured]], promise: Promise) -> float | None:
    """The median of the ratios within each round, so that a noisy minute hits both sides; None if not measured."""
    found = [
        measured[promise.of].rate / measured[promise.to].rate
        for measured in rounds
        if promise.of in measured and promise.to in measured
    ]
    return statistics.median(found) if found else None
