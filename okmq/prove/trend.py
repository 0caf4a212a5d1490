"""Whether a figure creeps up: the slope of a line through it that a few outliers do not move, and how sure that is."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

SURE = 1.645
"""Standard deviations of a normal distribution below which 95 % of it lies: each of two bounds is asked for alone."""


Judgement = Literal["grows", "steady", "not told"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """By which part of its middle value something grows in an hour; with 95 % at least, and with 95 % at most."""

    an_hour: float
    least: float
    most: float

    def judged(self, *, may_grow: float) -> Judgement:
        """Whether it grows by more than it may in an hour, or does not; both are said only when it is sure."""
        if self.least > may_grow:
            return "grows"
        return "steady" if self.most <= may_grow else "not told"

    def __str__(self) -> str:
        return f"{self.an_hour:+.1%} an hour ({self.least:+.1%} to {self.most:+.1%})"


def trend(times_s: Sequence[float], values: Sequence[float]) -> Trend:
    """The slope of Theil and Sen with its interval (Sen 1968, by Kendall's tau), as a part of the median.

    Args:
        times_s: ascending; ``values``: at these, at least three.
    """
    slopes = sorted(
        (after - before) / (then - at)
        for (at, before), (then, after) in combinations(zip(times_s, values, strict=True), 2)
    )
    count = len(values)
    spread = SURE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, math.floor((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    whole = statistics.median(values) / 3600 or 1.0
    return Trend(
        an_hour=statistics.median(slopes) / whole, least=slopes[low] / whole, most=slopes[high] / whole
    )
