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
from datetime import timedelta
from pathlib import Path
from types import FrameType

from django.db import DatabaseError, close_old_connections, connections

from okmq.analytics import rollups
from okmq.analytics.answering import Answering
from okmq.analytics.causes import kinds
from okmq.analytics.erased import ErasedSince
from okmq.analytics.lanes import POLL_S, RETRY_S, Lane
from okmq.analytics.queries import Queries
from okmq.analytics.reasons import ReasonsKept
from okmq.analytics.replays import Replays
from okmq.analytics.rollups import Rollups
from okmq.analytics.shared_spark import SharedSpark
from okmq.analytics.writing_history import HistoryLane, archive_has_work
from okmq.env import Env
from streams.log.errors import LogError
from streams.models.history import Job
from streams.services import history as service
from streams.services import queries as queries_service

FINISH_S = 1.5
"""How long a run may take to end by itself when the process is told to: time for a transaction, not for Spark."""

FORGET_EVERY_S = 3600.0
"""How often it is looked for old runs, once there are none left."""

log = logging.getLogger(__name__)
# What fails in the JVM is raised here too and said once, in a sentence.
logging.getLogger("py4j").setLevel(logging.CRITICAL)


class Analytics:
    """Has runs, queries and replays done, each in threads of their own, and Spark let go.

    Args:
        env: where things are, how often to run, when to let go of Spark.
        stop: ends ``serve``; what is under way is cut off and marked at the next start.
    """

    def __init__(self, env: Env, *, stop: threading.Event) -> None:
        self.env = env
        self.stop = stop
        self.spark = SharedSpark(env)
        self.reasons, erased = ReasonsKept(), ErasedSince()
        self.queries = Queries(Answering(env, spark=self.spark, reasons=self.reasons, stop=stop))
        self.replays = Replays(env, spark=self.spark, erased=erased, reasons=self.reasons, stop=stop)
        counting = Rollups(spark=self.spark, stop=stop)
        self.lanes = (
            HistoryLane(spark=self.spark, erased=erased, reasons=self.reasons, stop=stop),
            Lane("rollups", spark=self.spark, stop=stop, jobs={Job.ROLLUP: counting.do}),
        )
        self.next_schedule = self.next_forgetting = time.monotonic()

    def serve(self) -> None:
        """Work until told to stop, or a lane has crashed; a database or a store that does not answer is waited for."""
        is_beginning = True
        while not self.stop.is_set():
            try:
                close_old_connections()
                if is_beginning:
                    queries_service.queries_lost()
                    for each in (self.queries, self.replays, *self.lanes):
                        each.start()
                    self._listen()
                    is_beginning = False
                self.look()
                if not all(lane.lives for lane in self.lanes):
                    return
                self.stop.wait(POLL_S)
            except (DatabaseError, LogError) as error:
                if not self.stop.is_set():
                    log.warning("History waits: %s", error)
                self.stop.wait(RETRY_S)
        deadline = time.monotonic() + FINISH_S
        for each in () if is_beginning else (*self.lanes, self.queries, self.replays):
            each.join(max(0.0, deadline - time.monotonic()))
        connections.close_all()

    def _listen(self) -> None:
        threading.Thread(target=self.spark.listen, args=(self.stop,), name="listening", daemon=True).start()

    def look(self) -> None:
        """Queue what is due, let go of old runs, and see whether Spark is still needed."""
        if time.monotonic() >= self.next_schedule:
            self.next_schedule = time.monotonic() + self.env.history_every_s
            jobs = jobs_with_work(self.env.data_dir)
            if jobs:
                service.run_request(jobs=jobs, requested_by="schedule")
        if time.monotonic() >= self.next_forgetting:
            self._forget_runs()
        self.spark.release_if_idle()
        self.spark.end_if_stranded()

    def _forget_runs(self) -> None:
        """Remove some old runs; more at the next look, or where there are none left, later."""
        kept = timedelta(days=self.env.runs_days)
        if service.runs_forget(kept=kept) < service.FORGOTTEN_AT_ONCE:
            self.next_forgetting = time.monotonic() + FORGET_EVERY_S


def jobs_with_work(data_dir: Path) -> list[Job]:
    """The jobs that would find something to do now; cheap, without Spark."""
    if archive_has_work(data_dir):
        return [Job.ARCHIVE, Job.ROLLUP]
    return [Job.ROLLUP] if rollups.have_work() else []


def note_crash(crashed: threading.ExceptHookArgs) -> None:
    """Say in the log that an error has ended a thread: as Python would, but for what the error says."""
    if crashed.exc_value is not None and not isinstance(crashed.exc_value, SystemExit):
        name = crashed.thread.name if crashed.thread else "unknown"
        log.critical("The thread %s crashed: %s", name, kinds(crashed.exc_value))


def run(env: Env) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. No JVM is left behind, whatever it was doing."""
    stop = threading.Event()

    def ask_to_stop(signum: int, frame: FrameType | None) -> None:
        stop.set()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, ask_to_stop)
    threading.excepthook = note_crash
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
