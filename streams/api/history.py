"""A stream over time: what Spark computed of all of it, and the live samples of the last hours."""

import time
from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Moment
from streams.api.history_groups import CountedStep, GroupPast, counted_steps
from streams.api.history_profiles import FieldDrift, FieldOfDay
from streams.api.operation import Operation
from streams.api.queries import HistoryAsked, MetricsAsked
from streams.api.runs import run_url
from streams.log.entries import timestamp
from streams.models import Rollup, Stream
from streams.models.history import Step

RANGES_S = {"15m": (900, 1), "1h": (3600, 5), "6h": (21_600, 30)}
"""What may be asked for: seconds back, seconds a point."""

MOST_STEPS = 10_000
"""Steps of one answer, from the first to the last of which something is known."""

MOST_GROUP_STEPS = 50_000
"""Steps of one answer, those of its groups and of the stream's own position all together."""


class FrequentKey(serializers.Serializer):  # type: ignore[type-arg]
    """A key and how many messages have it."""

    key = serializers.CharField()
    messages = serializers.IntegerField()


class HistoryPoint(serializers.Serializer):  # type: ignore[type-arg]
    """What was published in one step: sums, and figures of the step as a whole (null until it was looked at)."""

    start = Moment()
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()
    looked_at = serializers.IntegerField(
        source="messages_scanned",
        help_text="Of how many messages the figures of the step as a whole are: as many as were there when it was "
        "looked at. It is again when it has grown by a quarter, once it is over, and in a run for which that is "
        "little work, when it has grown at all.",
    )
    looked_run = serializers.IntegerField(
        source="look_run_id",
        allow_null=True,
        help_text="The run that looked at the step last; null, too, of a minute, once that run is no longer kept.",
    )
    looked_time = Moment(source="look_time", allow_null=True, help_text="When it did.")
    ids = serializers.IntegerField(allow_null=True, help_text="Distinct ids.")
    keys = serializers.IntegerField(allow_null=True, help_text="Distinct keys.")
    missing = serializers.IntegerField(
        allow_null=True,
        help_text="Offsets up to the last of the step, from behind the last of the step before, that the history does "
        "not have: minutes come to what their hour misses. Of the first step, and while the one before is not "
        "looked at as a whole, from its own first.",
    )
    size_p50 = serializers.IntegerField(
        allow_null=True, help_text="Half of the bodies have at most so many bytes."
    )
    size_p90 = serializers.IntegerField(allow_null=True)
    size_p99 = serializers.IntegerField(allow_null=True)
    size_max = serializers.IntegerField(allow_null=True)
    bodies = serializers.IntegerField(allow_null=True, help_text="Of a day: bodies that are objects.")
    unreadable = serializers.IntegerField(
        allow_null=True,
        help_text="Of these, so many could not be taken apart, such as with a name twice, a number of more than "
        "1,000 digits or a name of more than 50,000 characters.",
    )
    top_keys = FrequentKey(
        source="frequent_keys",
        many=True,
        allow_null=True,
        help_text="The most frequent keys: at most 20 of a minute, 50 of an hour, 100 of a day.",
    )


HistoryPoint._declared_fields["fields"] = FieldOfDay(
    many=True, allow_null=True, help_text="Of a day: the most frequent fields of its objects, at most 200."
)


class HistoryGap(serializers.Serializer):  # type: ignore[type-arg]
    """Messages that went before the history had them, or that were in another history than is there now."""

    time = Moment(help_text="When it was noticed.")
    messages = serializers.IntegerField(help_text="How many, at most.")
    summary = serializers.CharField(help_text="How they went.")


class HistoryRun(serializers.Serializer):  # type: ignore[type-arg]
    """The run that counted messages and bytes last; figures of steps as a whole name their own (`looked_run`)."""

    id = serializers.IntegerField()
    url = serializers.CharField()
    finished_at = Moment(allow_null=True)


class HistoryObject(serializers.Serializer):  # type: ignore[type-arg]
    """Messages and bytes by time; the points of all time sum to everything that was archived."""

    step = serializers.ChoiceField(choices=Step.values)
    to = Moment(
        allow_null=True,
        help_text="Where the last point ends; null where nothing was asked for and nothing is there.",
    )
    fresh_to = Moment(allow_null=True, help_text="Time of the last message that was counted.")
    run = HistoryRun(allow_null=True)
    points = HistoryPoint(many=True)
    gaps = HistoryGap(many=True, help_text="What the history misses; each is an event `history.gap`, too.")
    duplicates = CountedStep(many=True, help_text="Publishes that were refused as already known.")
    removed = CountedStep(
        many=True,
        help_text="Messages that retention removed, as the worker's samples saw it; what no run has counted of "
        "them yet is in the present step. What went before samples said it (in an earlier version) is at the time "
        "of its event `stream.expired`, at most one an hour.",
    )
    groups = GroupPast(many=True)
    drift = FieldDrift(many=True, help_text="How the fields of days changed; by day only.")


HistoryObject._declared_fields["from"] = Moment(allow_null=True)


