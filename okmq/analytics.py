"""The analytics process: takes runs from the database and lets Spark do them, on demand and on its own schedule.

Spark is started when there is something to do and let go when there was nothing for a while; between them this is a
small process that asks the database for queued runs. A run that fails is marked so and the process lives on; one
that a crash cut off is marked at the next start and queued again. Whatever the moment, nothing is counted twice:
see ``spark.history`` and ``streams.services.history.rollups_add``.
"""

import logging
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from django.db import DatabaseError, close_old_connections, connections

from okmq import rollups
from okmq.causes import readable
from okmq.env import Env
from okmq.queries import Queries
from okmq.replays import Replays
from okmq.rollups import Rollups
from okmq.run_watch import RunWatch
from okmq.shared_spark import SharedSpark
from spark.positions import archive_backlog
from streams import store
from streams.log.errors import LogError
from streams.models import Erasure, Run
from streams.models.history import Job
from streams.services import erasures as erasures_service
from streams.services import history as service
from streams.services import queries as queries_service
from streams.services import replays as replays_service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5
"""How often the database is asked for queued runs."""

RETRY_S = 5.0
"""How long the database or the store is left alone after it did not answer."""

FINISH_S = 1.5
"""How long a run may take to end by itself when the process is told to: time for a transaction, not for Spark."""

POOL = "runs"

log = logging.getLogger(__name__)
# What fails in the JVM is raised here too and said once, in a sentence.
logging.getLogger("py4j").setLevel(logging.CRITICAL)


