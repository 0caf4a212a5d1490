"""What the windows of a range come to together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streams.models import Rollup

MOST_KEYS = 10


@dataclass(frozen=True, slots=True)
class FrequentKey:
    """A key that is among the most frequent of some windows.

    Attributes:
        messages: that it has in these.
        most: that it may have in all: in each other window at most as many as the last key that is kept there, and what
            came since a window was looked at.
        share: of the messages of the first key.
    """

    key: str
    messages: int
    most: int
    share: float


@dataclass(frozen=True, slots=True)
class FrequentKeys:
    """The most frequent keys of some windows together; ``others``: how many messages any other may have at most."""

    keys: Sequence[FrequentKey]
    others: int

    @property
    def is_exact(self) -> bool:
        """Whether the numbers and the order are certain."""
        return all(each.messages == each.most for each in self.keys) and self.others <= (
            self.keys[-1].messages if self.keys else 0
        )


def top_keys_of(points: Iterable[Rollup]) -> FrequentKeys:
    """What the most frequent keys of each window say about all of them together."""
    counted: Counter[str] = Counter()
    unseen: Counter[str] = Counter()  # of a key, what it may have had at most where it was among those kept
    bound = 0
    for point in points:
        kept = dict(point.top_keys or ())
        counted.update(kept)
        if point.keys is not None and kept and point.keys > len(kept):
            last = min(kept.values())
            bound += last
            unseen.update(dict.fromkeys(kept, last))
        bound += point.messages_unscanned
    found = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    shown = [
        FrequentKey(key, messages, messages + bound - unseen[key], messages / found[0][1])
        for key, messages in found[:MOST_KEYS]
    ]
    left = (messages + bound - unseen[key] for key, messages in found[MOST_KEYS:])
    return FrequentKeys(shown, max(bound, *left) if len(found) > MOST_KEYS else bound)
