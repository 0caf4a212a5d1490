"""How many connections a web process holds: where they are as many as may be, those that are idle make room."""

import resource
from abc import ABC, abstractmethod
from collections.abc import MutableSet
from time import monotonic
from typing import Any

LEAST_IDLE_S = 1.0
"""A connection is not ended sooner: its first request may be on its way."""
PART_ENDED = 20
"""A twentieth of them at once: to find the longest idle one takes a look at all."""
PAUSE_S = 0.1
"""Where none could be ended, so long nobody looks again."""
OTHER_FILES = 256
"""Open files of a web process that are no connections of clients: the store, the database, logs, what is served."""


class Connection(ABC):
    """One that may have to make room."""

    @abstractmethod
    def idle_s(self) -> float | None:
        """For how long no request has been under way on it, in seconds; None while one is."""

    @abstractmethod
    def end(self) -> None:
        """Hang up at once."""


class Capacity:
    """So many connections, and no more, of one process.

    Args:
        most: connections, WebSockets among them; one at least.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._looks_again = 0.0

    def admits(self, connections: MutableSet[Any]) -> bool:
        """Whether all of them may stay; of those that are idle the longest are ended, and taken out, to make it so."""
        if len(connections) <= self.most:
            return True
        now = monotonic()
        if now < self._looks_again:
            return False
        idle = [
            (idle_s, at, each)
            for at, each in enumerate(connections)
            if isinstance(each, Connection)
            and (idle_s := each.idle_s()) is not None
            and idle_s >= LEAST_IDLE_S
        ]
        idle.sort(reverse=True)
        for _, _, each in idle[: len(connections) - self.most + self.most // PART_ENDED]:
            connections.discard(each)
            each.end()
        if not idle:
            self._looks_again = now + PAUSE_S
        return len(connections) <= self.most


def most_of(wanted: int) -> int:
    """So many of the connections that are wanted as this process may have open files for."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - OTHER_FILES))
