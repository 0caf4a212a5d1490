"""What an alert rule would have done: over the samples that are kept, and before them by the minute."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from django.utils import timezone

from streams import alarms, store
from streams.alarms import EVERY_S, Span
from streams.log import read
from streams.models import AlertRule, Event, Group, Stream
from streams.selectors.alerts import is_about, limit_of, value_of
from streams.selectors.groups import reachable_views
from streams.selectors.messages import messages_from
from streams.selectors.minutes import MINUTE_S, Point, Series, Subject, groups_by_minute, rates_by_minute
from streams.selectors.samples import METRICS_STREAM
from streams.selectors.times import moment

MOST_RECORDS = 20_000
"""Records of samples that one look back reads: five and a half hours of a busy installation."""

RATES = frozenset({"rate_above", "rate_below"})
REACHES_BACK = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTest:
    """What a rule would have done.

    Attributes:
        since, until: the window that was looked at; None where nothing is kept of what the rule is about.
        sampled_since: from here on it was judged by samples, before that by the minute; None without samples.
        subjects: streams, or groups with samples, that it was about; a stream without a sample was silent.
        spans: the alerts that would have been, by their beginning.
    """

    since: datetime | None
    until: datetime
    sampled_since: datetime | None
    subjects: int
    spans: Sequence[Span]

    @property
    def longest_seconds(self) -> float:
        return max((span.seconds for span in self.spans), default=0.0)


class _Group(msgspec.Struct):
    lag: int = 0
    lag_seconds: float = 0.0
    dead: int = 0
    status: str = "unknown"
    edge: float | None = None
    quiet: float | None = None


class _Stream(msgspec.Struct):
    offset: int = 0
    messages_in: float = msgspec.field(name="in", default=0.0)


class _Record(msgspec.Struct):
    at: int
    streams: dict[str, _Stream] = {}
    groups: dict[str, dict[str, _Group]] = {}


_decode = msgspec.json.Decoder(_Record).decode


class _Inflow:
    """What came into a stream, by the ten seconds that the worker takes the mean of.

    A sample has the rate since the one before, which is a second of a stream that was at rest: how many came says for
    how long. The first one of a worker has no rate, and what came before it is not counted.
    """

    def __init__(self) -> None:
        self._counted: defaultdict[int, float] = defaultdict(float)
        self._before: tuple[float, int] | None = None

    def add(self, at_s: float, offset: int, rate: float) -> None:
        """The next sample: the newest offset, and messages a second."""
        before_s, before = self._before or (at_s - 1, offset - round(rate))
        self._before = at_s, offset
        messages = offset - before
        if rate <= 0 or messages <= 0:
            return
        began_s = max(before_s, at_s - messages / rate)
        for number in range(int(began_s // EVERY_S), int(at_s // EVERY_S) + 1):
            inside_s = min(at_s, (number + 1) * EVERY_S) - max(began_s, number * EVERY_S)
            self._counted[number] += messages * inside_s / (at_s - began_s)

    def rates(self, *, since_s: float, until_s: float) -> list[Point]:
        """The mean of each whole ten seconds at their end, where it is another than before, and the first."""
        first, stop = math.ceil(since_s / EVERY_S), int(until_s // EVERY_S)
        changes = {first} | self._counted.keys() | {number + 1 for number in self._counted}
        return [
            ((number + 1) * EVERY_S, self._counted.get(number, 0.0) / EVERY_S)
            for number in sorted(changes)
            if first <= number < stop
        ]


def back_test(rule: AlertRule, *, now_ms: int) -> BackTest:
    """What a rule, saved or not, would have done: over the newest ``MOST_RECORDS`` records of samples, and over the
    minutes that the history counted before them, of the last 30 days.

    A group at rest has no samples: its last value holds until now, or until it was deleted, and how long nobody fetched
    grows until then; for a rate, a minute without a row in the history is one of silence.
    """
    now_s = now_ms / 1000
    until = datetime.fromtimestamp(now_s, UTC)
    streams = {
        stream.stream_id: stream
        for stream in Stream.objects.filter(workspace=rule.workspace, internal=False)
        if is_about(rule, stream.name)
    }
    if rule.watch in RATES:
        there, by_minute = [], rates_by_minute
        sampled, sampled_ms = _sampled_rates(streams, until_s=now_s)
    else:
        there, by_minute = _groups(rule, streams), groups_by_minute
        sampled, sampled_ms = _sampled(rule, streams)
    sampled_since = None if sampled_ms is None else moment(sampled_ms)
    counted = by_minute(rule, since=until - REACHES_BACK, until=sampled_since or until)
    since = _began(counted) or sampled_since
    series = {each: [*counted.get(each, ()), *sampled.get(each, ())] for each in counted | sampled}
    if rule.watch == "no_consumer" and since is not None:
        series = _at_rest(rule, series, there, since_s=since.timestamp(), now_s=now_s)
    ends = {} if rule.watch in RATES else _ends(rule, series, streams, there, is_sampled=sampled.keys())
    spans = [
        span
        for subject, points in series.items()
        for life, end_s in alarms.lives(points, ends.get(subject, ()), until_s=now_s)
        for span in _fired(rule, life, until_s=end_s)
    ]
    return BackTest(
        since=since,
        until=until,
        sampled_since=sampled_since,
        subjects=len(series),
        spans=sorted(spans, key=lambda span: span.start_s),
    )


def _groups(rule: AlertRule, streams: Collection[str]) -> list[Group]:
    """Those that are there now."""
    found = Group.objects.filter(stream__stream_id__in=streams).select_related("stream")
    return [each for each in found if is_about(rule, each.stream.name, each.name)]


def _began(series: Series) -> datetime | None:
    first_s = min((points[0][0] for points in series.values()), default=None)
    return None if first_s is None else datetime.fromtimestamp(first_s, UTC)


def _fired(rule: AlertRule, life: list[Point], *, until_s: float) -> list[Span]:
    """The alerts over one life."""
    limit, held = limit_of(rule), life
    if rule.watch == "no_consumer":
        held = alarms.silences([*life, *_grown(life, until_s=until_s)], limit=limit.limit)
    return alarms.would_have_fired(limit, held, until_s=until_s)


def _sampled(rule: AlertRule, streams: Mapping[str, Stream]) -> tuple[Series, int | None]:
    """The values of groups in the samples that are kept, and when these begin (unix ms)."""
    series: Series = {}
    since_ms: int | None = None
    for record in _records():
        since_ms = record.at if since_ms is None else since_ms
        for subject, value in _values(rule, record, streams):
            series.setdefault(subject, []).append((record.at / 1000, value))
    return series, since_ms


def _at_rest(
    rule: AlertRule, known: Series, there: Iterable[Group], *, since_s: float, now_s: float
) -> Series:
    """How long nobody fetched or acknowledged, also as it is now, and from where on anything is known."""
    series: Series = {subject: list(points) for subject, points in known.items()}
    for view in reachable_views(there):
        value = value_of(rule, view)
        if value is not None:
            series.setdefault((view.group.stream.stream_id, view.group.name), []).append((now_s, value))
    for points in series.values():
        first_s, first = points[0]
        if first_s - first < since_s < first_s:  # at rest since before that
            points.insert(0, (since_s, since_s - (first_s - first)))
    return series


def _grown(life: Sequence[Point], *, until_s: float) -> list[Point]:
    """How long nobody fetched at the end of a life, as that grew since its last sample.

    Somebody who was there at the last one was until the end: when who waits goes, there is another.
    """
    last_s, last = life[-1]
    return [(until_s, last + until_s - last_s)] if last >= EVERY_S and until_s > last_s else []


def _ends(
    rule: AlertRule,
    series: Series,
    streams: Mapping[str, Stream],
    there: Iterable[Group],
    *,
    is_sampled: Collection[Subject],
) -> dict[Subject, list[float]]:
    """When groups were deleted, in unix seconds: as the events say, and of one that is not there and of which they say
    nothing, when its last value had been held as long as it was looked at.
    """
    ids = {stream.name: stream_id for stream_id, stream in streams.items()}
    deleted = Event.objects.filter(
        workspace_id=rule.workspace_id, kind="group.deleted", time__gte=timezone.now() - REACHES_BACK
    )
    ends: dict[Subject, list[float]] = {}
    for name, group, at in deleted.values_list("stream", "group", "time"):
        stream_id = ids.get(name)
        if stream_id is not None and at >= streams[stream_id].created_at:
            ends.setdefault((stream_id, group), []).append(at.timestamp())
    held = {(group.stream.stream_id, group.name) for group in there}
    for subject in series.keys() - held:
        last_s = series[subject][-1][0]
        if not any(end_s > last_s for end_s in ends.get(subject, ())):
            for_s = EVERY_S if subject in is_sampled or rule.watch == "no_consumer" else MINUTE_S
            ends.setdefault(subject, []).append(last_s + for_s)
    return ends


def _sampled_rates(streams: Mapping[str, Stream], *, until_s: float) -> tuple[Series, int | None]:
    """The rates that the worker saw while the samples were taken that are kept, and when these begin (unix ms)."""
    inflows = {stream_id: _Inflow() for stream_id in streams}
    since_ms: int | None = None
    for record in _records():
        since_ms = record.at if since_ms is None else since_ms
        for stream_id in record.streams.keys() & inflows.keys():
            figures = record.streams[stream_id]
            inflows[stream_id].add(record.at / 1000, figures.offset, figures.messages_in)
    if since_ms is None:
        return {}, None
    series: Series = {}
    for stream_id, inflow in inflows.items():
        since_s = max(since_ms / 1000, streams[stream_id].created_at.timestamp())
        series[stream_id, ""] = inflow.rates(since_s=since_s, until_s=until_s)
    return series, since_ms


def _records() -> Iterable[_Record]:
    held = Stream.objects.filter(name=METRICS_STREAM, internal=True).first()
    if held is None:
        return
    at = store.log().run(read.position(held.stream_id))
    offset = max(at.floor, at.last + 1 - MOST_RECORDS)
    while page := messages_from(held, offset=offset, limit=read.PAGE):
        offset = page[-1].offset + 1
        for message in page:
            yield _decode(message.body)


def _values(
    rule: AlertRule, record: _Record, streams: Mapping[str, Stream]
) -> Iterable[tuple[Subject, float]]:
    for stream_id, groups in record.groups.items():
        for name, group in groups.items() if stream_id in streams else ():
            value = _value(rule, group) if is_about(rule, streams[stream_id].name, name) else None
            if value is not None:
                yield (stream_id, name), value


def _value(rule: AlertRule, group: _Group) -> float | None:
    match rule.watch:
        case "status":
            return None if group.status == "unknown" else float(group.status in rule.statuses)
        case "lag":
            return float(group.lag)
        case "lag_seconds":
            return group.lag_seconds
        case "dead_letters":
            return float(group.dead)
        case "no_consumer":
            return group.quiet
        case _:
            return float("inf") if group.edge is None else group.edge
