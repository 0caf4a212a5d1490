"""A rollup run: what is new in the history is counted, and windows that have grown or ended are looked at."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from okmq.analytics.lanes import Session
from okmq.analytics.shared_spark import SharedSpark
from spark.positions import archived_offsets, positions
from streams import store
from streams.models import RollupPosition, Run, Stream
from streams.selectors import METRICS_STREAM
from streams.services import history as service
from streams.services import windows as windows_service
from streams.services.standing import StoodPoint, standing_add
from streams.services.streams_told import registered
from streams.services.windows import DueWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.batches import HistoryFile
    from spark.jobs.figures import Figures
    from spark.jobs.profiles import Profile

SAMPLES_EVERY = timedelta(minutes=30)
"""The worker's samples are counted with everything else; without anything else, so often."""


class Rollups:
    """Does rollup runs.

    Args:
        stop: once it is set nothing more is stored.
    """

    def __init__(self, *, spark: SharedSpark, stop: threading.Event) -> None:
        self.spark, self.stop = spark, stop

    def do(self, run: Run, session: Session) -> dict[str, int]:
        """Count, then look; what a run did.

        Args:
            session: gives Spark's, started where there is none.
        """
        counts = self._count(run, session)
        service.run_progress(run, progress=0.4, counts=counts)
        counts |= {"samples": self._stand(session, run)}
        service.run_progress(run, progress=0.6, counts=counts)
        windows, twice = 0, Counter[str]()
        due = windows_service.windows_due(now=timezone.now())
        due += windows_service.windows_beside(but=due)
        while due and not self.stop.is_set():
            stored, doubles = self._look(due, session(), run)
            windows, twice = windows + stored, twice + doubles
            counts |= {"windows": windows} | ({"twice": max(twice.values())} if twice else {})
            service.run_progress(run, progress=0.9, counts=counts)
            due = windows_service.windows_due(now=timezone.now())
        return {**counts, "windows": windows}

    def _count(self, run: Run, session: Session) -> dict[str, int]:
        archived, counted = _archived(), counted_offsets()
        if not behind(counted, archived):
            return {"messages": 0, "bytes": 0, "points": 0}
        from spark.jobs.rollup import rollup
        from spark.rereading import begun_again

        found = begun_again(
            lambda: rollup(session(), self.spark.settings(), counted=counted, archived=archived),
            files=lambda: self._files(session()),
        )
        if self.stop.is_set():
            return {}
        changed = service.rollups_add(
            [
                service.RollupPoint(
                    stream_id=point.stream_id,
                    step=point.step,
                    start=point.start,
                    messages=point.messages,
                    bytes=point.bytes,
                )
                for point in found.points
            ],
            positions=[
                service.Progressed(
                    stream_id=each.stream_id,
                    from_offset=each.from_offset,
                    to_offset=each.to_offset,
                    fresh_to=each.fresh_to,
                )
                for each in found.positions
            ],
            run=run,
        )
        return {"messages": found.messages, "bytes": found.bytes, "points": changed}

    def _stand(self, session: Session, run: Run) -> int:
        """Count the worker's samples that are not counted yet; how many windows of streams and groups changed.

        Another comes every second: those that do while it counts are left to the next run.
        """
        metrics, changed = _metrics(), 0
        if metrics is None:
            return 0
        newest = _newest_sample(metrics)
        while not self.stop.is_set() and (counted := _counted_samples(metrics)) < newest:
            from spark.jobs.standing import standing

            found = standing(session(), self.spark.settings(), metrics=registered(metrics), counted=counted)
            if found is None or self.stop.is_set():
                break
            changed += standing_add(
                [StoodPoint(**asdict(each)) for each in found.stood],
                position=service.Progressed(
                    stream_id=metrics.stream_id,
                    from_offset=found.from_offset,
                    to_offset=found.to_offset,
                    fresh_to=found.fresh_to,
                ),
                run=run,
            )
        return changed

    def _look(self, due: list[DueWindow], session: "SparkSession", run: Run) -> tuple[int, Counter[str]]:
        """Look at windows and store what was found; how many these are, and by step how many messages the history has
        once more than it should.
        """
        from spark.history import History
        from spark.jobs.figures import Window, look
        from spark.jobs.profiles import profiles
        from spark.rereading import begun_again

        began = timezone.now()
        history = History(session, self.spark.settings().history_url)
        windows = [
            Window(
                number=each.pk,
                stream_id=each.stream_id,
                step=each.step,
                start=each.start,
                counted=each.counted,
            )
            for each in due
        ]

        def files() -> "list[HistoryFile]":
            return self._files(session)

        found = begun_again(lambda: look(session, history, files(), windows=windows), files=files)
        of_days = begun_again(lambda: profiles(session, history, files(), windows=windows), files=files)
        if self.stop.is_set():
            return 0, Counter()
        stored = windows_service.windows_store(
            (
                _to_store(window, figures, of_days.get(window.pk))
                for window, figures in zip(due, found, strict=True)
            ),
            since=began,
            run=run,
        )
        doubles = Counter[str]()
        for window, figures in zip(due, found, strict=True):
            doubles[window.step] += figures.twice
        return stored, doubles

    def _files(self, session: "SparkSession") -> "list[HistoryFile]":
        """Those of the history that count."""
        from spark.history import History

        history = History(session, self.spark.settings().history_url)
        return list(self.spark.batches().refresh(history).files.values())


