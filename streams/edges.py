"""In how long the limits of a stream take the oldest message that a group has not acknowledged: pure functions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

NEAR_MS = 300_000


class Edges(Protocol):
    """What a sample and a group's state know of the limits of their stream."""

    @property
    def edge_ms(self) -> int | None: ...
    @property
    def ttl_ms(self) -> int | None: ...
    @property
    def room_messages(self) -> int | None: ...
    @property
    def max_messages(self) -> int | None: ...
    @property
    def room_bytes(self) -> int | None: ...
    @property
    def max_bytes(self) -> int | None: ...


class Edge(NamedTuple):
    """In how many ms a limit takes the oldest message not acknowledged, and for how many ms it keeps one in all."""

    left_ms: float
    span_ms: float

    @property
    def is_near(self) -> bool:
        """Nearer than five minutes or a tenth of what is kept, but never at more than half of it."""
        return self.left_ms < min(max(NEAR_MS, self.span_ms / 10), self.span_ms / 2)


class Grown(Protocol):
    """What a sample knows of how much was published."""

    @property
    def at_ms(self) -> int: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def appended_bytes(self) -> int | None: ...


def nearest_ms(edges: Edges, samples: Sequence[Grown]) -> float | None:
    """In how many ms a limit takes the oldest message not acknowledged; None where none is about to.

    Args:
        edges: of now.
        samples: of the last minutes, which tell how fast the stream grows.
    """
    return min((edge.left_ms for edge in edges_of(edges, samples)), default=None)


def edges_of(edges: Edges, samples: Sequence[Grown]) -> Iterator[Edge]:
    """Of age, and of count and bytes where the stream grew over the samples."""
    if edges.edge_ms is not None and edges.ttl_ms is not None:
        yield Edge(edges.edge_ms, edges.ttl_ms)
    if len(samples) < 2:
        return
    first, last = samples[0], samples[-1]
    for room, most, before, now in (
        (edges.room_messages, edges.max_messages, first.offset, last.offset),
        (edges.room_bytes, edges.max_bytes, first.appended_bytes, last.appended_bytes),
    ):
        if room is None or most is None or before is None or now is None or now <= before:
            continue
        ms_each = (last.at_ms - first.at_ms) / (now - before)
        yield Edge(room * ms_each, most * ms_each)
