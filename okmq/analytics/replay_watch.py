"""Watches what Spark does for a replay, and ends what nobody wants any more or what does not end by itself."""

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from okmq.analytics.shared_spark import DEAF_S, SharedSpark, java
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

UNHEARD_S = 2 * DEAF_S
"""How long Java may leave it unanswered how far a step is, while that is wanted."""

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
    does not end, and after ``PLANNED_WITHIN_S`` where Spark still plans it. Where Java answers nothing, as when it only
    collects garbage, it is ended too, and the step fails as with any end of Spark.

    Args:
        stuck_s: seconds in which no task of the step need be done.

    Raises:
        NotWanted: it was paused or cancelled meanwhile.
        CannotReplay: nothing of it was done for so long.
    """
    group = f"replay-{replay.pk}-{next(_steps)}"
    session.sparkContext.setJobGroup(group, f"replay {replay.pk}", interruptOnCancel=True)
    watch = _Watch(spark, session, replay, group=group, stop=stop, stuck_s=stuck_s)
    threads = [threading.Thread(target=each, name=group, daemon=True) for each in (watch.ask, watch.decide)]
    for thread in threads:
        thread.start()
    try:
        yield
    except Exception as error:
        if watch.why is not None:
            raise watch.why from error
        raise
    finally:
        watch.is_over.set()
        for thread in threads:
            thread.join()


class _Watch:
    """One thread asks Java how far the step is, and may wait for its answer; another decides, and asks it nothing."""

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
        self.process = java()
        self.done = 0.0
        self.heard_at = self.done_at = time.monotonic()
        self.has_asked = threading.Event()
        self.is_over = threading.Event()
        self.why: CannotReplay | NotWanted | None = None

    def ask(self) -> None:
        """Look how far the step is until there is a reason to end it, and then have Spark do so."""
        try:
            while self.why is None:
                if self.is_over.wait(POLL_S) or self.stop.is_set():
                    return
                self._look()
        finally:
            self.has_asked.set()  # what sees the end has a guard of its own
        self._see_the_end(self.why)

    def _look(self) -> None:
        from spark import watching

        done = watching.progress(self.group)
        self.heard_at = time.monotonic()
        if done != self.done:
            self.done, self.done_at = done, self.heard_at
        elif self.heard_at - self.done_at > self.stuck_s and self.why is None:
            self.why = CannotReplay(
                f"Spark did nothing of it for {self.stuck_s:g} seconds; does a regular expression of its condition "
                "ever end?"
            )

    def _see_the_end(self, why: CannotReplay | NotWanted) -> None:
        planned_by = time.monotonic()
        if isinstance(why, NotWanted):
            planned_by += PLANNED_WITHIN_S
        self.spark.see_the_end(
            self.session,
            group=self.group,
            what=f"Replay {self.replay.pk}",
            is_at_work=lambda: not self.is_over.is_set() and time.monotonic() >= planned_by,
            is_over=self.is_over.is_set,
            stop=self.stop,
        )

    def decide(self) -> None:
        """See whether it is still wanted, and end Java where that is not heard."""
        try:
            while not self.has_asked.wait(POLL_S) and not self.stop.is_set():
                if self.why is None and not self._is_wanted():
                    self.why = NotWanted()
                patience_s = UNHEARD_S if self.why is None else DEAF_S
                if time.monotonic() - self.heard_at > patience_s and self.process is not None:
                    log.warning("Replay %s hears nothing of Spark, so it is ended.", self.replay.pk)
                    self.spark.end_deaf(self.process)
                    return
        finally:
            connections.close_all()

    def _is_wanted(self) -> bool:
        try:
            return service.replay_is_wanted(self.replay)
        except DatabaseError as error:
            log.warning("Replay %s goes on; the database does not answer: %s", self.replay.pk, error)
            return True
