"""Judging the alert rules: every ten seconds the value of each stream and group that one is about."""

import time
from collections import defaultdict
from collections.abc import Iterable

from streams import store
from streams.alarms import EVERY_S, Track, followed
from streams.findings import Finding, OverLimit
from streams.log import keys, stats
from streams.models import Alert, AlertRule, Group, Stream
from streams.selectors import GroupView, reachable_views
from streams.selectors.alerts import in_status, is_about, limit_of, value_of
from streams.services.alerts import (
    OF_STREAMS,
    alert_begin,
    alert_end,
    alerts_evaluated,
    alerts_forget,
    alerts_tell_unheard,
)

FORGET_EVERY_S = 3600.0

Subject = tuple[int, str, str]
"""A rule's key, a stream's name, a group's name or nothing."""
Looked = tuple[AlertRule, str, str, float | None, Finding | None]
"""A rule, a stream's name, a group's name or nothing; the value and what to say of it, None where it is not known."""


class Alerting:
    """Remembers since when each value is bad; that an alert fires is in the database, so a new worker goes on."""

    def __init__(self) -> None:
        self._tracks: dict[Subject, Track] = {}
        self._offsets: dict[str, tuple[float, int]] = {}
        self._looked = self._forgot = float("-inf")

    def look(self, *, now_s: float | None = None, with_memory: bool = True) -> None:
        """Judge every rule if it is time; costs one query where there is none.

        Args:
            with_memory: whether the server of the streams in memory is asked; if not, no value of theirs is known.
        """
        at_s = time.monotonic() if now_s is None else now_s
        if at_s - self._looked < EVERY_S:
            return
        self._looked = at_s
        if at_s - self._forgot > FORGET_EVERY_S:
            self._forgot = at_s
            alerts_forget()
        rules = list(AlertRule.objects.filter(enabled=True).select_related("workspace"))
        self._end_of_disabled()
        if not rules:
            self._tracks.clear()
            return
        by_workspace: dict[int, list[AlertRule]] = defaultdict(list)
        for rule in rules:
            by_workspace[rule.workspace_id].append(rule)
        seen: set[Subject] = set()
        firing = {
            (alert.rule_id, alert.stream, alert.group): alert
            for alert in Alert.objects.filter(ended_at=None).select_related("rule__workspace")
        }
        go_on: list[tuple[Alert, Finding]] = []
        for rule, stream, group, value, finding in self._values(
            by_workspace, at_s=at_s, with_memory=with_memory
        ):
            subject = (rule.pk, stream, group)
            seen.add(subject)
            alert = firing.get(subject)
            if self._judge(rule, subject, value, finding, alert=alert, at_s=at_s) and alert and finding:
                go_on.append((alert, finding))
        alerts_evaluated(go_on)
        for subject, alert in firing.items():
            if (
                subject not in seen
            ):  # the stream or the group is gone from the database, whether or not the log answers
                alert_end(alert)
        self._tracks = {subject: track for subject, track in self._tracks.items() if subject in seen}
        alerts_tell_unheard()

    def forget(self, stream_ids: Iterable[str]) -> None:
        """Let streams begin anew: their offsets before say nothing about their rates."""
        for stream_id in stream_ids:
            self._offsets.pop(stream_id, None)

    def _judge(
        self,
        rule: AlertRule,
        subject: Subject,
        value: float | None,
        finding: Finding | None,
        *,
        alert: Alert | None,
        at_s: float,
    ) -> bool:
        """Whether it fires after this value; one that is not known has no finding and changes nothing."""
        before = self._tracks.get(subject, Track())
        if before.fires != (alert is not None):
            before = Track(before.bad_since_s, alert is not None)
        track = followed(before, limit_of(rule), value, at_s=at_s)
        self._tracks[subject] = track
        if track.fires and alert is None and value is not None and finding is not None:
            alert_begin(rule, value=value, finding=finding)
        elif not track.fires and alert is not None:
            alert_end(alert)
        return track.fires

    def _values(
        self, by_workspace: dict[int, list[AlertRule]], *, at_s: float, with_memory: bool
    ) -> list[Looked]:
        found: list[Looked] = []
        streams = list(Stream.objects.filter(workspace__in=by_workspace, internal=False))
        of_rates: list[tuple[AlertRule, Stream]] = []
        wanted: dict[int, list[AlertRule]] = {}
        for stream in streams:
            about = [rule for rule in by_workspace[stream.workspace_id] if is_about(rule, stream.name)]
            of_rates += [(rule, stream) for rule in about if rule.watch in OF_STREAMS]
            of_groups = [rule for rule in about if rule.watch not in OF_STREAMS]
            if of_groups:
                wanted[stream.pk] = of_groups
        rated = {stream.stream_id for _, stream in of_rates}
        rates = self._rates({each for each in rated if with_memory or not keys.in_memory(each)}, at_s=at_s)
        for rule, stream in of_rates:
            rate = rates.get(stream.stream_id)
            finding = None if rate is None else _finding(rule, stream.name, "", rate)
            found.append((rule, stream.name, "", rate, finding))
        groups = list(Group.objects.filter(stream__in=wanted).select_related("stream"))
        views = {view.group.pk: view for view in reachable_views(groups, with_memory=with_memory)}
        for group in groups:
            for rule in wanted[group.stream_id]:
                if is_about(rule, group.stream.name, group.name):
                    value, finding = _of_group(rule, views.get(group.pk))
                    found.append((rule, group.stream.name, group.name, value, finding))
        return found

    def _rates(self, stream_ids: set[str], *, at_s: float) -> dict[str, float]:
        """Messages published a second since the last look."""
        states = store.log().run(stats.inspect_many(sorted(stream_ids)))
        rates = {
            stream_id: (state.offset - self._offsets[stream_id][1]) / (at_s - self._offsets[stream_id][0])
            for stream_id, state in states.items()
            if stream_id in self._offsets and at_s > self._offsets[stream_id][0]
        }
        self._offsets = {stream_id: (at_s, state.offset) for stream_id, state in states.items()}
        return rates

    @staticmethod
    def _end_of_disabled() -> None:
        for alert in Alert.objects.filter(ended_at=None, rule__enabled=False).select_related(
            "rule__workspace"
        ):
            alert_end(alert)


def _of_group(rule: AlertRule, view: GroupView | None) -> tuple[float | None, Finding | None]:
    """The value and what to say of it; nothing of a group whose server is away, or that the log has not got yet."""
    value = None if view is None else value_of(rule, view)
    if view is None or value is None:
        return None, None
    stream, group = view.group.stream.name, view.group.name
    if rule.watch == "status":
        return value, in_status(stream, group, view.health)
    return value, _finding(rule, stream, group, value)


def _finding(rule: AlertRule, stream: str, group: str, value: float) -> Finding:
    limit = limit_of(rule)
    return OverLimit(
        stream=stream,
        group=group,
        watch=rule.watch,
        value=value,
        limit=limit.limit,
        clear=limit.clear,
        falls=limit.falls,
    )
