"""What a person was shown before it is done, as the form of the page brings it back.

Saving removes no more than was shown, or asks again. A stream that moves is never quite as it was shown a second ago,
so there the most that may go within a minute is shown, too, and saving is held to that. Of messages that were named by
their offsets nothing is done to any other.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from dashboard.quantities import LARGEST

MINUTE_S = 60

_SPAN = re.compile(r"([0-9]{1,16})(?:-([0-9]{1,16}))?")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page said that would go.

    Attributes:
        messages: that would have gone at once.
        most: that might have gone within a minute.
        at_ms: unix ms when it was said; 0 where nothing was.
    """

    messages: int = 0
    most: int = 0
    at_ms: int = 0

    @property
    def margin(self) -> int:
        """How many more may go within the minute than at once."""
        return self.most - self.messages

    def again(self, messages: int, *, arriving: float, at_ms: int) -> "Shown":
        """What to say now.

        Args:
            messages: that would go at once.
            arriving: messages that come in a minute; at a limit each may push out another.
        """
        if not messages:
            return Shown(at_ms=at_ms)
        since_s = max(1.0, (at_ms - self.at_ms) / 1000)
        grown = max(0, messages - self.messages) / since_s if self.at_ms else 0.0
        return Shown(messages, messages + ceil(max(arriving, grown * MINUTE_S)), at_ms)


def counts_read(text: str) -> dict[str, int] | None:
    """Numbers by name that a page wrote as JSON into a hidden field; None where no page did."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(said, dict) and all(
        type(each) is int and 0 <= each <= LARGEST for each in said.values()
    )
    return said if is_ours else None


def offsets_written(offsets: Iterable[int]) -> str:
    """Ascending offsets for a hidden field: ``41-60,65``."""
    spans = []
    for _, run in groupby(enumerate(offsets), key=lambda each: each[1] - each[0]):
        first, *rest = [offset for _, offset in run]
        spans.append(f"{first}-{rest[-1]}" if rest else str(first))
    return ",".join(spans)


def offsets_read(text: str, *, most: int) -> list[int]:
    """What ``offsets_written`` wrote.

    Args:
        most: offsets that a page names.

    Raises:
        ValueError: no page wrote this.
    """
    found: list[int] = []
    for span in text.split(","):
        match = _SPAN.fullmatch(span)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high or (found and low <= found[-1]) or len(found) + high - low >= most:
            raise ValueError(text[:100])
        found += range(low, high + 1)
    return found
