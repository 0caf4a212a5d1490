"""Says of a run that is under way how many of Spark's stages and tasks are done, as Spark has it."""

import logging
import threading
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from streams.models import Run
from streams.services import history as service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.watching import Tagged, Work

EVERY_S = 0.5

log = logging.getLogger(__name__)


class RunWatch:
    """Watches what Spark does for one run, from a thread of its own, once there is a session."""

    def __init__(self, run: Run) -> None:
        self.tag = f"run-{run.pk}"
        self._run_id = run.pk
        self._session: SparkSession | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def takes(self, session: "SparkSession") -> None:
        """Have the jobs of the calling thread, and of those that it begins, counted into the run."""
        if self._session is session:
            return
        self._session = session
        session.sparkContext.addJobTag(self.tag)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name=self.tag, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Note how it ended, and leave the calling thread as it was."""
        self._over.set()
        if self._thread is not None:
            from spark import watching

            self._thread.join()
            watching.untag(self.tag)

    def _watch(self) -> None:
        from spark.watching import Tagged, Work

        watched, told = Tagged(self.tag), Work()
        try:
            while not self._over.wait(EVERY_S):
                told = self._tell(watched, told)
            self._tell(watched, told)
        finally:
            connections.close_all()

    def _tell(self, watched: "Tagged", told: "Work") -> "Work":
        found = watched.work()
        if found == told:
            return told
        try:
            service.run_works(
                self._run_id,
                stages=found.stages,
                stages_done=found.stages_done,
                tasks=found.tasks,
                tasks_done=found.tasks_done,
            )
        except DatabaseError as error:
            log.warning("How far run %s is could not be noted: %s", self._run_id, error)
            return told
        return found
