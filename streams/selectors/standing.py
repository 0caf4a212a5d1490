"""How groups stood over time: percentiles of their lag, and what was counted in each step."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db.models import QuerySet

from streams.log.counts import OF_GROUPS, OF_STREAMS
from streams.models import RollupPosition, StandingRollup, Stream
from streams.models.history import Step
from streams.selectors.samples import METRICS_STREAM

SHARES = (0.5, 0.9, 0.99)

OF_RULES = ("status_seen", "quiet")
"""What nothing but a look back of an alert rule reads, too large to come along for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """Percentiles of what was seen, at most 1/64 too low, and the highest; None where nothing was."""

    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStep:
    """How a group stood in one step.

    Attributes:
        samples: how many this is known from.
        lag: of messages not delivered yet.
        lag_seconds: of the age of the oldest message not acknowledged.
        ack_seconds: from the publish of a message to its acknowledgement, of those acknowledged in this step; at most
            1/16 too low, the highest, too.
        deliveries, acked, redelivered, dead_lettered, lost: in this step, since the sample before it.
    """

    start: datetime
    samples: int
    lag: Lags
    lag_seconds: Lags
    ack_seconds: Lags
    deliveries: int
    acked: int
    redelivered: int
    dead_lettered: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPast:
    """A group over a range: its steps, and all of them together."""

    group: str
    steps: list[GroupStep]
    lag: Lags
    lag_seconds: Lags
    ack_seconds: Lags
    deliveries: int
    acked: int
    redelivered: int
    dead_lettered: int
    lost: int


def groups_past(
    stream: Stream, *, step: str, since: datetime | None = None, until: datetime | None = None
) -> list[GroupPast]:
    """The groups that were sampled in a range, by name; ``since`` inclusive, ``until`` exclusive."""
    rows_of: dict[str, list[StandingRollup]] = {}
    for row in _rows(stream, step=step, since=since, until=until).exclude(group=""):
        rows_of.setdefault(row.group, []).append(row)
    return [
        _past(group, rows, before=_before(stream, group, step=step, since=since))
        for group, rows in sorted(rows_of.items())
    ]


def groups_counted(
    stream_ids: Collection[str], *, steps: Collection[str], most: int
) -> list[tuple[str, str, str, GroupStep]]:
    """Steps of the groups of streams, but for minutes, as stream id, group, step and how it stood; at most so many."""
    longer = [step for step in steps if step != Step.MINUTE]
    rows = StandingRollup.objects.filter(stream_id__in=stream_ids, step__in=longer)
    ordered = rows.exclude(group="").order_by("stream_id", "group", "step", "start").defer(*OF_RULES)[:most]
    return [
        (*of, each)
        for of, some in groupby(ordered, key=lambda row: (row.stream_id, row.group, row.step))
        for each in _steps(list(some), before=None)
    ]


def standing_position() -> RollupPosition | None:
    """How far the samples of groups are counted, and by which run."""
    metrics = Stream.objects.filter(name=METRICS_STREAM, internal=True).values("stream_id")
    return RollupPosition.objects.select_related("run").filter(stream_id__in=metrics).first()


def duplicates_by_step(
    stream: Stream, *, step: str, since: datetime | None = None, until: datetime | None = None
) -> dict[datetime, int]:
    """Publishes that were refused as already known, by step; a step without a sample is left out."""
    return _of_stream(stream, "duplicates", step=step, since=since, until=until)


def removed_in_samples(
    stream: Stream, *, step: str, since: datetime | None = None, until: datetime | None = None
) -> dict[datetime, int]:
    """Messages that retention removed, by the step in which samples that are counted saw it."""
    return _of_stream(stream, "removed", step=step, since=since, until=until)


@dataclass(frozen=True, slots=True)
class RemovedCounted:
    """From when on what retention removed of a stream is counted from samples, and how many messages it had removed as
    the newest of these has it.
    """

    since: datetime
    messages: int


def removed_counted(stream: Stream) -> RemovedCounted | None:
    """How far what retention removed is counted from samples; None where nothing of it is."""
    rows = StandingRollup.objects.filter(
        stream_id=stream.stream_id, group="", step=Step.MINUTE, removed__isnull=False
    ).order_by("start")
    first, newest = rows.first(), rows.last()
    if first is None or newest is None:
        return None
    return RemovedCounted(first.start, newest.removed or 0)


