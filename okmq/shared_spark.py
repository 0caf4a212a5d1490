"""The one Spark session of the analytics process, for its runs and its queries: started when first needed."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from okmq.env import Env

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.jobs.settings import JobSettings
    from spark.tables import KnownBatches

log = logging.getLogger(__name__)


class SharedSpark:
    """Gives the session to whoever works, and ends it when nobody did for a while; safe to share between threads."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.used_at = time.monotonic()
        self._starting = threading.Lock()
        self._known: KnownBatches | None = None
        self._knowing = threading.Lock()
        self._in_use = 0
        self._broken_off_at = float("-inf")

    def session(self) -> "SparkSession":
        """The session; started where there is none, which takes some seconds."""
        from spark import session

        with self._starting:
            if not session.lives():
                session.end()
            self.touch()
            return session.build(self.settings().session)

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
            cores=self.env.spark_cores,
        )

    def batches(self) -> "KnownBatches":
        """The log of batches as far as anybody here has read it."""
        from spark.tables import KnownBatches

        with self._knowing:
            if self._known is None:
                self._known = KnownBatches()
            return self._known

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Not idle while this lasts."""
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

    def release(self) -> None:
        """Give Spark's memory back."""
        self.touch()
        if self.lives:
            log.info("Spark was idle and is ended.")
            self.end()

    def end_if_dead(self) -> None:
        """Forget a session whose JVM has gone."""
        if was_started() and not self.lives:
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

    def was_broken_off(self, *, since: float) -> bool:
        """Whether what failed since a monotonic time was cut off for something else, and is to be done again."""
        return self._broken_off_at >= since

    def end(self) -> None:
        """End the session and its JVM at once, whatever it does."""
        if was_started():
            from spark import session

            session.end()


def was_started() -> bool:
    """Whether PySpark was ever imported here; asking it would import it."""
    return "spark.session" in sys.modules
