"""What is usual at an hour of a weekday, from the same hour of the weeks before."""

import math
import statistics
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Min, Sum

from streams.models import Rollup

WEEKS = 8
"""How far back is looked."""

LEAST_WEEKS = 3
"""Of fewer weeks nothing is said to be usual."""

WIDTH = 3.0
"""The band reaches so many standard deviations to both sides of the median."""

TO_DEVIATION = 1.4826
"""The median of the distances from the median, times this, is the standard deviation of a normal distribution."""

LEAST_SHARE = 0.05
"""A deviation is taken for no less than this share of the median, nor than its square root (chance alone)."""

HOUR_S = 3600

LATELY = timedelta(minutes=15)
"""A rate is judged by the mean of so long."""


@dataclass(frozen=True, slots=True)
class Band:
    """What is usual in an hour: messages a second, from ``low`` to ``high``; known from so many weeks."""

    low: float
    high: float
    weeks: int


@dataclass(frozen=True, slots=True)
class UsualNow:
    """A rate of the last quarter of an hour beside what is usual in it; all in messages a second."""

    rate: float
    low: float
    high: float
    weeks: int

    @property
    def is_unusual(self) -> bool:
        return not self.low <= self.rate <= self.high


def usual(stream_ids: Collection[str], *, at: datetime) -> Band | None:
    """The usual band of streams together in the hour (UTC) of a moment, from that hour of the same weekday in the eight
    weeks before; None where the history knows fewer than three of them.

    It is the median of the weeks, and three robust deviations to both sides: one odd week does not move it.
    """
    hour = at.replace(minute=0, second=0, microsecond=0)
    rows = Rollup.objects.filter(stream_id__in=stream_ids, step="hour")
    since = rows.aggregate(Min("start"))["start__min"]
    hours = [hour - timedelta(weeks=weeks) for weeks in range(1, WEEKS + 1)]
    known = [each for each in hours if since is not None and each >= since]
    if len(known) < LEAST_WEEKS:
        return None
    sums = rows.filter(start__in=known).values_list("start").annotate(Sum("messages"))
    held = dict(sums.order_by("start"))
    low, high = band([held.get(each, 0) for each in known])
    return Band(low / HOUR_S, high / HOUR_S, len(known))


def rate_lately(came: float, *, unsampled_s: int) -> float | None:
    """Messages a second of the last quarter of an hour, of the seconds in which somebody counted; None where these are
    fewer than half of it: minutes vary more than what is usual in an hour.
    """
    counted_s = LATELY.total_seconds() - unsampled_s
    return came / counted_s if counted_s >= LATELY.total_seconds() / 2 else None


def usual_now(stream_ids: Collection[str], *, rate: float | None, at: datetime) -> UsualNow | None:
    """A rate of the last quarter of an hour beside what is usual in it of streams together; None where nobody knows.

    What lies in the hour before is judged by the band of that hour.
    """
    if rate is None:
        return None
    begun = at - at.replace(minute=0, second=0, microsecond=0)
    share = min(1.0, begun / LATELY)
    now = usual(stream_ids, at=at)
    before = usual(stream_ids, at=at - LATELY) if share < 1 else now
    if now is None or before is None:
        return None
    low, high = (
        share * of_now + (1 - share) * of_before
        for of_now, of_before in ((now.low, before.low), (now.high, before.high))
    )
    return UsualNow(rate, low, high, min(now.weeks, before.weeks))


def band(counts: list[int]) -> tuple[float, float]:
    """The median of some counts, and so far to both sides as is usual."""
    middle = statistics.median(counts)
    spread = TO_DEVIATION * statistics.median(abs(each - middle) for each in counts)
    deviation = max(spread, LEAST_SHARE * middle, math.sqrt(middle))
    return max(0.0, middle - WIDTH * deviation), middle + WIDTH * deviation
