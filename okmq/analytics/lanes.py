"""What the analytics process does by itself, in lanes: one thing after the other within a lane, lanes side by side.

What writes the history has a lane, and counting has another, so that the archive waits for no rollup
(docs/adr/0036).
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from django.db import DatabaseError, close_old_connections, connections

from okmq.analytics.causes import kinds, readable
from okmq.analytics.pools import PROPERTY, of_lane
from okmq.analytics.run_watch import RunWatch
from okmq.analytics.shared_spark import SharedSpark
from okmq.supervision.masters import MasterAway
from streams.log.errors import LogError
from streams.models import Run
from streams.models.history import Job
from streams.services import history as service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5
"""How often the database is asked for something to do."""

RETRY_S = 5.0
"""How long the database or the store is left alone after it did not answer."""

Session = Callable[[], "SparkSession"]

log = logging.getLogger(__name__)


class Lane:
    """Does the runs of some jobs, one after the other, in a thread of its own.

    Args:
        name: also of its pool in Spark's scheduler.
        jobs: how each is done: with a run, and with what gives Spark's session, started where there is none; what it
            counted.
        stop: ends it; a run that is under way is cut off and marked at the next start.
    """

    def __init__(
        self,
        name: str,
        *,
        spark: SharedSpark,
        stop: threading.Event,
        jobs: Mapping[Job, Callable[[Run, Session], dict[str, int]]],
    ) -> None:
        self.name, self.spark, self.stop, self.jobs = name, spark, stop, jobs
        self._watch: RunWatch | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> None:
        """Work in its thread until told to stop."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread, after it was told to stop."""
        self._thread.join(timeout_s)

    @property
    def lives(self) -> bool:
        return self._thread.is_alive()

    def step(self) -> bool:
        """Do the next of its runs; whether there was one."""
        run = self.next_run()
        if run is None:
            return False
        with self.spark.in_use():
            self._execute(run)
        return True

    def next_run(self) -> Run | None:
        """The run that is to be done now, taken."""
        return service.run_take(self.jobs)

    def begin_again(self) -> None:
        """Have what was cut off done again."""
        service.runs_interrupted(self.jobs)

    def _serve(self) -> None:
        """Do what there is; a database or a store that does not answer is waited for."""
        may_be_left_running = True
        while not self.stop.is_set():
            try:
                close_old_connections()
                if may_be_left_running:
                    self.begin_again()
                    may_be_left_running = False
                if not self.step():
                    self.stop.wait(POLL_S)
            except (DatabaseError, LogError) as error:
                may_be_left_running = True  # the end of a run could not be noted either
                if not self.stop.is_set():
                    log.warning("History waits: %s", error)
                self.stop.wait(RETRY_S)
        connections.close_all()

    def _execute(self, run: Run) -> None:
        """Do one run and note how it ended."""
        started = time.monotonic()
        try:
            counts = self._counts_of(run)
        except (DatabaseError, LogError) as error:
            if self.stop.is_set():
                return
            service.run_finish(run, counts=run.counts, error=readable(error))
            raise
        except MasterAway as error:
            log.warning("The %s run %s failed: %s", run.job, run.pk, error)
            service.run_finish(run, counts=run.counts, error=str(error))
            return
        except Exception as error:
            if self.stop.is_set():
                return  # it was cut off: the next start says so and does it again
            if self.spark.failed_for_a_query(error, since=started):
                service.runs_interrupted(self.jobs, why=service.BROKEN_OFF)
                return
            stranded = self.spark.was_stranded(since=started)
            if self.spark.died_under(_named(run), since=started):
                why = service.STRANDED if stranded else service.SPARK_DIED
                service.runs_interrupted(self.jobs, why=why)
                return
            log.error("The %s run %s failed: %s", run.job, run.pk, kinds(error))
            died = self.spark.has_died(since=started)
            often = service.STRANDED_OFTEN if stranded else service.SPARK_DIED_OFTEN
            service.run_finish(run, counts=run.counts, error=often if died else readable(error))
            self.spark.end_if_dead()
            return
        self.spark.lived_through(_named(run))
        if not self.stop.is_set():
            service.run_finish(run, counts=counts)
            extra = {"run": run.pk, "job": run.job, "seconds": round(time.monotonic() - started, 3), **counts}
            log.info("The %s run %s is done.", run.job, run.pk, extra=extra)

    def _counts_of(self, run: Run) -> dict[str, int]:
        """Do a run's job, watched; what it counted."""
        self._watch = RunWatch(run)
        try:
            return self.jobs[Job(run.job)](run, self._session)
        finally:
            self._watch.end()
            self._watch = None

    def _session(self) -> "SparkSession":
        """The session, for the calling thread: its jobs share Spark with those of others."""
        session = self.spark.session()
        session.sparkContext.setLocalProperty(PROPERTY, of_lane(self.name))
        if self._watch is not None:
            self._watch.takes(session)
        return session


def _named(run: Run) -> str:
    """What Spark dies under: what kills it once may do so again, in another run of the job."""
    return f"A run of {run.job}"
