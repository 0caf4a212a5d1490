"""When a stream is busy: the mean of each hour of each weekday, in the zone of the page."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR

from dashboard import formats
from streams.models.history import Step

HOUR = timedelta(hours=1)
SHORTEST, LONGEST = timedelta(days=7), timedelta(days=366)
"""Shorter than a week there is no week to show; of a longer range the last year is."""

LEVELS = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """An hour of a weekday: messages in the mean, and how that stands to the busiest one, from 0 (none) to ``LEVELS``.

    ``mean`` is None where no such hour of the range is counted.
    """

    hour: int
    mean: float | None
    level: int

    @property
    def text(self) -> str:
        """The mean in four characters or less, so that a week fits a screen: ``7.5``, ``890``, ``41k``."""
        if self.mean is None:
            return formats.UNKNOWN
        value, unit = self.mean, ""
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size * 0.9995:
                value, unit = value / size, letter
                break
        return f"{value:.1f}".removesuffix(".0") + unit if value < 9.95 else f"{value:.0f}{unit}"


@dataclass(frozen=True, slots=True)
class Day:
    """A weekday with its 24 hours."""

    name: Any
    short: Any
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Week:
    """The week that a range comes to, of whole hours that end by ``until``; no days where there is none."""

    days: Sequence[Day]
    until: datetime

    @property
    def has_unknown(self) -> bool:
        """Whether of some hour of the week nothing is known."""
        return any(cell.mean is None for day in self.days for cell in day.cells)


def begin_of(since: datetime | None, until: datetime) -> datetime | None:
    """From when on a range is shown as a week; None where it is too short."""
    if since is not None and until - since < SHORTEST:
        return None
    return max(since, until - LONGEST) if since else until - LONGEST


def week_of(hours: Iterable[tuple[datetime, int]], *, until: datetime) -> Week:
    """The week that hours of a range come to (begin and messages, ascending).

    The hours before the first one are not counted as silent: the stream, or its history, may not have been there. Nor
    are those after ``until``, up to when all is counted; the one that this is within is no whole one.
    """
    until = Step.HOUR.floor(until)
    told = [(start, messages) for start, messages in hours if start < until]
    if not told:
        return Week([], until)
    sums: Counter[tuple[int, int]] = Counter()
    for start, messages in told:
        sums[_place(start)] += messages
    times: Counter[tuple[int, int]] = Counter()
    at = told[0][0]
    while at < until:
        times[_place(at)] += 1
        at += HOUR
    means = {place: sums[place] / count for place, count in times.items()}
    peak = max(means.values())
    days = [
        Day(
            WEEKDAYS[day],
            WEEKDAYS_ABBR[day],
            [_cell(hour, means.get((day, hour)), peak) for hour in range(24)],
        )
        for day in range(7)
    ]
    return Week(days, until)


def _place(moment: datetime) -> tuple[int, int]:
    local = formats.local(moment)
    return local.weekday(), local.hour


def _cell(hour: int, mean: float | None, peak: float) -> Cell:
    level = math.ceil(mean / peak * LEVELS) if mean and peak else 0
    return Cell(hour, mean, level)
