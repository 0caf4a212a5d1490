"""The lane of what writes the history, which one may do at a time: archive, compact, erase."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import DatabaseError

from okmq.analytics.causes import kinds, readable
from okmq.analytics.erased import ErasedSince
from okmq.analytics.lanes import RETRY_S, Lane, Session
from okmq.analytics.reasons import ReasonsKept
from okmq.analytics.shared_spark import SharedSpark
from okmq.supervision.masters import MasterAway
from spark.positions import CHECKPOINT, archive_backlog, archived_offsets
from streams import store
from streams.log.errors import LogError
from streams.models import Erasure, Run
from streams.models.history import Job
from streams.services import erasures as erasures_service
from streams.services import history as service

if TYPE_CHECKING:
    from spark.jobs.archive import Lacking

MOST_TRIES = 3
"""Nothing asks for an erasure again by schedule, as for runs: it has failed only where this did not help."""

SPARK_DIED = "Spark ended by itself each time this was done, or was not given an executor."

log = logging.getLogger(__name__)


def archive_has_work(data_dir: Path) -> bool:
    """Whether an archive run would find something to do now; cheap, without Spark.

    So it does where no run was ever made here though the log was told of one: the history may be another one.
    """
    if store.log().run(archive_backlog()) > 0:
        return True
    return not (data_dir / "spark" / CHECKPOINT).exists() and bool(store.log().run(archived_offsets()))


def note_lacking(lacking: "Lacking") -> None:
    """Put on record what neither the history nor its stream has."""
    service.history_lacks(lacking.stream_id, first=lacking.first, last=lacking.last)


class HistoryLane(Lane):
    """Archives and compacts as runs say, and erases, in the order in which it was asked for."""

    def __init__(
        self, *, spark: SharedSpark, erased: ErasedSince, reasons: ReasonsKept, stop: threading.Event
    ) -> None:
        jobs = {Job.ARCHIVE: self._archive, Job.COMPACT: self._compact}
        super().__init__("history", spark=spark, stop=stop, jobs=jobs)
        self._erased = erased
        self._reasons = reasons
        self._failures: Counter[int] = Counter()
        self._met_no_master = False
        """An erasure that came first found no master of Spark: the next run is tried before it, and says so."""

    def step(self) -> bool:
        if super().step():
            self._met_no_master = False
            return True
        erasures = erasures_service.erasures_take()
        if not erasures:
            return False
        with self.spark.in_use():
            self._erase(erasures)
        return True

    def next_run(self) -> Run | None:
        before = None if self._met_no_master else erasures_service.erasures_wait_since()
        return service.run_take(self.jobs, before=before)

    def begin_again(self) -> None:
        super().begin_again()
        erasures_service.erasures_interrupted()

    def _archive(self, run: Run, session: Session) -> dict[str, int]:
        if not archive_has_work(self.spark.env.data_dir):
            return {"messages": 0, "bytes": 0, "batches": 0}
        from spark.jobs.archive import ArchiveProgress, archive

        def note(progress: ArchiveProgress) -> None:
            service.run_progress(run, progress=progress.fraction, counts=counts(progress))

        def counts(progress: ArchiveProgress) -> dict[str, int]:
            return {"messages": progress.messages, "bytes": progress.bytes, "batches": progress.batches}

        done = archive(session(), self.spark.settings(), on_progress=note, on_lacking=note_lacking)
        self._compact_soon_where_needed(session)
        return counts(done)

    def _compact_soon_where_needed(self, session: Session) -> None:
        """Queue a compaction where a stream has many small files of one day."""
        from spark.history import History
        from spark.jobs.rewrite import small_files

        history = History(session(), self.spark.settings().history_url)
        if small_files(self.spark.batches().refresh(history).files.values()):
            service.run_request(jobs=[Job.COMPACT], requested_by="schedule")

    def _compact(self, run: Run, session: Session) -> dict[str, int]:
        """Put files together; what is left when another run waits is a run of its own, after that one."""
        from spark.jobs.rewrite import Compacted, compact

        def counts(done: Compacted) -> dict[str, int]:
            return {"messages": done.messages, "files": done.files, "into": done.into}

        def note(done: Compacted) -> None:
            service.run_progress(run, progress=done.files / (done.files + done.left), counts=counts(done))

        done = compact(
            session(),
            self.spark.settings(),
            known=self.spark.batches(),
            on_progress=note,
            gives_way=lambda: service.runs_wait(Job.ARCHIVE, Job.ROLLUP),
        )
        if done.left:
            service.run_request(jobs=[Job.COMPACT], requested_by=run.requested_by)
        return counts(done)

    def _erase(self, erasures: Sequence[Erasure]) -> None:
        """Do erasures in the same streams and note how they ended; what is cut off is done again.

        What a limit has hidden and waits for the history nobody can delete from its stream. So it is copied first:
        then it is in the files that are written anew.
        """
        from spark.jobs.archive import archive
        from spark.jobs.rewrite import Unwanted, erase

        first = erasures[0]
        started = time.monotonic()
        try:
            if not first.of_deleted and archive_has_work(self.spark.env.data_dir):
                archive(self._session(), self.spark.settings(), on_lacking=note_lacking)
            done = erase(
                self._session(),
                self.spark.settings(),
                stream_ids=self._deleted(first) if first.of_deleted else {first.stream_id},
                unwanted=[
                    Unwanted(name=each.name, offset=each.offset, key=each.key or None, up_to=each.up_to)
                    for each in erasures
                ],
                known=self.spark.batches(),
                on_progress=lambda fraction: erasures_service.erasures_progress(erasures, fraction),
            )
        except MasterAway as error:
            log.warning("Erasure %s waits: %s", first.pk, error)
            self._met_no_master = True
            erasures_service.erasures_interrupted()
            self.stop.wait(RETRY_S)
            return
        except (DatabaseError, LogError):
            raise
        except Exception as error:
            if self.stop.is_set():
                return
            if not self.spark.failed_for_a_query(error, since=started):
                why = SPARK_DIED if self.spark.has_died(since=started) else readable(error)
                for each in erasures:
                    self._failed(each, error, why=why)
            erasures_service.erasures_interrupted()
            self.spark.end_if_dead()
            return
        self._erased.note(first.stream_id)
        self._reasons.forget(erasures_service.workspaces_meant(first))
        for each in erasures:
            took = done[each.name]
            erasures_service.erasure_of_letters(each)
            erasures_service.erasure_done(each, messages=took.messages, through=took.through)

    def _failed(self, erasure: Erasure, error: Exception, *, why: str) -> None:
        """Note that an erasure has failed, where that was its last try."""
        self._failures[erasure.pk] += 1
        if self._failures[erasure.pk] < MOST_TRIES:
            log.warning("Erasure %s is done again: %s", erasure.pk, kinds(error))
            return
        log.error("Erasure %s failed: %s", erasure.pk, kinds(error))
        erasures_service.erasure_failed(erasure, error=why)

    def _deleted(self, erasure: Erasure) -> set[str]:
        """The ids of the deleted streams that an erasure means."""
        from spark.jobs.rewrite import streams_deleted

        return streams_deleted(
            self._session(),
            self.spark.settings(),
            workspace_ids=erasures_service.workspaces_meant(erasure),
            name=erasure.stream or None,
            spared=lambda: erasures_service.streams_not_meant(erasure),
            known=self.spark.batches(),
        )
