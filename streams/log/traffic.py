"""How many requests the web processes have answered and how long they took, counted together in the store.

Every process adds what it counted since it last did, so the sums go on over restarts and never go back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streams.log import keys
from streams.log.client import Op, Pipeline

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of durations, inclusive; one more holds what took longer (a long poll waits 30 s)."""

SECOND_US = 1_000_000
_SUM = "us"


class Kind(NamedTuple):
    """What is counted together; no part holds a blank."""

    method: str
    route: str
    status: int


@dataclass(slots=True)
class Durations:
    """Requests by bucket (one more than there are bounds), and the sum of their durations in microseconds."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_us: int = 0

    def add(self, other: "Durations") -> None:
        """Count what another one counted."""
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.sum_us += other.sum_us


def told(counted: Mapping[Kind, Durations]) -> Op[None]:
    """Add what one process counted."""
    yield Pipeline(list(_increments(counted)))


def total() -> Op[dict[Kind, Durations]]:
    """What all processes have counted, ever."""
    flat = yield ("HGETALL", keys.TRAFFIC)
    found: dict[Kind, Durations] = {}
    for name, value in zip(flat[::2], flat[1::2], strict=True):
        method, route, status, part = name.decode().split(" ")
        durations = found.setdefault(Kind(method, route, int(status)), Durations())
        if part == _SUM:
            durations.sum_us = int(value)
        else:
            durations.buckets[int(part)] = int(value)
    return found


def _increments(counted: Mapping[Kind, Durations]) -> Iterable[tuple[str, str, str, int]]:
    for (method, route, status), durations in counted.items():
        for bucket, count in enumerate(durations.buckets):
            if count:
                yield ("HINCRBY", keys.TRAFFIC, f"{method} {route} {status} {bucket}", count)
        yield ("HINCRBY", keys.TRAFFIC, f"{method} {route} {status} {_SUM}", durations.sum_us)
