"""Watches what Spark does for a replay, and ends what nobody wants any more or what does not end by itself."""

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from okmq.analytics.shared_spark import SharedSpark
from streams.models import Replay
from streams.services import replays as service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5

STUCK_S = 600.0
"""How long Spark may do nothing of a step; queries that run beside it may take every processor for half as long."""

PLANNED_WITHIN_S = 60.0
"""Nobody waits for the end of a step that is not wanted any more, and a session that has just begun, on a busy machine,
plans for long; a constant that ends never is computed there, too."""

_steps = itertools.count(1)

log = logging.getLogger(__name__)


class CannotReplay(RuntimeError):
    """It cannot go on as it is; the message is a sentence for a person."""


class NotWanted(Exception):
    """Somebody paused or cancelled it, or the process ends."""


@contextmanager
def watched(
    spark: SharedSpark, session: "SparkSession", replay: Replay, *, stop: threading.Event, stuck_s: float
) -> Iterator[None]:
    """One step that the calling thread has Spark take for a replay.

    A step that was told to end and goes on, as a regular expression does, is ended with Spark: soon where a task of it
    does not end, and after ``PLANNED_WITHIN_S`` where Spark still plans it.

    Args:
        stuck_s: seconds in which no task of the step need be done.

    Raises:
        NotWanted: it was paused or cancelled meanwhile.
        CannotReplay: nothing of it was done for so long.
    """
    group = f"replay-{replay.pk}-{next(_steps)}"
    session.sparkContext.setJobGroup(group, f"replay {replay.pk}", interruptOnCancel=True)
    watch = _Watch(spark, session, replay, group=group, stop=stop, stuck_s=stuck_s)
    thread = threading.Thread(target=watch.run, name=group, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if watch.why is not None:
            raise watch.why from error
        raise
    finally:
        watch.is_over.set()
        thread.join()


class _Watch:
    def __init__(
        self,
        spark: SharedSpark,
        session: "SparkSession",
        replay: Replay,
        *,
        group: str,
        stop: threading.Event,
        stuck_s: float,
    ) -> None:
        self.spark, self.session, self.replay = spark, session, replay
        self.group, self.stop, self.stuck_s = group, stop, stuck_s
        self.is_over = threading.Event()
        self.why: CannotReplay | NotWanted | None = None

    def run(self) -> None:
        try:
            self.why = self._reason_to_end()
            if self.why is not None:
                planned_by = time.monotonic()
                if isinstance(self.why, NotWanted):
                    planned_by += PLANNED_WITHIN_S
                self.spark.see_the_end(
                    self.session,
                    group=self.group,
                    what=f"Replay {self.replay.pk}",
                    is_at_work=lambda: not self.is_over.is_set() and time.monotonic() >= planned_by,
                    is_over=self.is_over.is_set,
                    stop=self.stop,
                )
        finally:
            connections.close_all()

    def _reason_to_end(self) -> CannotReplay | NotWanted | None:
        """Why the step has to end, once there is a reason; None where it ended, or the process does."""
        from spark import watching

        done, since = 0.0, time.monotonic()
        while not self.is_over.wait(POLL_S) and not self.stop.is_set():
            if not self._is_wanted():
                return NotWanted()
            now_done = watching.progress(self.group)
            if now_done != done:
                done, since = now_done, time.monotonic()
            elif time.monotonic() - since > self.stuck_s:
                return CannotReplay(
                    f"Spark did nothing of it for {self.stuck_s:g} seconds; does a regular expression of its condition "
                    "ever end?"
                )
        return None

    def _is_wanted(self) -> bool:
        try:
            return service.replay_is_wanted(self.replay)
        except DatabaseError as error:
            log.warning("Replay %s goes on; the database does not answer: %s", self.replay.pk, error)
            return True