class MetricsPoint(serializers.Serializer):  # type: ignore[type-arg]
    """How the stream stood at the end of a step, and the rates in it; all null where nobody counted, since the worker
    took no samples in the whole step.
    """

    time = serializers.SerializerMethodField(help_text="Where the step begins.")
    offset = serializers.IntegerField(allow_null=True)
    messages = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)
    bytes_in = serializers.FloatField(allow_null=True, help_text="Bytes a second.")

    def get_time(self, sample: selectors.SampledStep) -> str:
        return timestamp(sample.at_ms)


MetricsPoint._declared_fields["in"] = serializers.FloatField(
    source="messages_in", allow_null=True, help_text="Messages a second."
)
MetricsPoint._declared_fields["out"] = serializers.FloatField(
    source="messages_out",
    allow_null=True,
    help_text="Messages that readers committed or groups acknowledged, a second.",
)


class UsualObject(serializers.Serializer):  # type: ignore[type-arg]
    """What is usual in the last 15 minutes, from the same hour of the same weekday (UTC) in the eight weeks before;
    messages a second.
    """

    rate = serializers.FloatField(
        help_text="Mean of the last 15 minutes, as far as somebody counted, whatever range was asked for."
    )
    low = serializers.FloatField()
    high = serializers.FloatField()
    weeks = serializers.IntegerField(help_text="How many weeks it is known from, three at least.")
    is_unusual = serializers.BooleanField(help_text="Whether the rate lies outside.")


class MetricsObject(serializers.Serializer):  # type: ignore[type-arg]
    """Live samples."""

    step = serializers.IntegerField(help_text="Seconds a point.")
    points = MetricsPoint(many=True)
    usual = UsualObject(
        allow_null=True,
        help_text="Null where the history knows fewer than three weeks, "
        "and while less than half of the last 15 minutes was counted.",
    )


class HistoryView(ApiView):
    """``/streams/{name}/history``"""

    operations: ClassVar = {
        "GET": Operation(
            id="stream_history",
            summary="What was published, by minute, hour or day",
            scope="read",
            query=HistoryAsked,
            answer=HistoryObject,
            refusals=("stream_not_found",),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="read")
        step, since, until = self.asked["step"], self.asked.get("from"), self.asked.get("to")
        if since is not None and until is not None and since > until:
            raise invalid("from", "Expected a time that is not after to.")
        since = None if since is None else Step(step).floor(since)
        until = None if until is None else Step(step).ceil(until)
        since = told_from(stream, step=step, since=since, until=until)
        points = selectors.history_points(stream, step=step, since=since, until=until)
        position = selectors.history_position(stream)
        run = position.run if position else None
        answer: dict[str, Any] = {
            "step": step,
            "from": since or (points[0].start if points else None),
            "to": until or (end_of(points[-1], step) if points else None),
            "fresh_to": position.fresh_to if position else None,
            "run": run and {"id": run.pk, "url": run_url(run, request), "finished_at": run.finished_at},
            "points": points,
            "gaps": selectors.history_gaps(stream, since=since, until=until),
            "duplicates": counted_steps(
                selectors.duplicates_by_step(stream, step=step, since=since, until=until)
            ),
            "removed": counted_steps(selectors.removed_by_step(stream, step=step, since=since, until=until)),
            "groups": selectors.groups_past(stream, step=step, since=since, until=until),
            "drift": selectors.history_drift(stream, since=since, until=until) if step == "day" else [],
        }
        return Response(HistoryObject(answer).data)


class MetricsView(ApiView):
    """``/streams/{name}/metrics``"""

    operations: ClassVar = {
        "GET": Operation(
            id="stream_metrics",
            summary="Live samples of the last hours",
            scope="observe",
            query=MetricsAsked,
            answer=MetricsObject,
            refusals=("stream_not_found",),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="observe")
        seconds, step = RANGES_S[self.asked["range"]]
        now_ms = int(time.time() * 1000)
        points, rate = selectors.metrics_points(
            stream, since_ms=now_ms - seconds * 1000, now_ms=now_ms, step_s=step
        )
        usual = selectors.usual_now([stream.stream_id], rate=rate, at=timezone.now())
        return Response(MetricsObject({"step": step, "points": points, "usual": usual}).data)


def told_from(
    stream: Stream, *, step: str, since: datetime | None, until: datetime | None
) -> datetime | None:
    """Where a range begins of which all is told: what was asked for without a beginning begins as late as it has to.

    Raises:
        Refusal: ``validation_error``: what was asked for with one is too much.
    """
    span = selectors.history_span(
        stream, step=step, since=since, until=until, most_steps=MOST_STEPS, most_rows=MOST_GROUP_STEPS
    )
    if since is None or span.fits_from is None:
        return span.fits_from or since
    fits_from = Moment().to_representation(span.fits_from)
    raise invalid(
        "from",
        f"Expected at most {MOST_STEPS:,} steps, and {MOST_GROUP_STEPS:,} of all groups together, and by {step} there "
        f"are {span.steps:,}. Those from {fits_from} on can be told at once: begin there, end earlier, or ask for "
        "longer steps.",
    )


def end_of(point: Rollup, step: str) -> datetime:
    """Where a point ends."""
    return point.start + Step(step).length
