"""How far the groups of a stream lagged over a range of the history: charts, and the table that says the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.history.history_ranges import Asked, steps_of
from streams.selectors import GroupPast, GroupStep

MOST_CHARTS = 4


@dataclass(frozen=True, slots=True)
class LagRow:
    """One step of the table: how each group of the charts stood; None where it was not sampled."""

    start: datetime
    groups: Sequence[GroupStep | None]


@dataclass(frozen=True, slots=True)
class GroupLags:
    """The groups that lagged most, the worst first.

    Attributes:
        left: how many others there are.
        times: the begin of each step, unix seconds.
    """

    groups: Sequence[GroupPast]
    left: int
    times: Sequence[int]
    step_s: int

    @property
    def seed(self) -> dict[str, Any]:
        """The charts' columns: median and 99th percentile of each group's lag in seconds."""
        seed: dict[str, Any] = {"step_s": self.step_s, "times": self.times}
        for place, steps in enumerate(self._steps):
            found = [steps.get(at) for at in self.times]
            seed[f"p50_{place}"] = [each and each.lag_seconds.p50 for each in found]
            seed[f"p99_{place}"] = [each and each.lag_seconds.p99 for each in found]
        return seed

    @property
    def rows(self) -> list[LagRow]:
        """The steps in which any of the groups was sampled, newest first."""
        steps_of_groups = self._steps
        starts = {step.start for past in self.groups for step in past.steps}
        return [
            LagRow(start, [steps.get(int(start.timestamp())) for steps in steps_of_groups])
            for start in sorted(starts, reverse=True)
        ]

    @property
    def _steps(self) -> list[Mapping[int, GroupStep]]:
        return [{int(step.start.timestamp()): step for step in past.steps} for past in self.groups]


def group_lags_of(past: Sequence[GroupPast], asked: Asked, *, first: datetime | None) -> GroupLags | None:
    """The charts of a range; None where no group was sampled.

    Args:
        first: where the other charts of the page begin, if there are any.
    """
    if not past:
        return None
    worst = sorted(past, key=lambda each: (-(each.lag_seconds.p99 or 0), each.group))[:MOST_CHARTS]
    begin = asked.since or first or min(step.start for each in past for step in each.steps)
    return GroupLags(
        groups=worst,
        left=len(past) - len(worst),
        times=steps_of(begin, asked.until, step=asked.step),
        step_s=int(asked.length.total_seconds()),
    )
