"""How fast something moves, as the pages say it: by the mean of the last ten seconds, as alerts judge it.

A sample tells what moved since the one before, a second ago. Many publish in batches, and readers commit now and then:
the rate of one second of a steady stream may be double that of the next.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from statistics import fmean

from streams.log.lease import SILENT_FROM_MS

MEAN_S = 10
TICK_S = 1.0
CARRY_S = SILENT_FROM_MS / 1000
"""Up to here a rate is taken to go on; beyond it was nought, or nobody counted."""

WIDTH = 4
DECIMALS = 3
"""Of a rate, as in a sample: what is at rest is nought, and no rest of a sum."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What moved at a moment (unix seconds): messages and bytes published and messages done with, a second."""

    at_s: float
    rate_in: float
    bytes_in: float
    rate_out: float

    @property
    def is_moving(self) -> bool:
        return self.rate_in > 0 or self.rate_out > 0


class Course:
    """The samples of one stream, or of a workspace's sums, oldest first; in numbers only, as thousands are kept."""

    __slots__ = ("_numbers",)

    def __init__(self, moved: Iterable[Moved] = ()) -> None:
        self._numbers = array("d")
        for each in moved:
            self.add(each.at_s, each.rate_in, each.bytes_in, each.rate_out)

    def __iter__(self) -> Iterator[Moved]:
        return (Moved(*self._numbers[place : place + WIDTH]) for place in range(0, len(self._numbers), WIDTH))

    def add(self, at_s: float, rate_in: float, bytes_in: float, rate_out: float) -> None:
        """The next sample: unix seconds, and what moved a second since the one before."""
        self._numbers.extend((at_s, rate_in, bytes_in, rate_out))

    @property
    def newest_s(self) -> float:
        """When the newest sample was taken, in unix seconds."""
        return self._numbers[-WIDTH] if self._numbers else float("-inf")

    def since(self, at_s: float) -> "Course":
        """A copy of what is not older than this moment (unix seconds)."""
        course = Course()
        course._numbers = self._numbers[self._older(at_s) :]
        return course

    def forget(self, before_s: float) -> None:
        """Let go of what is older than this moment (unix seconds)."""
        del self._numbers[: self._older(before_s)]

    def _older(self, at_s: float) -> int:
        """How many numbers are of samples before a moment."""
        numbers, place = self._numbers, 0
        while place < len(numbers) and numbers[place] < at_s:
            place += WIDTH
        return place

    def mean(self, at_s: float, *, over_s: float = MEAN_S) -> Moved:
        """Of so many seconds before a moment (unix seconds)."""
        numbers, since_s = self._numbers, at_s - over_s
        rate_in = bytes_in = rate_out = 0.0
        for place in range(len(numbers) - WIDTH, -1, -WIDTH):
            sampled_s = numbers[place]
            if sampled_s <= since_s:
                break
            if sampled_s > at_s:
                continue
            # What was at rest is sampled again within a tick of its first message.
            was_moving = place and (numbers[place - WIDTH + 1] > 0 or numbers[place - WIDTH + 3] > 0)
            passed_s = sampled_s - numbers[place - WIDTH] if was_moving else TICK_S
            seconds = min(passed_s if passed_s <= CARRY_S else TICK_S, sampled_s - since_s)
            rate_in += seconds * numbers[place + 1]
            bytes_in += seconds * numbers[place + 2]
            rate_out += seconds * numbers[place + 3]
        return Moved(at_s, *(round(each / over_s, DECIMALS) for each in (rate_in, bytes_in, rate_out)))

    def mean_now(self, now_s: float, *, over_s: float = MEAN_S) -> Moved:
        """Of so many seconds before the newest sample, or before now where that is long ago or was one of rest."""
        numbers = self._numbers
        is_moving = bool(numbers) and (numbers[1 - WIDTH] > 0 or numbers[3 - WIDTH] > 0)
        is_going_on = is_moving and now_s - self.newest_s <= CARRY_S
        return self.mean(self.newest_s if is_going_on else now_s, over_s=over_s)


def means(rates: Sequence[float | None], *, step_s: int = 1) -> list[float | None]:
    """Of each of these rates of steps that follow each other, the mean of the ten seconds up to its end, or of itself
    where it is longer, as far as they are known (None is not); None where as long and longer nothing is.
    """
    steps = max(1, MEAN_S // step_s)
    sums = [0.0, *accumulate(rate or 0.0 for rate in rates)]
    unknown = [0, *accumulate(rate is None for rate in rates)]
    found: list[float | None] = []
    for is_unknown, run in groupby(rates, key=lambda rate: rate is None):
        length = len(list(run))
        if is_unknown and (length >= steps or not found):
            found += [None] * length
            continue
        for end in range(len(found) + 1, len(found) + length + 1):
            begin = max(0, end - steps)
            left = steps - (unknown[end] - unknown[begin])
            found.append(round((sums[end] - sums[begin]) / left, DECIMALS))
    return found


def mean_of(rates: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [rate for rate in rates if rate is not None]
    return fmean(known) if known else None
