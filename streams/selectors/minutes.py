"""What the history says, by the minute, of what alert rules watch."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from streams.models import AlertRule, Rollup, StandingRollup, Stream
from streams.models.history import Step
from streams.selectors.narrowing import inside

MOST_MINUTES = 200_000
"""Minutes of the history that one look back reads, of all that a rule is about: a month of four that never rest."""

MINUTE_S = 60

Subject = tuple[str, str]
"""An internal stream id and a group; the group is empty where it is about a stream."""

Point = tuple[float, float]
"""Unix seconds and a value."""

Series = dict[Subject, list[Point]]
"""What is known of each subject, ascending."""

COLUMNS = {
    "status": "status_seen",
    "lag": "lag_max",
    "lag_seconds": "lag_ms_max",
    "no_consumer": "quiet",
    "retention_edge": "edge_ms_min",
    "dead_letters": "dead_max",
}
"""Watch of a group → where its minutes say it."""

KNOWN_BY = {"retention_edge": "status_seen"}
"""The same → what is null in a minute of which it is not known, where that is another column."""


def groups_by_minute(rule: AlertRule, *, since: datetime, until: datetime) -> Series:
    """The worst value of each minute in which the history has a group; of how long nobody fetched, what is kept of it.

    Minutes that an earlier version counted, which does not know what is watched, are passed over.
    """
    column = COLUMNS[rule.watch]
    rows = StandingRollup.objects.exclude(group="").filter(
        stream_id__in=_stream_ids(rule),
        step=Step.MINUTE,
        start__gte=since,
        start__lt=until,
        **{f"{KNOWN_BY.get(rule.watch, column)}__isnull": False},
    )
    if rule.group:
        rows = rows.filter(inside((rule.group,), "group"))
    newest = rows.order_by("-start").values_list("stream_id", "group", "start", column)[:MOST_MINUTES]
    series: defaultdict[Subject, list[Point]] = defaultdict(list)
    for stream_id, group, start, value in reversed(newest):
        series[stream_id, group] += _points(rule, start.timestamp(), value)
    before = {subject: _before(points, until.timestamp()) for subject, points in series.items()}
    return {subject: points for subject, points in before.items() if points}


def _before(points: list[Point], until_s: float) -> list[Point]:
    """Without those of the last minute that lie behind a time."""
    while points and points[-1][0] >= until_s:
        points.pop()
    return points


def _points(rule: AlertRule, start_s: float, value: Any) -> Iterable[Point]:
    """What a minute says, by what its column holds."""
    match rule.watch:
        case "status":
            known = value.keys() - {"unknown"}
            return [(start_s, float(not known.isdisjoint(rule.statuses)))] if known else []
        case "no_consumer":
            return [(at_ms / 1000, ms / 1000) for at_ms, ms in value]
        case "retention_edge":
            return [(start_s, float("inf") if value is None else value / 1000)]
        case "lag_seconds":
            return [(start_s, value / 1000)]
        case _:
            return [(start_s, float(value))]


def rates_by_minute(rule: AlertRule, *, since: datetime, until: datetime) -> Series:
    """The mean rate of each minute that the history counted, with the silence between two that are not neighbours."""
    rows = Rollup.objects.filter(
        stream_id__in=_stream_ids(rule), step=Step.MINUTE, start__gte=since, start__lt=until
    )
    newest = rows.order_by("-start").values_list("stream_id", "start", "messages")[:MOST_MINUTES]
    series = Series()
    for stream_id, start, messages in reversed(newest):
        points, at_s = series.setdefault((stream_id, ""), []), start.timestamp()
        if points and points[-1][0] + MINUTE_S < at_s:
            points.append((points[-1][0] + MINUTE_S, 0.0))
        points.append((at_s, messages / MINUTE_S))
    for points in series.values():
        ended_s = points[-1][0] + MINUTE_S
        if ended_s < until.timestamp():
            points.append((ended_s, 0.0))
    return series


def _stream_ids(rule: AlertRule) -> QuerySet[Stream, Any]:
    """The internal ids of the streams that a rule is about."""
    found = Stream.objects.filter(workspace=rule.workspace, internal=False)
    return found.filter(inside((rule.stream,), "name")).values("stream_id")
