"""What is usual at an hour of a weekday."""

import math
import random
import statistics
from datetime import UTC, datetime, timedelta

import pytest

from streams.models import Rollup
from streams.selectors.baselines import band, usual, usual_now

pytestmark = pytest.mark.django_db

SUNDAY = datetime(2026, 11, 22, 11, 40, tzinfo=UTC)
HOUR = SUNDAY.replace(minute=0)


def hour(messages: int, *, weeks: int = 0, hours: int = 0, stream_id: str = "s") -> None:
    start = HOUR - timedelta(weeks=weeks, hours=hours)
    Rollup.objects.create(stream_id=stream_id, step="hour", start=start, messages=messages, bytes=1)


def test_it_is_the_same_hour_of_the_weeks_before_of_all_streams_together() -> None:
    counts = {1: 36_000, 2: 43_200, 3: 28_800, 4: 360_000}
    for weeks, messages in counts.items():
        hour(messages - 1000, weeks=weeks)
        hour(1000, weeks=weeks, stream_id="t")
        hour(10**9, weeks=weeks, hours=1)
        hour(10**9, weeks=weeks, stream_id="another")
    hour(10**9)
    found = usual(["s", "t"], at=SUNDAY)
    assert found is not None
    middle = statistics.median(counts.values())
    spread = 1.4826 * statistics.median(abs(each - middle) for each in counts.values())
    assert found.weeks == 4
    low, high = middle - 3 * spread, middle + 3 * spread
    assert (found.low, found.high) == pytest.approx((low / 3600, high / 3600))


def test_an_hour_without_a_message_counts_from_the_first_that_is_known() -> None:
    hour(1, weeks=5, hours=-1)
    found = usual(["s"], at=SUNDAY)
    assert found is not None
    assert (found.low, found.high, found.weeks) == (0.0, 0.0, 4)


def test_of_fewer_than_three_weeks_nothing_is_said() -> None:
    hour(5, weeks=2)
    assert usual(["s"], at=SUNDAY) is None
    assert usual_now([], rate=1.0, at=SUNDAY) is None


@pytest.mark.parametrize(("rate", "is_unusual"), [(8.4, True), (8.5, False), (11.5, False), (11.6, True)])
def test_a_rate_outside_of_it_is_unusual(rate: float, is_unusual: bool) -> None:
    for weeks in range(1, 9):
        hour(36_000, weeks=weeks)
    found = usual_now(["s"], rate=rate, at=SUNDAY)
    assert found is not None
    assert found.is_unusual is is_unusual


@pytest.mark.parametrize(("minutes", "low", "high"), [(0, 0.85, 1.15), (6, 3.91, 5.29), (15, 8.5, 11.5)])
def test_minutes_of_the_hour_before_are_judged_by_that_hour(minutes: int, low: float, high: float) -> None:
    for weeks in range(1, 9):
        hour(36_000, weeks=weeks)
        hour(3_600, weeks=weeks, hours=1)
    found = usual_now(["s"], rate=5.0, at=HOUR + timedelta(minutes=minutes))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high))


def test_chance_alone_is_rarely_unusual_and_one_odd_week_moves_nothing() -> None:
    chance = random.Random(5)

    def counted(mean: float) -> int:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))

    outside = 0
    for _ in range(500):
        low, high = band([*(counted(400) for _ in range(7)), 10**6])
        outside += not low <= counted(400) <= high
    assert outside <= 15
