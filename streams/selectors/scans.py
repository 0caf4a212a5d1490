"""How much of some windows was looked at as a whole, by which run and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from streams.models import Rollup


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What figures of windows as a whole are from.

    Attributes:
        messages: that were looked at.
        unscanned: that have been counted since, or in windows that nobody has looked at yet.
        time, run_id: of the newest look; None where a version before took it, or there is none.
    """

    messages: int
    unscanned: int
    time: datetime | None
    run_id: int | None

    @property
    def total(self) -> int:
        """What there is to look at; what was erased is not among it, though the sums count it."""
        return self.messages + self.unscanned


def scan_of(points: Sequence[Rollup]) -> Scan:
    """What the figures of some windows are from, taken together."""
    looks = [(each.look_time, each.look_run_id) for each in points if each.look_time is not None]
    time, run_id = max(looks, key=lambda look: look[0], default=(None, None))
    return Scan(
        messages=sum(each.messages_scanned for each in points),
        unscanned=sum(each.messages_unscanned for each in points),
        time=time,
        run_id=run_id,
    )
