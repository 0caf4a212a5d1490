"""Runs of the history jobs, and storing what they computed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from streams.access import SYSTEM
from streams.models import Event, Rollup, RollupPosition, Run, Stream
from streams.models.history import Job, RunState, Step
from streams.services.events import event_of, event_record, events_append
from streams.services.storable import storable
from streams.services.summaries import counted, was
from streams.services.window_rows import window_rows

INTERRUPTED = "The analytics process ended while this ran; it will be rerun."
BROKEN_OFF = "A query did not stop, or took Spark's memory, while this ran; it will be rerun."
SPARK_DIED = "Spark exited by itself while this ran; it will be rerun."
STRANDED = "The cluster gave Spark no executor while this ran; it will be rerun with Spark restarted."
STRANDED_OFTEN = (
    "The cluster gives Spark no executor, nor did it before; it is run again by schedule. Look at the master's page: "
    "are there workers with room?"
)
SPARK_DIED_OFTEN = "Spark exited by itself while this ran, as it did before; it will be rerun on schedule."

UNFINISHED = (RunState.QUEUED, RunState.RUNNING)

FORGOTTEN_AT_ONCE = 50
"""Runs that one transaction removes: what they counted and scanned names them, and is told so in it."""

OF_WINDOW = ("stream_id", "step")
"""Whose a window is."""

WAITS_FOR: Mapping[str, Collection[Job]] = {
    Job.ROLLUP: (Job.ARCHIVE, Job.COMPACT),
    Job.COMPACT: (Job.ROLLUP,),
}
"""Which jobs a run waits for where they were asked for before it: a rollup counts what the archive asked for with it
copies, and has its files rewritten under it as seldom as may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupPoint:
    """Messages and bytes of one stream in one minute, hour or day that begins at ``start`` (UTC)."""

    stream_id: str
    step: str
    start: datetime
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """A stream's new rollup position: offset and time of the last message counted."""

    stream_id: str
    from_offset: int
    to_offset: int
    fresh_to: datetime | None


def history_missed(stream: Stream, *, messages: int, why: str) -> None:
    """Record that messages went before the history had them; ``why`` as of ``missed_by_history``."""
    events_append([missed_by_history(stream, messages=messages, why=why)])


def missed_by_history(stream: Stream, *, messages: int, why: str) -> Event:
    """The event of it that messages went before the history had them.

    Args:
        why: how they went, in words that may follow "they were".
    """
    return event_of(
        stream.workspace,
        kind="history.gap",
        actor=SYSTEM,
        stream=stream.name,
        after={"messages": messages},
        summary=f"{counted(messages)} of {stream.name} {was(messages)} {why} before the history had "
        f"{'it' if messages == 1 else 'them'}.",
    )


def history_lacks(stream_id: str, *, first: int, last: int) -> None:
    """Record that the history is another one than these offsets were archived to, and their stream has let go of them.

    How many of them had a message is not known any more.
    """
    stream = Stream.objects.select_related("workspace").filter(stream_id=stream_id, internal=False).first()
    if stream is None:
        return
    offsets = f"offsets {first:,} to {last:,}" if last > first else f"offset {first:,}"
    event_record(
        stream.workspace,
        kind="history.gap",
        actor=SYSTEM,
        stream=stream.name,
        after={"messages": last - first + 1, "first": first, "last": last},
        summary=f"The history is another one than that to which {offsets} of {stream.name} had gone, and the stream "
        "no longer holds them.",
    )


def run_request(*, jobs: Iterable[str] = (Job.ARCHIVE, Job.ROLLUP), requested_by: str) -> list[Run]:
    """Queue runs, one of a kind at a time: a job that is queued already is answered with that run."""
    runs = []
    with transaction.atomic():
        for job in jobs:
            queued = Run.objects.filter(job=job, state=RunState.QUEUED).first()
            runs.append(queued or Run.objects.create(job=job, requested_by=requested_by))
    return runs


def run_take(jobs: Collection[Job], *, before: datetime | None = None) -> Run | None:
    """The oldest queued run of these jobs that waits for no other, now running; None where there is none.

    Args:
        before: what was asked for after this waits.
    """
    queued = Run.objects.filter(state=RunState.QUEUED, job__in=jobs).order_by("id")
    if before is not None:
        queued = queued.filter(created_at__lte=before)
    if not queued.exists():  # the look is cheap, the lock is not
        return None
    with transaction.atomic():
        run = next((each for each in queued.select_for_update() if not _waits(each)), None)
        if run is not None:
            run.state, run.started_at = RunState.RUNNING, timezone.now()
            run.save(update_fields=["state", "started_at"])
        return run


def _waits(run: Run) -> bool:
    before = Run.objects.filter(state__in=UNFINISHED, job__in=WAITS_FOR.get(run.job, ()), pk__lt=run.pk)
    return before.exists()


def runs_wait(*jobs: Job) -> bool:
    """Whether a run of one of these jobs is queued."""
    return Run.objects.filter(state=RunState.QUEUED, job__in=jobs).exists()


def run_progress(run: Run, *, progress: float, counts: Mapping[str, Any]) -> None:
    """Note how far a run has come, 0 to 1."""
    run.progress, run.counts = min(1.0, max(0.0, progress)), dict(counts)
    run.save(update_fields=["progress", "counts"])


