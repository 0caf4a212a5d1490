"""When nobody counted: the worker that samples was away, hung, or could not reach the store."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import formats
from dashboard.live.means import MEAN_S
from streams import selectors
from streams.log.lease import Silence

MOST_TOLD = 3
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Silent:
    """The seconds (unix) of a range in which nobody counted, and the silences that leave a gap, newest first."""

    seconds: frozenset[int]
    gaps: Sequence[Silence]

    @property
    def told(self) -> Sequence[str]:
        """From when to when, of what a page names."""
        return [_span(each) for each in self.gaps[:MOST_TOLD]]

    @property
    def left(self) -> int:
        """How many it does not."""
        return len(self.gaps) - len(self.told)


def _span(silence: Silence) -> str:
    is_long = silence.until_ms - silence.since_ms >= DAY_MS
    since, until = (formats.clock(ms)[slice(0 if is_long else 11, 19)] for ms in silence)
    return f"{since} – {until}"


def silent_in(*, since_ms: int, until_ms: int) -> Silent:
    """Of a range (unix ms). What is shorter than the lines are means of leaves no gap in them."""
    found = selectors.silences_between(since_ms=since_ms, until_ms=until_ms)
    seconds = selectors.unsampled_seconds(found, since_ms=since_ms, until_ms=until_ms)
    gaps = [each for each in found if each.until_ms - each.since_ms > MEAN_S * 1000]
    return Silent(seconds, gaps[::-1])
