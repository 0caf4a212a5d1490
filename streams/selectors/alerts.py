"""Alert rules and what they found: the values that they watch, now and in the samples that are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from django.utils import timezone

from streams import alarms, bearer, store
from streams.alarms import FALLS, Limit, Span
from streams.log import read
from streams.models import Alert, AlertRule, Stream, Workspace
from streams.selectors.groups import GroupView
from streams.selectors.messages import messages_from
from streams.selectors.samples import METRICS_STREAM
from streams.selectors.times import moment

MOST_RECORDS = 20_000
"""Records of samples that one look back reads: five and a half hours of a busy installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTest:
    """What a rule would have done over the samples that are kept.

    Attributes:
        since, until: the window that was looked at; None where there are no samples.
        subjects: streams or groups that it was about.
        spans: the alerts that would have been, by their beginning.
    """

    since: datetime | None
    until: datetime
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
    messages_in: float = msgspec.field(name="in", default=0.0)


class _Record(msgspec.Struct):
    at: int
    streams: dict[str, _Stream] = {}
    groups: dict[str, dict[str, _Group]] = {}


_decode = msgspec.json.Decoder(_Record).decode


def limit_of(rule: AlertRule) -> Limit:
    """When a rule's value is bad, and when it is good again."""
    if rule.watch == "status":
        return Limit(limit=0.5, clear=0.5, for_s=rule.for_seconds)
    limit = rule.limit or 0.0
    clear = limit if rule.clear is None else rule.clear
    return Limit(limit=limit, clear=clear, for_s=rule.for_seconds, falls=rule.watch in FALLS)


def is_about(rule: AlertRule, stream: str, group: str = "") -> bool:
    """Whether a rule watches this stream, or this group of it."""
    if not bearer.streams_cover((rule.stream,), stream):
        return False
    return not group or not rule.group or bearer.streams_cover((rule.group,), group)


def value_of(rule: AlertRule, view: GroupView) -> float | None:
    """What a rule looks at, of a group now; None while it is not known."""
    state, health = view.state, view.health
    match rule.watch:
        case "status":
            return None if health.status == "unknown" else float(health.status in rule.statuses)
        case "lag":
            return float(state.lag)
        case "lag_seconds":
            return view.lag_seconds
        case "dead_letters":
            return float(state.dead_letters)
        case "no_consumer":
            since_ms = max(state.fetched_ms or 0, state.acked_ms or 0) or state.made_ms
            return 0.0 if view.waiting else None if since_ms is None else (state.steady_ms - since_ms) / 1000
        case "retention_edge":
            return float("inf") if view.edge_seconds is None else view.edge_seconds
        case _:
            return None


def alerts_firing(workspace: Workspace) -> list[Alert]:
    """What fires now, the newest first."""
    return list(Alert.objects.filter(rule__workspace=workspace, ended_at=None).select_related("rule")[:500])


def alerts_firing_count(workspace: Workspace) -> int:
    """How many alerts fire now by rules that are not muted."""
    firing = Alert.objects.filter(rule__workspace=workspace, ended_at=None)
    return firing.exclude(rule__muted_until__gt=timezone.now()).count()


def alerts_latest(workspace: Workspace, *, limit: int = 100) -> list[Alert]:
    """What fired last, the newest first."""
    return list(Alert.objects.filter(rule__workspace=workspace).select_related("rule")[:limit])


def back_test(rule: AlertRule, *, now_ms: int) -> BackTest:
    """What a rule, saved or not, would have done over the samples that are kept.

    At most the newest ``MOST_RECORDS`` records. A group at rest has no samples: its last value holds.
    """
    streams = {
        stream.stream_id: stream.name
        for stream in Stream.objects.filter(workspace=rule.workspace, internal=False)
        if is_about(rule, stream.name)
    }
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    since_ms: int | None = None
    for record in _records():
        since_ms = record.at if since_ms is None else since_ms
        for subject, value in _values(rule, record, streams):
            series.setdefault(subject, []).append((record.at / 1000, value))
    limit = limit_of(rule)
    spans = [
        span
        for points in series.values()
        for span in alarms.would_have_fired(limit, points, until_s=now_ms / 1000)
    ]
    return BackTest(
        since=None if since_ms is None else moment(since_ms),
        until=datetime.fromtimestamp(now_ms / 1000, UTC),
        subjects=len(series),
        spans=sorted(spans, key=lambda span: span.start_s),
    )


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
    rule: AlertRule, record: _Record, streams: dict[str, str]
) -> Iterable[tuple[tuple[str, str], float]]:
    if rule.watch in {"rate_above", "rate_below"}:
        for stream_id, figures in record.streams.items():
            if stream_id in streams:
                yield (stream_id, ""), figures.messages_in
        return
    for stream_id, groups in record.groups.items():
        for name, group in groups.items() if stream_id in streams else ():
            value = _value(rule, group) if is_about(rule, streams[stream_id], name) else None
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