def run_works(run_id: int, *, stages: int, stages_done: int, tasks: int, tasks_done: int) -> None:
    """Note what Spark has done of a run that is under way, and has to do."""
    Run.objects.filter(pk=run_id, state=RunState.RUNNING).update(
        stages=stages, stages_done=stages_done, tasks=tasks, tasks_done=tasks_done
    )


def run_finish(run: Run, *, counts: Mapping[str, Any], error: str = "") -> None:
    """End a run: failed with an error, else succeeded."""
    run.state = RunState.FAILED if error else RunState.SUCCEEDED
    run.error, run.counts, run.finished_at = storable(error), dict(counts), timezone.now()
    if not error:
        run.progress = 1.0
    run.save(update_fields=["state", "error", "counts", "finished_at", "progress"])


def runs_refuse(*, reason: str) -> int:
    """End the queued runs that nothing will take, with the reason; returns how many."""
    queued = list(Run.objects.filter(state=RunState.QUEUED))
    for run in queued:
        run_finish(run, counts={}, error=reason)
    return len(queued)


def runs_interrupted(jobs: Collection[Job], *, why: str = INTERRUPTED) -> list[Run]:
    """Close the runs of these jobs that were cut off while they were running, and queue the same jobs again."""
    left = list(Run.objects.filter(state=RunState.RUNNING, job__in=jobs))
    for run in left:
        run_finish(run, counts=run.counts, error=why)
    if left:
        run_request(jobs=sorted({run.job for run in left}), requested_by="schedule")
    return left


@transaction.atomic
def runs_forget(*, kept: timedelta) -> int:
    """Let go of the oldest runs that ended longer ago than this, ``FORGOTTEN_AT_ONCE`` at most; returns how many.

    Of each job there stay the last that succeeded and all after it, so failures that nothing has mended yet. So do runs
    that a page names below its figures: how far the rollups of a stream are, and looks at hours and days. A look at
    a minute forgets its run instead: nearly every rollup run has looked at one.
    """
    ended = _superseded().filter(finished_at__lt=timezone.now() - kept)
    named = (
        RollupPosition.objects.filter(run=OuterRef("pk")),
        Rollup.objects.filter(look_run=OuterRef("pk"), step__in=(Step.HOUR, Step.DAY)),
    )
    unnamed = ended.filter(*(~Exists(each) for each in named)).order_by("pk")
    oldest = list(unnamed.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if oldest:
        Run.objects.filter(pk__in=oldest).delete()
    return len(oldest)


def _superseded() -> QuerySet[Run]:
    """The runs after which another of the same job has succeeded."""
    succeeded = Run.objects.filter(state=RunState.SUCCEEDED).order_by()
    last_of = succeeded.values_list("job").annotate(Max("pk"))
    before = [Q(job=job, pk__lt=last) for job, last in last_of]
    return Run.objects.filter(Q(*before, _connector=Q.OR)) if before else Run.objects.none()


@transaction.atomic
def rollups_add(points: Iterable[RollupPoint], *, positions: Iterable[Progressed], run: Run | None) -> int:
    """Add newly counted messages to the rollups and move the positions, both or neither; returns points changed.

    A stream whose position is no longer where the counting started is passed over with its points: it was
    counted by another run meanwhile. So counting the same messages twice adds nothing. One that was deleted
    meanwhile is passed over, too: nobody would ever take away what is written of it.
    """
    moved = _moved(list(positions), run=run)
    wanted = [point for point in points if point.stream_id in moved]
    if not wanted:
        return 0
    held_rows = window_rows(
        Rollup.objects.only(*OF_WINDOW, "start", "messages", "bytes"),
        (((point.stream_id, point.step), point.start) for point in wanted),
        of=OF_WINDOW,
    )
    held_of = {(row.stream_id, row.step, row.start): row for row in held_rows}
    rows = [Rollup(**asdict(point), run=run) for point in wanted]
    for row in rows:
        before = held_of.get((row.stream_id, row.step, row.start))
        if before is not None:
            row.messages += before.messages
            row.bytes += before.bytes
    Rollup.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["stream_id", "step", "start"],
        update_fields=["messages", "bytes", "run"],
    )
    return len(wanted)


def _moved(positions: Sequence[Progressed], *, run: Run | None) -> set[str]:
    """Move the positions that still are where the counting started; the streams that they are of."""
    moved = set()
    there = streams_there(each.stream_id for each in positions)
    for progressed in positions:
        if progressed.stream_id not in there:
            continue
        held, _ = RollupPosition.objects.select_for_update().get_or_create(stream_id=progressed.stream_id)
        if held.offset != progressed.from_offset:
            continue
        held.offset, held.run = progressed.to_offset, run
        held.fresh_to = progressed.fresh_to or held.fresh_to
        held.save()
        moved.add(progressed.stream_id)
    return moved


def streams_there(stream_ids: Iterable[str]) -> set[str]:
    """Which of these streams there are; until the caller's transaction ends, none of them is deleted."""
    there = Stream.objects.select_for_update(no_key=True).filter(stream_id__in=set(stream_ids)).order_by("pk")
    return set(there.values_list("stream_id", flat=True))
