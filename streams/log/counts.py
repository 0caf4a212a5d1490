"""What the worker's samples tell of streams and groups: counts that only grow, and what goes up and down."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

OF_GROUPS = ("deliveries", "acked", "redelivered", "dead_lettered", "lost")
"""What is counted of a group while it lives."""

OF_STREAMS = ("duplicates", "removed")
"""What is counted of a stream while it lives; ``removed`` are messages, by retention."""

COUNTERS = (*OF_GROUPS, *OF_STREAMS)

MEASURES = ("lag", "lag_ms")
"""What goes up and down: messages that were not delivered yet, and the age of the oldest not acknowledged."""

HIGHEST = (*MEASURES, "dead")
"""Of what the highest value of a window is kept: of these, and of the dead letters that there were."""

Quiet = tuple[int, int]
"""Unix ms of a sample, and for how many ms nobody had fetched or acknowledged by then."""


class Counts(NamedTuple):
    """Counts as one sample has them.

    Attributes:
        made_ms: which life of a stream or group they are of; None where it is not known.
        of: what is counted → how often, ever in this life.
    """

    made_ms: int | None
    of: Mapping[str, int]


def grown(before: Counts | None, now: Counts) -> dict[str, int]:
    """What was counted between two samples; all that grew.

    Another life begins at nought. Where either does not say which it is of, one that has anything lower is another;
    in the same life the store lost its last moments, and the count goes on from there.
    ``spark.transforms.standing`` does the same between the samples of a run.
    """
    held = {} if before is None or _is_another_life(before, now) else before.of
    return {name: count - held.get(name, 0) for name, count in now.of.items() if count > held.get(name, 0)}


def _is_another_life(before: Counts, now: Counts) -> bool:
    if before.made_ms is not None and now.made_ms is not None:
        return before.made_ms != now.made_ms
    return any(count < before.of.get(name, 0) for name, count in now.of.items())


def quiet_kept(seen: Iterable[Quiet]) -> list[Quiet]:
    """Of the samples of a window those that tell when silences began and ended, ascending: the first of those after the
    longest silence, the first after the shortest, and the last of all.

    What is kept of parts of a window, together, has what is kept of the whole. ``spark.transforms.standing`` does the
    same between the samples of a run.
    """
    found = sorted(seen)
    longest, shortest = max(found, key=_ms), min(found, key=_ms)
    return sorted({longest, shortest, found[-1]})


def _ms(seen: Quiet) -> int:
    return seen[1]
