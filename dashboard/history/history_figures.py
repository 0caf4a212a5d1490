"""What the windows of a range come to together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.history.history_ranges import Asked
from streams import selectors
from streams.models import Rollup, Stream

MOST_KEYS = 10


@dataclass(frozen=True, slots=True)
class FrequentKey:
    """A key that is among the most frequent of some windows, and its messages in these; ``share`` is of the first."""

    key: str
    messages: int
    share: float


def top_keys_of(points: Iterable[Rollup]) -> list[FrequentKey]:
    """The most frequent keys of some windows together, as far as they were among the most frequent of each."""
    counted: Counter[str] = Counter()
    for point in points:
        counted.update(dict(point.top_keys or ()))
    found = sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:MOST_KEYS]
    return [FrequentKey(key, messages, messages / found[0][1]) for key, messages in found]


def told_of(stream: Stream, asked: Asked) -> dict[str, int]:
    """Publishes refused as known, and messages that retention removed, in a range."""
    step, since, until = asked.step, asked.since, asked.until
    known = selectors.duplicates_by_step(stream, step=step, since=since, until=until)
    removed = selectors.removed_by_step(stream, step=step, since=since, until=until)
    return {"duplicates": sum(known.values()), "removed": sum(removed.values())}
