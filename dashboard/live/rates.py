"""How fast streams move, from what the worker samples once a second: figures and lines are means of ten seconds.

The worker samples what changed: a second without a sample is one in which nothing moved, unless nobody sampled in it.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from dashboard import formats
from dashboard.live.lately import SHARED_S, SPAN_S, samples
from dashboard.live.means import CARRY_S, MEAN_S, Course, Moved, mean_of, means
from dashboard.live.silent import silent_in
from dashboard.live.unavailable import left_out
from dashboard.shown import MINUTE_S
from dashboard.stream_rows import UNKNOWN, Rates, StreamRow
from streams import selectors
from streams.access import Caller
from streams.log.stats import Figures
from streams.models import Stream
from streams.selectors import METRICS_STREAM, Sampling

LIVE_CHART_S = 15 * 60
AT_REST = Moved(at_s=0.0, rate_in=0.0, bytes_in=0.0, rate_out=0.0)
"""What a stream has that nothing tells of."""


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a workspace: its label, in the active zone, and its average rates; None where nobody counted."""

    label: str
    rate_in: float | None
    rate_out: float | None
    bytes_in: float | None


Line = list[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """A workspace's rates in each second (unix) of the last quarter of an hour and of the ten before; None where nobody
    counted.
    """

    times: list[int]
    rate_in: Line
    rate_out: Line
    bytes_in: Line

    def within(self, since_s: float, until_s: float) -> "Series":
        """The part between two moments (unix seconds)."""
        return self._part(slice(bisect_left(self.times, int(since_s)), bisect_right(self.times, until_s)))

    @property
    def mean_in(self) -> float | None:
        """As ``selectors.rate_lately`` of the quarter of an hour in which it ends."""
        lately = self.rate_in[-LIVE_CHART_S:]
        unsampled_s = lately.count(None) + LIVE_CHART_S - len(lately)
        return selectors.rate_lately(sum(filter(None, lately)), unsampled_s=unsampled_s)

    @property
    def lines(self) -> dict[str, Line]:
        """By the fields of ``live_events.OverviewSampled``."""
        return {
            "rate_in": self.rate_in,
            "rate_out": self.rate_out,
            "bytes_in": self.bytes_in,
        }

    @property
    def means(self) -> "Series":
        """What the figures said at each second of the last quarter of an hour."""
        return Series(self.times, *(means(line) for line in self.lines.values()))._part(
            slice(-LIVE_CHART_S, None)
        )

    @property
    def by_minute(self) -> list[Minute]:
        """The newest minute first, from the first that there is a sample of; each second counts once."""
        lately = self._part(slice(-LIVE_CHART_S, None))
        minutes: dict[int, list[int]] = {}
        for place, second in enumerate(lately.times):
            minutes.setdefault(second // MINUTE_S * MINUTE_S, []).append(place)
        return [
            Minute(
                formats.clock(start * 1000)[11:16],
                *(mean_of(line[places[0] : places[-1] + 1]) for line in lately.lines.values()),
            )
            for start, places in sorted(minutes.items(), reverse=True)
        ]

    def _part(self, places: slice) -> "Series":
        return Series(self.times[places], *(line[places] for line in self.lines.values()))


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
    unavailable: int = 0

    @property
    def left_out(self) -> str:
        """How many streams are in none of the sums, as their server does not answer."""
        return left_out(self.unavailable)


def _sampled_since_s() -> float:
    """Unix seconds since when there are samples at all; before that the rates are not known."""
    created = (
        Stream.objects.filter(name=METRICS_STREAM, internal=True).values_list("created_at", flat=True).first()
    )
    return created.timestamp() if created else 0.0


def per_second(
    points: Sequence[tuple[float, float]], *, until_s: int, seconds: int, unsampled: Collection[int]
) -> list[float | None]:
    """One value a second up to ``until_s`` (included) from (unix seconds, rate); short gaps carry the last rate on, and
    None stands where nobody counted.
    """
    first = until_s - seconds + 1
    values = [None if first + place in unsampled else 0.0 for place in range(seconds)]
    for index, (at_s, rate) in enumerate(points):
        following = points[index + 1][0] if index + 1 < len(points) else until_s + 1
        begin = int(at_s)
        end = int(following) if following - at_s <= CARRY_S else begin + 1
        for second in range(begin, max(end, begin + 1)):
            if first <= second <= until_s:
                values[second - first] = rate
    return values


def workspace_series(caller: Caller, *, now_s: float | None = None) -> Series:
    """The sum over the streams that a caller may see; rest is drawn as nought, as far as somebody sampled."""
    until_s = int(selectors.sampling().known_until_ms / 1000 if now_s is None else now_s)
    found, cut_ms = selectors.flow_of(caller)
    flows = [(flow.at_ms / 1000, flow) for flow in found]
    if flows and 0 <= until_s - flows[-1][0] <= CARRY_S:
        until_s = int(flows[-1][0])  # what came since then is not known yet
    since_s = int(max(until_s - LIVE_CHART_S - MEAN_S + 1, _sampled_since_s(), (cut_ms or 0) / 1000))
    silent = silent_in(since_ms=since_s * 1000, until_ms=until_s * 1000)
    lines = (
        per_second(
            [(at_s, rate_of(flow)) for at_s, flow in flows],
            until_s=until_s,
            seconds=max(0, until_s - since_s + 1),
            unsampled=silent.seconds,
        )
        for rate_of in (attrgetter("rate_in"), attrgetter("rate_out"), attrgetter("bytes_in"))
    )
    return Series(list(range(since_s, until_s + 1)), *lines)


def rows(streams: Sequence[Stream]) -> list[StreamRow]:
    """Streams as the pages show them, with the rates of the last minute."""
    now = time.time()
    seen = selectors.sampling()
    silent = silent_in(since_ms=int((now - SPAN_S - MEAN_S) * 1000), until_ms=int(now * 1000))
    courses = samples.since((stream.stream_id for stream in streams), since_s=now - SPAN_S - MEAN_S)
    return [
        StreamRow(
            view,
            _rates(courses.get(view.stream.stream_id), seen=seen, unsampled=silent.seconds)
            if view.is_reachable
            else UNKNOWN,
        )
        for view in selectors.stream_views(streams)
    ]


def _rates(course: Course | None, *, seen: Sampling, unsampled: Collection[int]) -> Rates:
    now = _now(course, seen=seen)
    told = Rates(
        rate_in=now.rate_in,
        bytes_in=now.bytes_in,
        rate_out=now.rate_out,
        arriving=_arriving(course, seen=seen),
    )
    if course is None:
        return told
    points = [(point.at_s, point.rate_in) for point in course]
    until_s = seen.known_until_ms // 1000
    seconds = per_second(points, until_s=until_s, seconds=SPAN_S + MEAN_S, unsampled=unsampled)
    return replace(told, last_minute=_after_silence(means(seconds)[MEAN_S:]))


def _now(course: Course | None, *, seen: Sampling) -> Moved | Rates:
    if not seen.is_going_on:
        return UNKNOWN
    return AT_REST if course is None else course.mean_now(seen.now_ms / 1000)


def _arriving(course: Course | None, *, seen: Sampling) -> float:
    """Messages that may come in a minute, as ``StreamRow.arriving``.

    Neither rate does alone: by that of ten seconds, fifty messages that came at once would be three hundred a minute;
    by that of a minute, a stream that has come to rest would go on.
    """
    now = _now(course, seen=seen)
    if course is None or not now.rate_in:
        return 0.0
    lately = course.mean_now(seen.now_ms / 1000, over_s=MINUTE_S)
    return MINUTE_S * min(now.rate_in, lately.rate_in)


def _after_silence(line: Line) -> list[float]:
    """What is known without a gap up to the end."""
    known: list[float] = []
    for rate in reversed(line):
        if rate is None:
            break
        known.append(rate)
    return known[::-1]


def moving_of(caller: Caller) -> Moved:
    """How fast the streams that a caller may see move together now."""
    flows, _ = selectors.flow_of(caller, most=MEAN_S + 1)
    course = Course(Moved(each.at_ms / 1000, each.rate_in, each.bytes_in, each.rate_out) for each in flows)
    return course.mean_now(time.time())


def arriving(stream_ids: Collection[str]) -> dict[str, float]:
    """Messages that may come in a minute, as ``StreamRow.arriving``, by the streams' internal ids."""
    seen = selectors.sampling()
    courses = samples.since(stream_ids, since_s=time.time() - SPAN_S - MEAN_S)
    return {each: _arriving(courses.get(each), seen=seen) for each in stream_ids}


def totals(caller: Caller, *, counted: Sequence[Figures] | None = None) -> Totals:
    """The sums over the streams that a caller may see, now.

    Args:
        counted: of all of them, where that has just been read.
    """
    overview = selectors.overview(caller, counted=counted)
    seen = selectors.sampling()
    moving = moving_of(caller) if seen.is_going_on else UNKNOWN
    return Totals(
        at_ms=seen.at_ms,
        streams=overview.streams,
        messages=overview.messages,
        bytes=overview.bytes,
        rate_in=moving.rate_in,
        rate_out=moving.rate_out,
        bytes_in=moving.bytes_in,
        last_ms=overview.last_ms,
        unavailable=selectors.streams_away(caller),
    )


def moving_now() -> dict[str, Moved]:
    """How fast each stream moves that is not at rest, by its internal id."""
    return samples.means()


def moving_lately(stream_ids: Iterable[str]) -> dict[str, Moved]:
    """As ``moving_now`` of these, and up to half a second old: the cost does not follow how many ask."""
    return samples.means(stream_ids, shared_s=SHARED_S)