def _to_store(
    window: DueWindow, found: "Figures", profile: "Profile | None"
) -> windows_service.WindowFigures:
    missing = 0
    if found.first is not None and found.last is not None:
        missing = max(0, found.last - found.first + 1 - (found.messages - found.twice))
    return windows_service.WindowFigures(
        pk=window.pk,
        looked_at=window.messages,
        scanned=found.messages,
        first_offset=found.first,
        last_offset=found.last,
        missing=missing,
        ids=found.ids,
        keys=found.keys,
        size_p50=found.size_p50,
        size_p90=found.size_p90,
        size_p99=found.size_p99,
        size_max=found.size_max,
        top_keys=found.top_keys,
        bodies=None if profile is None else profile.objects,
        unreadable=None if profile is None else profile.unreadable,
        fields=None if profile is None else [asdict(each) for each in profile.fields],
    )


def have_work() -> bool:
    """Whether a run would find something to do; cheap, without Spark."""
    return behind(counted_offsets(), _archived()) or bool(
        windows_service.windows_due(now=timezone.now(), limit=1) or samples_are_due()
    )


def samples_are_due() -> bool:
    """Whether samples have waited so long that they are worth a run of their own; they are kept for some hours only."""
    metrics = _metrics()
    if metrics is None or _newest_sample(metrics) <= _counted_samples(metrics):
        return False
    position = RollupPosition.objects.filter(stream_id=metrics.stream_id).first()
    since = metrics.created_at if position is None or position.fresh_to is None else position.fresh_to
    return timezone.now() - since > SAMPLES_EVERY


def _metrics() -> Stream | None:
    return Stream.objects.filter(name=METRICS_STREAM, internal=True).select_related("workspace").first()


def _newest_sample(metrics: Stream) -> int:
    at = store.log().run(positions([metrics.stream_id])).get(metrics.stream_id)
    return 0 if at is None else at.last


def _counted_samples(metrics: Stream) -> int:
    return counted_offsets().get(metrics.stream_id, 0)


def _archived() -> dict[str, int]:
    """Stream id → offset up to which the history has it, of the streams that the database has: no others count."""
    archived = store.log().run(archived_offsets())
    there = set(Stream.objects.values_list("stream_id", flat=True))
    return {stream_id: offset for stream_id, offset in archived.items() if stream_id in there}


def counted_offsets() -> dict[str, int]:
    """Stream id → offset up to which the rollups have counted it."""
    return dict(RollupPosition.objects.values_list("stream_id", "offset"))


def behind(counted: Mapping[str, int], archived: Mapping[str, int]) -> bool:
    """Whether the history has something that the rollups have not."""
    return any(offset > counted.get(stream_id, 0) for stream_id, offset in archived.items())
