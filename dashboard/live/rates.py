"""How fast streams move, from what the worker samples once a second: figures and lines are means of ten seconds.

A second without a sample is a second in which nothing moved: the worker samples what changed.
"""

import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from dashboard import formats
from dashboard.live.lately import SHARED_S, SPAN_S, samples
from dashboard.live.means import CARRY_S, MEAN_S, Course, Moved, means
from dashboard.shown import MINUTE_S
from dashboard.stream_rows import UNKNOWN, Rates, StreamRow
from streams import selectors
from streams.access import Caller
from streams.log.stats import Figures
from streams.models import Stream, Workspace
from streams.selectors import METRICS_STREAM, Sampling

LIVE_CHART_S = 15 * 60
AT_REST = Moved(at_s=0.0, rate_in=0.0, bytes_in=0.0, rate_out=0.0)
"""What a stream has that nothing tells of."""


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a workspace: its label, in the active zone, and its average rates."""

    label: str
    rate_in: float
    rate_out: float
    bytes_in: float


@dataclass(frozen=True, slots=True)
class Series:
    """A workspace's rates over the last quarter of an hour, and the ten seconds before; times are unix seconds."""

    times: list[float]
    rate_in: list[float]
    rate_out: list[float]
    bytes_in: list[float]

    def within(self, since_s: float, until_s: float) -> "Series":
        """The part between two moments (unix seconds), to which what was told last before them goes on."""
        times = [since_s, *(each for each in self.times if since_s < each < until_s), until_s]
        places = [max(0, bisect_right(self.times, each) - 1) for each in times]
        return Series(times, *([line[place] for place in places] for line in self.lines.values()))

    @property
    def mean_in(self) -> float:
        """Messages a second over the last quarter of an hour, or since when it is known; each second counts once."""
        if not self.times:
            return 0.0
        last = int(self.times[-1])
        seconds = min(LIVE_CHART_S, last - int(self.times[0]) + 1)
        points = list(zip(self.times, self.rate_in, strict=True))
        return fmean(per_second(points, until_s=last, seconds=seconds))

    @property
    def lines(self) -> dict[str, list[float]]:
        """By the fields of ``live_events.OverviewSampled``."""
        return {
            "rate_in": self.rate_in,
            "rate_out": self.rate_out,
            "bytes_in": self.bytes_in,
        }

    @property
    def means(self) -> "Series":
        """What the figures said at each second of the last quarter of an hour."""
        if not self.times:
            return self
        first, last = int(self.times[0]), int(self.times[-1])
        seconds = last - first + 1
        told = (
            means(per_second(list(zip(self.times, line, strict=True)), until_s=last, seconds=seconds))
            for line in (self.rate_in, self.rate_out, self.bytes_in)
        )
        times = [float(second) for second in range(first, last + 1)]
        return Series(*(each[-LIVE_CHART_S:] for each in (times, *told)))

    @property
    def by_minute(self) -> list[Minute]:
        """The newest minute first, from the first that there is a sample of; each second counts once."""
        if not self.times:
            return []
        minutes = []
        last = int(self.times[-1])
        told = [
            per_second(list(zip(self.times, rates, strict=True)), until_s=last, seconds=LIVE_CHART_S)
            for rates in (self.rate_in, self.rate_out, self.bytes_in)
        ]
        first = last - LIVE_CHART_S + 1
        for start in range(last // 60 * 60, max(first, int(self.times[0]) - 60), -60):
            inside = slice(max(0, start - first), start - first + 60)
            label = formats.clock(int(start) * 1000)[11:16]
            minutes.append(Minute(label, *(fmean(each[inside]) for each in told)))
        return minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A workspace in figures; the names are those of ``live_events.OverviewSampled``.

    ``at_ms`` is of the newest samples, None where there are none; the rates are None where that is long ago.
    """

    at_ms: int | None
    streams: int
    messages: int
    bytes: int
    rate_in: float | None
    rate_out: float | None
    bytes_in: float | None
    last_ms: int | None


def _sampled_since_s() -> float:
    """Unix seconds since when there are samples at all; before that the rates are not known."""
    created = (
        Stream.objects.filter(name=METRICS_STREAM, internal=True).values_list("created_at", flat=True).first()
    )
    return created.timestamp() if created else 0.0


def per_second(points: Sequence[tuple[float, float]], *, until_s: int, seconds: int) -> list[float]:
    """One value a second up to ``until_s`` (included) from (unix seconds, rate); short gaps carry the last rate on."""
    values = [0.0] * seconds
    first = until_s - seconds + 1
    for index, (at_s, rate) in enumerate(points):
        following = points[index + 1][0] if index + 1 < len(points) else until_s + 1
        begin = int(at_s)
        end = int(following) if following - at_s <= CARRY_S else begin + 1
        for second in range(begin, max(end, begin + 1)):
            if first <= second <= until_s:
                values[second - first] = rate
    return values


def workspace_series(workspace: Workspace, *, now_s: float | None = None) -> Series:
    """The sum over a workspace's streams; silence is drawn as nought, as far as somebody sampled."""
    now_s = selectors.sampling().known_until_ms / 1000 if now_s is None else now_s
    since_s = max(now_s - LIVE_CHART_S - MEAN_S, _sampled_since_s())
    series = Series([], [], [], [])

    def add(at_s: float, rate_in: float = 0.0, rate_out: float = 0.0, bytes_in: float = 0.0) -> None:
        series.times.append(at_s)
        series.rate_in.append(rate_in)
        series.rate_out.append(rate_out)
        series.bytes_in.append(bytes_in)

    add(since_s)
    for flow in selectors.flow_of(workspace):
        at_s = flow.at_ms / 1000
        if at_s < since_s:
            continue
        if at_s - series.times[-1] > CARRY_S:
            add(series.times[-1] + 1)
            add(at_s - 1)
        add(at_s, flow.rate_in, flow.rate_out, flow.bytes_in)
    if now_s - series.times[-1] > CARRY_S:
        add(series.times[-1] + 1)
        add(now_s)
    return series


def rows(streams: Sequence[Stream]) -> list[StreamRow]:
    """Streams as the pages show them, with the rates of the last minute."""
    now = time.time()
    seen = selectors.sampling()
    courses = samples.since((stream.stream_id for stream in streams), since_s=now - SPAN_S - MEAN_S)
    return [
        StreamRow(
            view, _rates(courses.get(view.stream.stream_id), seen=seen) if view.is_reachable else UNKNOWN
        )
        for view in selectors.stream_views(streams)
    ]


def _rates(course: Course | None, *, seen: Sampling) -> Rates:
    if course is None:
        return Rates() if seen.is_going_on else UNKNOWN
    points = [(point.at_s, point.rate_in) for point in course]
    until_s = seen.known_until_ms // 1000
    last_minute = means(per_second(points, until_s=until_s, seconds=SPAN_S + MEAN_S))[MEAN_S:]
    if not seen.is_going_on:
        return replace(UNKNOWN, last_minute=last_minute)
    mean = course.mean_now(seen.now_ms / 1000)
    return Rates(
        rate_in=mean.rate_in, bytes_in=mean.bytes_in, rate_out=mean.rate_out, last_minute=last_minute
    )


def moving_of(workspace: Workspace) -> Moved:
    """How fast a workspace's streams move together now."""
    flows = selectors.flow_of(workspace, most=MEAN_S + 1)
    course = Course(Moved(each.at_ms / 1000, each.rate_in, each.bytes_in, each.rate_out) for each in flows)
    return course.mean_now(time.time())


def arriving(stream_ids: Collection[str]) -> dict[str, float]:
    """Messages that come in a minute at the rate of now, as ``StreamRow.arriving``, by the streams' internal ids."""
    seen = selectors.sampling()
    courses = samples.since(stream_ids, since_s=time.time() - SPAN_S - MEAN_S)
    return {each: MINUTE_S * (_rates(courses.get(each), seen=seen).rate_in or 0.0) for each in stream_ids}


def totals(caller: Caller, *, counted: Sequence[Figures] | None = None) -> Totals:
    """The sums over a workspace's streams, now.

    Args:
        counted: of all of them, where that has just been read.
    """
    overview = selectors.overview(caller, counted=counted)
    seen = selectors.sampling()
    moving = moving_of(caller.workspace) if seen.is_going_on else UNKNOWN
    return Totals(
        at_ms=seen.at_ms,
        streams=overview.streams,
        messages=overview.messages,
        bytes=overview.bytes,
        rate_in=moving.rate_in,
        rate_out=moving.rate_out,
        bytes_in=moving.bytes_in,
        last_ms=overview.last_ms,
    )


def moving_now() -> dict[str, Moved]:
    """How fast each stream moves that is not at rest, by its internal id."""
    return samples.means()


def moving_lately(stream_ids: Iterable[str]) -> dict[str, Moved]:
    """As ``moving_now`` of these, and up to half a second old: the cost does not follow how many ask."""
    return samples.means(stream_ids, shared_s=SHARED_S)
