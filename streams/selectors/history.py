"""What Spark computed, and the runs that computed it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Q, Sum
from django.utils import timezone

from streams import store
from streams.access import Caller
from streams.log import stats
from streams.log.errors import LogError
from streams.models import Event, RemovalCount, Rollup, RollupPosition, Run, Stream
from streams.models.history import RunState, Step
from streams.selectors.standing import removed_counted, removed_in_samples
from streams.selectors.streams import streams_of


def history_points(
    stream: Stream,
    *,
    step: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Rollup]:
    """What Spark computed for a stream, by time; ``since`` inclusive, ``until`` exclusive."""
    points = Rollup.objects.filter(stream_id=stream.stream_id, step=step)
    if since is not None:
        points = points.filter(start__gte=since)
    if until is not None:
        points = points.filter(start__lt=until)
    return list(points.order_by("start"))


def hours_published(stream: Stream, *, since: datetime, until: datetime) -> list[tuple[datetime, int]]:
    """The hours in which something was published, and how many messages; ``since`` inclusive, ``until`` exclusive."""
    rows = Rollup.objects.filter(
        stream_id=stream.stream_id, step=Step.HOUR, start__gte=since, start__lt=until
    )
    return list(rows.order_by("start").values_list("start", "messages"))


@dataclass(frozen=True, slots=True)
class HistoryGap:
    """Messages that went before the history had them.

    Attributes:
        time: when that was noticed.
        messages: how many.
        summary: how they went, as a sentence.
    """

    time: datetime
    messages: int
    summary: str


def history_gaps(
    stream: Stream, *, since: datetime | None = None, until: datetime | None = None
) -> list[HistoryGap]:
    """What the history of a stream misses, oldest first; ``since`` inclusive, ``until`` exclusive."""
    events = Event.objects.filter(
        workspace_id=stream.workspace_id, stream=stream.name, kind="history.gap", time__gte=stream.created_at
    )
    if since is not None:
        events = events.filter(time__gte=since)
    if until is not None:
        events = events.filter(time__lt=until)
    return [
        HistoryGap(event.time, event.after["messages"], event.summary)
        for event in events.order_by("id")
        if event.after
    ]


def removed_by_step(
    stream: Stream, *, step: str, since: datetime | None = None, until: datetime | None = None
) -> dict[datetime, int]:
    """Messages that retention removed, by the step in which the worker's samples saw it.

    What went before samples of the stream said it is in the step of its event, at most one an hour. What is not counted
    yet is in the present step; it is left out while the store does not answer.
    """
    counted = removed_counted(stream)
    removed = Counter(removed_in_samples(stream, step=step, since=since, until=until))
    events = Event.objects.filter(
        workspace_id=stream.workspace_id,
        stream=stream.name,
        kind="stream.expired",
        time__gte=stream.created_at,
    )
    if since is not None:
        events = events.filter(time__gte=since)
    if until is not None:
        events = events.filter(time__lt=until)
    if counted is not None:
        events = events.filter(time__lt=counted.since)
    for event in events:
        removed[Step(step).floor(event.time)] += (event.after or {}).get("messages", 0)
    now = timezone.now()
    present = Step(step).floor(now)
    if (since is None or since <= now) and (until is None or present < until):
        removed[present] += _removed_lately(stream, None if counted is None else counted.messages)
    return {start: messages for start, messages in sorted(removed.items()) if messages}


def _removed_lately(stream: Stream, counted: int | None) -> int:
    """Messages that retention removed since the last counted sample, or where there is none, since its last event.

    Args:
        counted: how many it had removed as of that sample.
    """
    told = RemovalCount.objects.filter(stream=stream).first()
    if told is None:
        return 0
    try:
        state = store.log().run(stats.inspect_many([stream.stream_id])).get(stream.stream_id)
    except LogError:
        return 0
    if state is None or state.appended_bytes < told.appended_bytes:
        return 0  # the store does not have it, or it began anew
    return max(0, state.by_retention_messages - (told.messages if counted is None else counted))


def history_position(stream: Stream) -> RollupPosition | None:
    """How far the rollups of a stream have come, and by which run."""
    return RollupPosition.objects.select_related("run").filter(stream_id=stream.stream_id).first()


def history_position_newest(caller: Caller) -> RollupPosition | None:
    """How far the rollups of the streams that a caller may see have come, and by which run: that of the stream with the
    newest message.
    """
    held = streams_of(caller).order_by().values("stream_id")
    known = RollupPosition.objects.select_related("run").filter(stream_id__in=held, fresh_to__isnull=False)
    return known.order_by("-fresh_to").first()


def history_totals(stream: Stream) -> tuple[int, int]:
    """Messages and bytes of all time in the rollups."""
    sums = Rollup.objects.filter(stream_id=stream.stream_id, step="day").aggregate(
        Sum("messages"), Sum("bytes")
    )
    return sums["messages__sum"] or 0, sums["bytes__sum"] or 0


def runs_page(*, before: int | None, limit: int, state: RunState | None = None) -> tuple[list[Run], bool]:
    """A page of runs, newest first, those before an id and in a state, and whether there are more."""
    found = Run.objects.order_by("-id")
    if state is not None:
        found = found.filter(state=state)
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(found[: limit + 1])
    return rows[:limit], len(rows) > limit


def runs_begun_from_now() -> Callable[[], int | None]:
    """Tells whenever it is asked how many runs have begun since this call; None while one goes on.

    Those that were there before are left out: old ones are removed at any time.
    """
    newest = Run.objects.aggregate(Max("pk"))["pk__max"] or 0
    waiting = list(Run.objects.filter(state=RunState.QUEUED).values_list("pk", flat=True))
    fresh = Run.objects.filter(Q(pk__gt=newest) | Q(pk__in=waiting))

    def begun() -> int | None:
        if Run.objects.filter(state=RunState.RUNNING).exists():
            return None
        return fresh.filter(started_at__isnull=False).count()

    return begun