def streams_counted(
    stream_ids: Collection[str], *, steps: Collection[str], most: int
) -> dict[tuple[str, str, datetime], dict[str, int]]:
    """Stream, step and start → what was counted in it of ``OF_STREAMS``, by name; at most so many of these steps."""
    held = StandingRollup.objects.filter(stream_id__in=stream_ids, step__in=steps)
    rows = held.filter(group="", grown__isnull=False)
    ordered = rows.order_by("stream_id", "step", "start")
    found = ordered.values_list("stream_id", "step", "start", "grown", *OF_STREAMS)[:most]
    return {
        (stream_id, step, start): {
            name: grown.get(name, 0)
            for name, value in zip(OF_STREAMS, values, strict=True)
            if value is not None
        }
        for stream_id, step, start, grown, *values in found.iterator()
    }


def _of_stream(
    stream: Stream, name: str, *, step: str, since: datetime | None, until: datetime | None
) -> dict[datetime, int]:
    rows = list(_rows(stream, step=step, since=since, until=until).filter(group=""))
    before = _before(stream, "", step=step, since=since)
    return {row.start: grown for row, grown in _grown(rows, before, name)}


def _rows(
    stream: Stream, *, step: str, since: datetime | None, until: datetime | None
) -> QuerySet[StandingRollup]:
    rows = StandingRollup.objects.filter(stream_id=stream.stream_id, step=step)
    if since is not None:
        rows = rows.filter(start__gte=since)
    if until is not None:
        rows = rows.filter(start__lt=until)
    return rows.order_by("start").defer(*OF_RULES)


def _before(stream: Stream, group: str, *, step: str, since: datetime | None) -> StandingRollup | None:
    """The last row before a range: what was counted until then."""
    if since is None:
        return None
    rows = StandingRollup.objects.filter(stream_id=stream.stream_id, group=group, step=step)
    return rows.filter(start__lt=since).order_by("-start").first()


def _grown(
    rows: Iterable[StandingRollup], before: StandingRollup | None, name: str
) -> list[tuple[StandingRollup, int]]:
    """By how much a counter grew in each row.

    One that an earlier version began to count says only how it ended; what is lower than before began anew.
    """
    found, held = [], (getattr(before, name) or 0) if before else 0
    for row in rows:
        value = getattr(row, name)
        if value is not None:
            since = value - held if value >= held else value
            found.append((row, since if row.grown is None else row.grown.get(name, 0)))
            held = value
    return found


def _past(group: str, rows: list[StandingRollup], *, before: StandingRollup | None) -> GroupPast:
    steps = _steps(rows, before=before)
    return GroupPast(
        group=group,
        steps=steps,
        lag=_lags(rows, "lag", 1),
        lag_seconds=_lags(rows, "lag_ms", 1000),
        ack_seconds=_acknowledged(rows),
        **{name: sum(getattr(step, name) for step in steps) for name in OF_GROUPS},
    )


def _steps(rows: list[StandingRollup], *, before: StandingRollup | None) -> list[GroupStep]:
    grown = {name: {row.start: by for row, by in _grown(rows, before, name)} for name in OF_GROUPS}
    return [
        GroupStep(
            start=row.start,
            samples=row.samples,
            lag=_lags([row], "lag", 1),
            lag_seconds=_lags([row], "lag_ms", 1000),
            ack_seconds=_acknowledged([row]),
            **{name: grown[name].get(row.start, 0) for name in OF_GROUPS},
        )
        for row in rows
    ]


def _lags(rows: Sequence[StandingRollup], name: str, unit: int) -> Lags:
    known = [value for row in rows if (value := getattr(row, f"{name}_max")) is not None]
    return _percentiles(_seen(rows, name), unit=unit, highest=max(known, default=None))


def _acknowledged(rows: Sequence[StandingRollup]) -> Lags:
    seen = _seen(rows, "ack_ms")
    return _percentiles(seen, unit=1000, highest=max(seen, default=None))


def _seen(rows: Iterable[StandingRollup], name: str) -> Counter[int]:
    seen: Counter[int] = Counter()
    for row in rows:
        seen.update({int(value): times for value, times in getattr(row, f"{name}_seen").items()})
    return seen


def _percentiles(seen: Mapping[int, int], *, unit: int, highest: int | None) -> Lags:
    def scaled(value: int | None) -> float | None:
        return None if value is None else value / unit if unit > 1 else value

    p50, p90, p99 = (scaled(percentile(seen, share)) for share in SHARES)
    return Lags(p50=p50, p90=p90, p99=p99, max=scaled(highest))


def percentile(seen: Mapping[int, int], share: float) -> int | None:
    """The smallest value that this share of the samples does not exceed."""
    left = share * sum(seen.values())
    for value in sorted(seen):
        left -= seen[value]
        if left <= 1e-9:
            return value
    return None
