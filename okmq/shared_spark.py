"""The one Spark session of the analytics process, for its runs and its queries: started when first needed."""

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

from okmq.env import Env

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.jobs.settings import JobSettings

log = logging.getLogger(__name__)


class SharedSpark:
    """Gives the session to whoever works, and ends it when nobody did for a while; safe to share between threads."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.used_at = time.monotonic()
        self._starting = threading.Lock()

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
        )

    def touch(self) -> None:
        """Note that the session is in use."""
        self.used_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        return time.monotonic() - self.used_at > self.env.spark_idle_s

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

    def end(self) -> None:
        """End the session and its JVM at once, whatever it does."""
        if was_started():
            from spark import session

            session.end()


def was_started() -> bool:
    """Whether PySpark was ever imported here; asking it would import it."""
    return "spark.session" in sys.modules
