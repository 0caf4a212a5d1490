"""The one Spark session of the analytics process, for its runs and its queries: started when first needed."""

import importlib
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from okmq.analytics.pools import Pools
from okmq.env import Env
from okmq.supervision import masters
from okmq.supervision.masters import MasterAway

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

    from spark.history import KnownBatches
    from spark.jobs.settings import JobSettings

ENDING_S = 5.0
"""How long Spark may go on with work that was told to end; then it is ended with it."""

ENDING_POLL_S = 0.25

LISTEN_EVERY_S = 10.0
"""How often it is asked whether Java takes calls."""

LISTEN_POLL_S = 1.0

DEAF_S = 15.0
"""How long Java may leave a question of ours unanswered while work is to end; then it is ended. Where it only collects
garbage, it answers none."""

STRANDED_S = 60.0
"""How long work waits for an executor of a cluster; then Spark is started anew. A master that was started again does
not know who was there before, and Spark's driver waits for it for ever."""

AWAY_S = 10.0
"""How long it waits for one where the master does not answer either."""

STRANDED_POLL_S = 2.0

MOST_DEATHS = 3
"""How often Spark may die under the same work until this has failed: it may be what kills it."""

_importing = threading.Lock()

log = logging.getLogger(__name__)


class SharedSpark:
    """Gives the session to whoever works, and ends it when nobody did for a while; safe to share between threads."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.pools = Pools()
        self.used_at = time.monotonic()
        self._starting = threading.Lock()
        self._known: KnownBatches | None = None
        self._knowing = threading.Lock()
        self._in_use = 0
        self._broken_off_at = self._died_at = self._stranded_at = self._pressed_at = float("-inf")
        self._alone_since: float | None = None
        self._looked_at = self._listened_at = float("-inf")
        self._deaths: Counter[str] = Counter()

    def session(self) -> "SparkSession":
        """The session; started where there is none, which takes some seconds.

        Raises:
            MasterAway: it would have to be started, on a cluster whose master does not answer.
            spark.session.NotStarted: Spark ended while it was being started.
        """
        from spark import session

        with self._starting:
            self._end_if_dead()
            self.touch()
            if not self.lives and masters.is_away(self.env.spark_master):
                raise MasterAway(self.env.spark_master)
            try:
                return session.build(self.settings().session)
            except session.NotStarted:
                self._died_at = time.monotonic()
                raise

    def settings(self) -> "JobSettings":
        """What the jobs and the queries need to know of their surroundings."""
        from spark.jobs.settings import JobSettings

        return JobSettings(
            redis_url=self.env.redis_url,
            memory_url=self.env.memory_redis_url,
            history_url=self.env.history_url,
            spark_dir=self.env.data_dir / "spark",
            master=self.env.spark_master,
            memory=self.env.spark_memory,
            host=self.env.spark_host,
            cores=self.env.spark_cores,
        )

    def batches(self) -> "KnownBatches":
        """The log of batches as far as anybody here has read it."""
        from spark.history import KnownBatches

        with self._knowing:
            if self._known is None:
                self._known = KnownBatches()
            return self._known

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Not idle while this lasts, with PySpark imported."""
        _import_spark()
        with self._knowing:
            self._in_use += 1
        try:
            yield
        finally:
            with self._knowing:
                self._in_use -= 1
            self.touch()

    def touch(self) -> None:
        """Note that the session is in use."""
        self.used_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        return self._in_use == 0 and time.monotonic() - self.used_at > self.env.spark_idle_s

    @property
    def lives(self) -> bool:
        """Whether there is a JVM that runs."""
        if not was_started():
            return False
        from spark import session

        return session.lives()

    def release_if_idle(self) -> None:
        """Give Spark's memory back where nobody has used it for a while."""
        if not self.is_idle:
            return
        with self._starting:
            if (
                self.is_idle and java() is not None
            ):  # one that answers nothing cannot be asked whether it lives
                log.info("Spark was idle and is ended.")
                self.end()

    def end_if_stranded(self) -> None:
        """End a session whose cluster has given it no executor for long while somebody works with it."""
        now = time.monotonic()
        if now - self._looked_at < STRANDED_POLL_S or not was_started():
            return
        from spark import session

        self._looked_at = now
        is_wanted = self._in_use > 0 or now - self.used_at < STRANDED_POLL_S
        if not (is_wanted and session.has_nobody()):
            self._alone_since = None
            return
        self._alone_since = self._alone_since or now
        alone_s = now - self._alone_since
        if alone_s < AWAY_S or (alone_s < STRANDED_S and not masters.is_away(self.env.spark_master)):
            return
        with self._starting:
            if session.has_nobody():
                log.warning(
                    "The cluster has given Spark no executor for %.0f s; Spark is started anew.", alone_s
                )
                self._alone_since = None
                self._died_at = self._stranded_at = time.monotonic()
                session.end()

    def end_if_deaf(self) -> None:
        """End a JVM that takes no calls any more: a thread of its own had no memory, or it only collects garbage."""
        now = time.monotonic()
        if now - self._listened_at < LISTEN_EVERY_S or not was_started():
            return
        from spark import session

        self._listened_at, process = now, session.process()
        if process is None or session.answers(DEAF_S) or session.answers(DEAF_S):
            return
        log.warning("Spark has taken no call for %.0f s, so it is ended.", 2 * DEAF_S)
        self.end_deaf(process)

    def end_deaf(self, process: "subprocess.Popen[bytes]") -> None:
        """End a JVM that answers nothing, unless it has ended; who waits for an answer has one then."""
        if process.poll() is None:
            self._died_at = time.monotonic()
            process.kill()
            process.wait()
        self.end_if_dead()

    def listen(self, stop: threading.Event) -> None:
        """Look for a deaf JVM until told to stop; for a thread of its own, as others may wait for its answer."""
        while not stop.wait(LISTEN_POLL_S):
            try:
                self.end_if_deaf()
            except Exception:  # or nobody would look any more
                log.exception("It could not be found whether Spark takes calls.")

    def end_if_dead(self) -> None:
        """Forget a session whose JVM has gone; one that is just being started is waited for."""
        with self._starting:
            self._end_if_dead()

    def _end_if_dead(self) -> None:
        if was_started() and not self.lives:
            from spark import session

            if session.died():
                self._died_at = time.monotonic()
            self.end()

    def break_off(self, held: "SparkSession") -> None:
        """End the session that somebody works with at once, because something in it does not stop.

        Where it is not the one that runs any more, nothing happens: others work with a new one.
        """
        from spark import session

        with self._starting:
            if session.runs(held):
                self._broken_off_at = time.monotonic()
                session.end()

    def see_the_end(
        self,
        held: "SparkSession",
        *,
        group: str,
        what: str,
        is_at_work: Callable[[], bool],
        is_over: Callable[[], bool],
        stop: threading.Event,
    ) -> None:
        """Have Spark stop a group of jobs, or end it: some code, such as a regular expression, hears nothing.

        That may be a task, or Spark's own planning, which computes what is constant before there is any job.

        Args:
            what: whose they are, for the log.
            is_at_work: whether whoever asked waits for Spark.
            is_over: whether it asks for nothing more.
            stop: nothing is waited for any more.
        """
        from spark import session, watching

        process = session.process()
        heard_at = time.monotonic()
        is_seen = threading.Event()

        def guard() -> None:
            while process is not None and not is_seen.wait(ENDING_POLL_S):
                if time.monotonic() - heard_at > DEAF_S:
                    log.warning("%s does not end, and Spark answers nothing, so it is ended.", what)
                    self._broken_off_at = time.monotonic()
                    process.kill()  # whoever waits for an answer has one now, also who holds the lock
                    process.wait()
                    return

        # This thread has a connection to Java, which may have no memory for another; the guard needs none.
        threading.Thread(target=guard, name="guard", daemon=True).start()
        try:
            deadline = time.monotonic() + ENDING_S
            while self.lives and not stop.is_set():
                watching.cancel(group)  # and again: its next job may only just be beginning
                is_in_spark = is_at_work() or watching.tasks_left(group)
                heard_at = time.monotonic()
                if not is_in_spark and is_over():
                    return
                if not is_in_spark:  # it does something else; there is no next step
                    deadline = time.monotonic() + ENDING_S
                elif time.monotonic() > deadline:
                    log.warning("%s does not end, so Spark is ended.", what)
                    self.break_off(held)
                    return
                stop.wait(ENDING_POLL_S)
        finally:
            is_seen.set()

    def was_broken_off(self, *, since: float) -> bool:
        """Whether what failed since a monotonic time was cut off for something else, and is to be done again."""
        return self._broken_off_at >= since

    def note_pressure(self) -> None:
        """A query holds much of the memory: others may have none meanwhile."""
        self._pressed_at = time.monotonic()

    def failed_for_a_query(self, error: Exception, *, since: float) -> bool:
        """Whether a run has failed because of a query: Spark was ended with that, or it held the memory.

        Where Java had none and no query held it, Spark is ended: other work may have had none either, without anybody
        being told.
        """
        if self.was_broken_off(since=since) or not self.lives:
            return self.was_broken_off(since=since)
        from spark import sentences, session

        if self._pressed_at >= since and sentences.is_of_the_heap(error):
            return True
        if not sentences.is_out_of_memory(error):
            return False
        with self._starting:
            if self._died_at < since:
                log.warning("Spark had no memory left, and is ended.")
                self._died_at = time.monotonic()
                session.end()
        return False

    def was_stranded(self, *, since: float) -> bool:
        """Whether what failed since a monotonic time had no executor."""
        return self._stranded_at >= since

    def has_died(self, *, since: float) -> bool:
        """Whether Spark has ended by itself, or had no executor, since a monotonic time."""
        if was_started():
            from spark import session

            if session.died():
                self.end_if_dead()
        return self._died_at >= since

    def lived_through(self, what: str) -> None:
        """It was done; the deaths under it before are no sign of what the next one like it brings."""
        self._deaths.pop(what, None)

    def died_under(self, what: str, *, since: float) -> bool:
        """Whether Spark has died while it did something since a monotonic time, and that is worth another try."""
        if not self.has_died(since=since):
            return False
        self._deaths[what] += 1
        if self._deaths[what] >= MOST_DEATHS:
            return False
        log.warning("%s was cut off, because Spark ended; it is done again.", what)
        return True

    def end(self) -> None:
        """End the session and its JVM at once, whatever it does."""
        if was_started():
            from spark import session

            session.end()


def was_started() -> bool:
    """Whether PySpark was ever imported here; asking it would import it."""
    return "spark.session" in sys.modules


def java() -> "subprocess.Popen[bytes] | None":
    """The JVM of this process, which is asked nothing."""
    if not was_started():
        return None
    from spark import session

    return session.process()


def _import_spark() -> None:
    """Import PySpark, one thread at a time: its parts import each other, and two at once met them half made."""
    with _importing:
        importlib.import_module("spark.session")
