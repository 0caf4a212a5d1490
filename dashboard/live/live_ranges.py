"""Which part of the last hours a live chart shows: from the query string, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard import formats
from dashboard.history.history_ranges import CUSTOM, Choice, RangeForm

RANGES: dict[str, tuple[Any, int]] = {
    "15m": (_("15 min"), 900),
    "1h": (_("1 h"), 3600),
    "6h": (_("6 h"), 21_600),
}
DEFAULT_RANGE = "15m"
ONLY_DEFAULT = {DEFAULT_RANGE: RANGES[DEFAULT_RANGE]}
"""Of what is kept for no longer."""

TABLE_STEPS_S = ((900, 60), (3600, 300))
"""The table of a range of up to so many seconds has rows of so many; of a longer one a quarter of an hour each."""


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A span of the last hours; one of one's own stands still, the others go on with what arrives.

    Attributes:
        ranges: what else may be chosen, by its id.
    """

    id: str
    since: datetime
    until: datetime
    ranges: Mapping[str, tuple[Any, int]]

    @property
    def is_live(self) -> bool:
        return self.id != CUSTOM

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    @property
    def since_ms(self) -> int:
        return int(self.since.timestamp() * 1000)

    @property
    def until_ms(self) -> int:
        return int(self.until.timestamp() * 1000)

    @property
    def choices(self) -> list[Choice]:
        return [Choice(id, label) for id, (label, _seconds) in self.ranges.items()]

    @property
    def label(self) -> str:
        """``last 15 min``, or from when to when."""
        if self.is_live:
            return str(_("last %(span)s") % {"span": self.ranges[self.id][0]})
        first, last = (formats.clock(ms)[11:19] for ms in (self.since_ms, self.until_ms))
        return f"{first} – {last}"

    @property
    def table_step_s(self) -> int:
        return next((step for most, step in TABLE_STEPS_S if self.seconds <= most), 900)

    def seed(
        self, times: Sequence[float], turns: Sequence[tuple[int, str]], *, step_s: int
    ) -> dict[str, Any]:
        """What a chart begins with, but for its lines (see ``static/js/charts.js``)."""
        return {
            "times": list(times),
            "step_s": step_s,
            "window_s": self.seconds,
            "gap_s": 2.5 * max(step_s, 10),
            "span": None if self.is_live else [self.since_ms / 1000, self.until_ms / 1000],
            "marks": [[at_ms / 1000, text] for at_ms, text in turns],
        }


def live_range_of(
    query: QueryDict, *, now: datetime, ranges: Mapping[str, tuple[Any, int]] = RANGES
) -> LiveRange:
    """The range that a query string asks for; what is unknown, or ended before the longest, is the default.

    Args:
        ranges: what may be chosen, the default among it: label and seconds by id.
    """
    oldest = now - timedelta(seconds=max(seconds for _label, seconds in ranges.values()))
    span = RangeForm(query, now=now).span
    if span and span[1] > oldest:
        return LiveRange(CUSTOM, max(span[0], oldest), span[1], ranges)
    chosen = query.get("range", DEFAULT_RANGE)
    if chosen not in ranges:
        chosen = DEFAULT_RANGE
    return LiveRange(chosen, now - timedelta(seconds=ranges[chosen][1]), now, ranges)
