"""A measurement, and the medians and ratios of several rounds."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BODY = b'"' + b"x" * 98 + b'"'
"""100 bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One load in one round.

    Attributes:
        messages: published or read.
        elapsed_s: from the first request to the last answer.
        cpu_s: what the load generator itself used of a core.
        server_cpu_s, store_cpu_s: what the process that answers used, and the store behind it. On a busy machine
            they say more than the rate.
        p99_s: how long the slowest of a hundred requests took, where that was noted.
    """

    messages: int
    elapsed_s: float
    cpu_s: float
    server_cpu_s: float | None
    store_cpu_s: float | None
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
    """A ratio of two loads that the project promises to reach, or only shows."""

    of: str
    to: str
    at_least: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number that the project promises to keep to: at most ``at_most`` or at least ``at_least``."""

    name: str
    reached: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def kept(self) -> bool:
        return (self.at_most is None or self.reached <= self.at_most) and (
            self.at_least is None or self.reached >= self.at_least
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """A situation that is set up once and gives figures."""

    name: str
    play: Callable[[], Sequence[Figure]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The processes whose processor time is counted: who answers, and the store behind it."""

    server: int | None = None
    store: int | None = None


class Stopwatch:
    """Wall time, and processor time of this process and of those that work for it."""

    def __init__(self, watched: Watched) -> None:
        self.elapsed_s = 0.0
        self.cpu_s = 0.0
        self._server, self._store = Processor(watched.server), Processor(watched.store)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts what happens inside."""
        others = (self._server, self._store)
        for other in others:
            other.begin()
        began, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.elapsed_s += time.perf_counter() - began
            self.cpu_s += time.process_time() - cpu
            for other in others:
                other.end()

    def measured(self, messages: int, *, latencies_s: Sequence[float] = ()) -> Measured:
        """So many messages in the time that was counted; ``latencies_s`` of the requests."""
        p99_s = p99_ms(latencies_s) / 1e3 if latencies_s else None
        return Measured(messages, self.elapsed_s, self.cpu_s, self._server.used_s, self._store.used_s, p99_s)


class Processor:
    """Processor time of another process, as Linux counts it (proc(5): utime and stime, in ticks)."""

    def __init__(self, pid: int | None) -> None:
        self._path = None if pid is None else Path(f"/proc/{pid}/stat")
        if self._path is not None and not self._path.exists():
            self._path = None
        self.used_s = None if self._path is None else 0.0

    def begin(self) -> None:
        """Count from now."""
        self._began_s = self._now_s()

    def end(self) -> None:
        """Add what was used since ``begin`` to ``used_s``."""
        if self.used_s is not None:
            self.used_s += self._now_s() - self._began_s

    def _now_s(self) -> float:
        if self._path is None:
            return 0.0
        user, system = self._path.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def ratio(rounds: Iterable[dict[str, Measured]], promise: Promise) -> float | None:
    """The median of the ratios within each round, so that a noisy minute hits both sides; None if not measured."""
    found = [
        measured[promise.of].rate / measured[promise.to].rate
        for measured in rounds
        if promise.of in measured and promise.to in measured
    ]
    return statistics.median(found) if found else None


def p99_ms(took_s: Iterable[float]) -> float:
    """How long the slowest of a hundred took, in milliseconds."""
    ascending_s = sorted(took_s)
    return ascending_s[len(ascending_s) * 99 // 100] * 1e3
