"""The chart of a group's lag, in messages and in seconds, and the table that says the same."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboard import formats, timelines
from dashboard.live.live_ranges import LiveRange
from dashboard.live.silent import Silent, silent_in
from streams import selectors
from streams.access import Caller
from streams.selectors import GroupView, LagPoint
from streams.verdicts import EVERY_MS

LOOK_S = EVERY_MS // 1000
MINUTE_S = 60
LOOKS_KEPT = timedelta(hours=1)
LATE = 2.5
"""Looks so many steps apart are neighbours still; between others a group was at rest, or nobody looked."""


@dataclass(frozen=True, slots=True)
class LagRow:
    """The highest of a step of the table; None where nobody looked."""

    label: str
    lag: int | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A place of the lines (unix seconds); None where nobody looked."""

    at_s: float
    lag: int | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class LagChart:
    """What the page shows: the lines, oldest first, and what was done meanwhile (unix ms, and what by whom)."""

    asked: LiveRange
    step_s: int
    drawn: list[Drawn]
    turns: list[tuple[int, str]]
    silent: Silent

    @property
    def seed(self) -> dict[str, Any]:
        seed = self.asked.seed([each.at_s for each in self.drawn], self.turns, step_s=self.step_s)
        return seed | {
            "lag": [each.lag for each in self.drawn],
            "lag_seconds": [each.lag_seconds for each in self.drawn],
        }

    @property
    def rows(self) -> list[LagRow]:
        """The highest of each step, the newest first."""
        step_s = self.asked.table_step_s
        steps: dict[int, list[Drawn]] = {}
        for each in self.drawn:
            steps.setdefault(int(each.at_s) // step_s * step_s, []).append(each)
        return [
            LagRow(
                formats.clock(start_s * 1000)[11:16],
                max((each.lag for each in inside if each.lag is not None), default=None),
                max((each.lag_seconds for each in inside if each.lag_seconds is not None), default=None),
            )
            for start_s, inside in sorted(steps.items(), reverse=True)
        ]


def lag_chart_of(caller: Caller, view: GroupView, asked: LiveRange, *, now: datetime) -> LagChart:
    """A group's lag over a range, look by look where these are kept, else by the highest of each minute."""
    by_minute = asked.since < now - LOOKS_KEPT - timedelta(seconds=LOOK_S)
    step_s = MINUTE_S if by_minute else LOOK_S
    points = selectors.lag_trail(view, by_minute=by_minute)
    if asked.is_live:
        points.append(LagPoint(view.state.now_ms / 1000, view.state.lag, view.lag_seconds))
    silent = silent_in(since_ms=asked.since_ms, until_ms=asked.until_ms)
    drawn = drawn_of(
        points,
        since_s=asked.since.timestamp(),
        until_s=asked.until.timestamp(),
        step_s=step_s,
        unsampled=silent.seconds,
    )
    group = view.group
    turns = timelines.turns_of(
        caller, group.stream, since_ms=asked.since_ms, until_ms=asked.until_ms, group=group.name
    )
    return LagChart(asked, step_s, drawn, turns, silent)


def drawn_of(
    points: Sequence[LagPoint], *, since_s: float, until_s: float, step_s: int, unsampled: Collection[int]
) -> list[Drawn]:
    """The lines between two moments: a group that was at rest when it was seen last stayed so until the next look, but
    for the seconds in which nobody sampled.
    """
    drawn: list[Drawn] = []
    for place, point in enumerate(points):
        drawn.append(Drawn(point.at_s, point.lag, point.lag_seconds))
        is_last = place + 1 == len(points)
        next_s = until_s if is_last else points[place + 1].at_s
        if next_s - point.at_s <= LATE * step_s:
            continue
        if point.is_at_rest:
            begin_s = max(point.at_s, since_s - step_s)
            steps = int((next_s - begin_s) / step_s - 0.5)
            between = (begin_s + step * step_s for step in range(1, steps + 1))
            drawn += [
                Drawn(at_s, None, None) if int(at_s) in unsampled else Drawn(at_s, 0, 0.0) for at_s in between
            ]
        elif not is_last:
            drawn.append(Drawn(point.at_s + 1, None, None))
    return [each for each in drawn if since_s <= each.at_s <= until_s]
