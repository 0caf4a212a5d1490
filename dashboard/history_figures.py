"""What the windows of a range come to together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from streams.models import Rollup

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
