"""Whether a figure creeps up: the slope of a line through it that a few outliers do not move, and how sure that is."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

SURE = 1.96
"""Standard deviations of a normal distribution within which 95 % of it lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """By which part of its middle value something grows in an hour; with 95 % it is between the other two."""

    an_hour: float
    least: float
    most: float

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
