"""How many messages a stream holds over time, in bars of a round length; counted by offset, not by reading."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext as _

from dashboard import formats
from streams import selectors
from streams.access import Caller
from streams.models import Event, Stream

MOST_BARS = 72
MOST_EVENTS = 50
LEAST_SPAN_MS = 60_000
"""Of a whole stream, however young it is: bars of a second."""

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14, 28, 91, 182, 364, 728, 3640, 36_400)),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """The messages from a moment (unix ms) to below another; ``offset`` is the first of them."""

    start_ms: int
    end_ms: int
    offset: int
    count: int

    @property
    def query(self) -> dict[str, str]:
        """The query parameters that show these messages."""
        return {"start": "time", "at": formats.iso(self.start_ms), "until": formats.iso(self.end_ms)}


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the time axis: a fraction of its length, and what stands there."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars of ``step_ms`` side by side; ``zoomed`` when they show a chosen span and not the whole stream."""

    bars: list[Bar]
    step_ms: int
    marks: list[Mark]
    zoomed: bool

    @property
    def peak(self) -> int:
        return max((bar.count for bar in self.bars), default=0)

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def start_ms(self) -> int:
        return self.bars[0].start_ms

    @property
    def end_ms(self) -> int:
        return self.bars[-1].end_ms

    @property
    def step(self) -> str:
        """The length of a bar in words."""
        return f"{self.step_ms} ms" if self.step_ms < _SECOND else formats.duration(self.step_ms / 1000)


def step_for(span_ms: int) -> int:
    """The shortest round step that covers a span in at most ``MOST_BARS`` bars, wherever the span begins."""
    return next((step for step in STEPS_MS if span_ms <= step * (MOST_BARS - 1)), STEPS_MS[-1])


def edges(first_ms: int, last_ms: int) -> list[int]:
    """The edges of the bars that hold both moments, at multiples of a round step."""
    step = step_for(last_ms - first_ms)
    start = first_ms // step * step
    return [start + step * n for n in range((last_ms - start) // step + 2)]


def timeline_of(
    caller: Caller,
    stream: Stream,
    *,
    first_ms: int,
    last_ms: int,
    zoomed: bool = False,
    retained_from_ms: int | None = None,
) -> Timeline:
    """The volume from one moment to another (unix ms, both included), with what else is known of that span.

    Of a whole stream it begins a minute before the end at the latest.
    """
    begin = first_ms if zoomed else min(first_ms, last_ms - LEAST_SPAN_MS)
    times = edges(begin, last_ms)
    offsets = selectors.offsets_at(stream, times)
    counts = selectors.messages_between(stream, offsets)
    bars = [
        Bar(start, end, offset, count)
        for start, end, offset, count in zip(times, times[1:], offsets, counts, strict=False)
    ]
    marks = [
        *_of_retention(times, retained_from_ms),
        *_of_groups(stream, bars),
        *_of_events(caller, stream, times),
    ]
    return Timeline(bars, times[1] - times[0], marks, zoomed)


def _of_retention(times: Sequence[int], edge_ms: int | None) -> list[Mark]:
    if edge_ms is None or not times[0] <= edge_ms <= times[-1]:
        return []
    return [
        Mark(
            (edge_ms - times[0]) / (times[-1] - times[0]),
            "edge",
            _("Retention edge: next to be removed by age"),
        )
    ]


def _of_groups(stream: Stream, bars: Sequence[Bar]) -> list[Mark]:
    """Where each group has got to: its place within the bar that holds its next offset, by number."""
    marks = []
    for name, delivered in selectors.group_positions(stream):
        for place, bar in enumerate(bars):
            if bar.count and bar.offset <= delivered < bar.offset + bar.count:
                fraction = (place + (delivered - bar.offset + 1) / bar.count) / len(bars)
                marks.append(
                    Mark(
                        fraction,
                        "group",
                        _("%(group)s has read to offset %(offset)s")
                        % {"group": name, "offset": formats.count(delivered)},
                    )
                )
    return marks


def turns_of(
    caller: Caller, stream: Stream, *, since_ms: int | None, until_ms: int, group: str | None = None
) -> list[tuple[int, str]]:
    """What was done to a stream in a span, as a caller may see it: when (unix ms), and what by whom; the newest first.

    Args:
        group: only what concerns this group, or the stream as a whole.
    """
    since = None if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC)
    until = datetime.fromtimestamp(until_ms / 1000, UTC)
    found = selectors.stream_turns(caller, stream, since=since, until=until, limit=MOST_EVENTS, group=group)
    return _told(found)


def turns_in(caller: Caller, *, since: datetime, until: datetime) -> list[tuple[int, str]]:
    """What was done to the streams of a workspace and to the processes in a span, as ``turns_of`` tells it."""
    return _told(selectors.workspace_turns(caller, since=since, until=until, limit=MOST_EVENTS))


def _told(events: Sequence[Event]) -> list[tuple[int, str]]:
    told = []
    for event in events:
        at_ms = int(event.time.timestamp() * 1000)
        told.append((at_ms, f"{event.summary} {event.actor}, {formats.moment(at_ms)}"))
    return told


def _of_events(caller: Caller, stream: Stream, times: Sequence[int]) -> list[Mark]:
    span = times[-1] - times[0]
    turns = turns_of(caller, stream, since_ms=times[0], until_ms=times[-1] + 1)
    return [Mark((at_ms - times[0]) / span, "event", text) for at_ms, text in turns]


def retained_from_ms(stream: Stream) -> int | None:
    """The moment (unix ms) before which messages are too old to be kept; None without an age limit."""
    return None if stream.ttl is None else int(time.time() * 1000) - stream.ttl * 1000
