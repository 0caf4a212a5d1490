"""The chart of what comes into a stream and what is done with, and the table that says the same."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard import formats, timelines
from dashboard.live.live_ranges import LiveRange
from dashboard.live.means import MEAN_S, mean_of, means
from dashboard.live.silent import Silent, silent_in
from streams import selectors
from streams.access import Caller
from streams.models import Stream
from streams.selectors import SampledStep

STEPS_S = ((900, 1), (3600, 5))
"""A range of up to so many seconds has a point in so many; a longer one in thirty."""

LOOK_S = 0.15
"""How long samples are read for a page."""


@dataclass(frozen=True, slots=True)
class RateRow:
    """The mean of a step of the table; None where nobody counted."""

    label: str
    rate_in: float | None
    rate_out: float | None
    bytes_in: float | None


@dataclass(frozen=True, slots=True)
class RateChart:
    """What the page shows: a point a step, oldest first, and what was done meanwhile (unix ms, and what by whom).

    Attributes:
        lines: what the figures said at each point, by the fields of ``live_events.StreamSampled``.
        lately: messages a second in the last quarter of an hour; None where too little of it was counted or read.
        cut_ms: what is shown begins here (unix ms), since more samples than can be read at once lie before it.
    """

    asked: LiveRange
    step_s: int
    points: list[SampledStep]
    lines: dict[str, list[float | None]]
    turns: list[tuple[int, str]]
    silent: Silent
    lately: float | None = None
    cut_ms: int | None = None

    @property
    def seed(self) -> dict[str, Any]:
        seed = self.asked.seed([point.at_ms / 1000 for point in self.points], self.turns, step_s=self.step_s)
        return seed | self.lines

    @property
    def rows(self) -> list[RateRow]:
        """The mean of each step, the newest first."""
        step_ms = self.asked.table_step_s * 1000
        steps: dict[int, list[SampledStep]] = {}
        for point in self.points:
            steps.setdefault(point.at_ms // step_ms * step_ms, []).append(point)
        return [
            RateRow(
                formats.clock(start_ms)[11:16],
                mean_of(point.messages_in for point in inside),
                mean_of(point.messages_out for point in inside),
                mean_of(point.bytes_in for point in inside),
            )
            for start_ms, inside in sorted(steps.items(), reverse=True)
        ]


def rate_chart_of(caller: Caller, stream: Stream, asked: LiveRange, *, now: datetime) -> RateChart:
    """A stream's rates over a range, from the worker's samples of it."""
    step_s = next((step for most, step in STEPS_S if asked.seconds <= most), 30)
    now_ms = int(now.timestamp() * 1000)
    first_ms = asked.since_ms - MEAN_S * 1000
    samples, cut_ms = selectors.newest_samples(stream, since_ms=first_ms, seconds=LOOK_S)
    silent = silent_in(since_ms=first_ms, until_ms=now_ms)
    until_ms = min(now_ms, selectors.sampling().known_until_ms)
    read = selectors.by_step(samples, now_ms=until_ms, step_s=step_s, unsampled=silent.seconds)
    rates = {
        "rate_in": [point.messages_in for point in read],
        "rate_out": [point.messages_out for point in read],
        "bytes_in": [point.bytes_in for point in read],
    }
    shown = [place for place, point in enumerate(read) if asked.since_ms <= point.at_ms <= asked.until_ms]
    told = {field: means(line, step_s=step_s) for field, line in rates.items()}
    return RateChart(
        asked,
        step_s,
        [read[place] for place in shown],
        {field: [line[place] for place in shown] for field, line in told.items()},
        timelines.turns_of(caller, stream, since_ms=asked.since_ms, until_ms=asked.until_ms),
        silent,
        selectors.lately_in(samples, since_ms=cut_ms or first_ms, now_ms=now_ms, unsampled=silent.seconds),
        cut_ms,
    )