class Analytics:
    """Does the runs one after the other.

    Args:
        env: where things are, how often to run, when to let go of Spark.
        stop: ends ``serve``; a run that is under way is cut off and marked at the next start.
    """

    def __init__(self, env: Env, *, stop: threading.Event) -> None:
        self.env = env
        self.stop = stop
        self.spark = SharedSpark(env)
        self.queries = Queries(env, spark=self.spark, stop=stop)
        self.replays = Replays(env, spark=self.spark, stop=stop)
        self.rollups = Rollups(spark=self.spark, stop=stop)
        self.next_schedule = time.monotonic()
        self._watch: RunWatch | None = None

    def serve(self) -> None:
        """Work until told to stop; a database or a store that does not answer is waited for."""
        is_beginning = may_be_left_running = True
        while not self.stop.is_set():
            try:
                close_old_connections()
                if is_beginning:
                    queries_service.queries_lost()
                    self.queries.start()
                    self.replays.start()
                    is_beginning = False
                if may_be_left_running:
                    service.runs_interrupted()
                    erasures_service.erasures_interrupted()
                    may_be_left_running = False
                self.tick()
            except (DatabaseError, LogError) as error:
                may_be_left_running = True  # the end of a run could not be noted either
                if not self.stop.is_set():
                    log.warning("History waits: %s", error)
                self.stop.wait(RETRY_S)
        self.queries.join(FINISH_S / 2)
        self.replays.join(FINISH_S / 2)
        connections.close_all()

    def tick(self) -> None:
        """Queue what is due, do the next queued run, else see whether Spark is still needed."""
        if time.monotonic() >= self.next_schedule:
            self.next_schedule = time.monotonic() + self.env.history_every_s
            queries_service.queries_forget()
            replays_service.replays_forget()
            jobs = jobs_with_work()
            if jobs:
                service.run_request(jobs=jobs, requested_by="schedule")
        run = service.run_take()
        if run is not None:
            self.execute(run)
            self.spark.touch()
            return
        erasure = erasures_service.erasure_take()
        if erasure is not None:
            self.erase(erasure)
            self.spark.touch()
            return
        if self.spark.is_idle:
            self.spark.release()
        self.stop.wait(POLL_S)

    def execute(self, run: Run) -> None:
        """Do one run and note how it ended."""
        started = time.monotonic()
        try:
            counts = self._counts_of(run)
        except (DatabaseError, LogError) as error:
            if self.stop.is_set():
                return
            service.run_finish(run, counts=run.counts, error=readable(error))
            raise
        except Exception as error:
            if self.stop.is_set():
                return  # it was cut off: the next start says so and does it again
            if self.spark.was_broken_off(since=started):
                service.runs_interrupted(why=service.BROKEN_OFF)
                return
            log.exception("The %s run %s failed.", run.job, run.pk)
            service.run_finish(run, counts=run.counts, error=readable(error))
            self.spark.end_if_dead()
            return
        if not self.stop.is_set():
            service.run_finish(run, counts=counts)
            extra = {"run": run.pk, "job": run.job, "seconds": round(time.monotonic() - started, 3), **counts}
            log.info("The %s run %s is done.", run.job, run.pk, extra=extra)

    def erase(self, erasure: Erasure) -> None:
        """Do one erasure and note how it ended; what is cut off is done again."""
        from spark.jobs.rewrite import erase

        started = time.monotonic()
        try:
            done = erase(
                self._session(),
                self.spark.settings(),
                stream_id=erasure.stream_id,
                offset=erasure.offset,
                key=erasure.key or None,
            )
        except Exception as error:
            if self.stop.is_set():
                return
            if self.spark.was_broken_off(since=started):
                erasures_service.erasures_interrupted()
                return
            if self.spark.died_under(f"Erasure {erasure.pk}", since=started):
                erasures_service.erasures_interrupted()
                return
            log.exception("Erasure %s failed.", erasure.pk)
            erasures_service.erasure_failed(erasure, error=readable(error))
            self.spark.end_if_dead()
            return
        erasures_service.erasure_done(erasure, messages=done.messages, through=done.through)

    def _counts_of(self, run: Run) -> dict[str, int]:
        """Do a run's job, watched; what it counted."""
        self._watch = RunWatch(run)
        try:
            match run.job:
                case Job.ARCHIVE:
                    return self._archive(run)
                case Job.COMPACT:
                    return self._compact(run)
                case _:
                    return self.rollups.do(run, session=self._session)
        finally:
            self._watch.end()
            self._watch = None

    def _compact(self, run: Run) -> dict[str, int]:
        from spark.jobs.rewrite import Compacted, compact

        def counts(done: Compacted) -> dict[str, int]:
            return {"messages": done.messages, "files": done.files, "into": done.into}

        def note(done: Compacted) -> None:
            service.run_progress(run, progress=0.5, counts=counts(done))

        return counts(compact(self._session(), self.spark.settings(), on_progress=note))

    def _compact_soon_where_needed(self) -> None:
        """Queue a compaction where a stream has many small files of one day."""
        from spark.history import History, current_files
        from spark.jobs.rewrite import small_files

        history = History(self._session(), self.spark.settings().history_url)
        if small_files(current_files(self.spark.batches().refresh(history))):
            service.run_request(jobs=[Job.COMPACT], requested_by="schedule")

    def _archive(self, run: Run) -> dict[str, int]:
        if store.log().run(archive_backlog()) == 0:
            return {"messages": 0, "bytes": 0, "batches": 0}
        from spark.jobs.archive import ArchiveProgress, archive

        def note(progress: ArchiveProgress) -> None:
            service.run_progress(run, progress=progress.fraction, counts=counts(progress))

        def counts(progress: ArchiveProgress) -> dict[str, int]:
            return {"messages": progress.messages, "bytes": progress.bytes, "batches": progress.batches}

        done = archive(self._session(), self.spark.settings(), on_progress=note)
        self._compact_soon_where_needed()
        return counts(done)

    def _session(self) -> "SparkSession":
        """The session, for a run: its jobs share Spark with the queries."""
        session = self.spark.session()
        session.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        if self._watch is not None:
            self._watch.takes(session)
        return session


def jobs_with_work() -> list[Job]:
    """The jobs that would find something to do now; cheap, without Spark."""
    if store.log().run(archive_backlog()) > 0:
        return [Job.ARCHIVE, Job.ROLLUP]
    return [Job.ROLLUP] if rollups.have_work() else []


def run(env: Env) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. No JVM is left behind, whatever it was doing."""
    stop = threading.Event()

    def ask_to_stop(signum: int, frame: FrameType | None) -> None:
        stop.set()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, ask_to_stop)
    # Spark's calls cannot be interrupted, so they are made in another thread than the one that gets the signals.
    analytics = Analytics(env, stop=stop)
    working = threading.Thread(target=analytics.serve, name="analytics", daemon=True)
    working.start()
    while working.is_alive() and not stop.is_set():
        stop.wait(1.0)
    crashed = not stop.is_set()
    working.join(FINISH_S)
    logging.disable(logging.CRITICAL)  # the cries of calls whose JVM goes
    analytics.spark.end()
    for pid in _children():
        os.kill(pid, signal.SIGKILL)  # a JVM that was only just being started
    return 1 if crashed else 0


def _children() -> list[int]:
    """The ids of this process's children, where ``/proc`` tells."""
    found: list[int] = []
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            found += map(int, listing.read_text().split())
        except OSError:
            continue  # a thread that ended meanwhile
    return found
