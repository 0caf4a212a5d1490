"""What the jobs need to know about their surroundings."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark.positions import CHECKPOINT
from spark.session import DEFAULT_HOST, DEFAULT_MASTER, DEFAULT_MEMORY, PROJECT, SessionSettings, build, end
from streams.log.client import Log


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Where the streams are, where the history is, how Spark is to run.

    Attributes:
        redis_url: the log's store.
        memory_url: the server of the streams in memory; None where there is none.
        history_url: a folder, or any URL that Spark's file systems take.
        spark_dir: Spark's own folder on this machine: checkpoints, temporary files.
        master, memory, host, cores: see ``SessionSettings``.
    """

    redis_url: str
    history_url: str
    spark_dir: Path
    memory_url: str | None = None
    master: str = DEFAULT_MASTER
    memory: str = DEFAULT_MEMORY
    host: str = DEFAULT_HOST
    cores: int | None = None

    @property
    def checkpoint_url(self) -> str:
        """How far the archive's query has come. Losing it loses nothing: the history and the log know it too."""
        return str(self.spark_dir / CHECKPOINT)

    @property
    def session(self) -> SessionSettings:
        return SessionSettings(
            folder=self.spark_dir,
            master=self.master,
            memory=self.memory,
            host=self.host,
            cores=self.cores,
        )

    def log(self) -> Log:
        """A connection to the log, to be closed."""
        return Log(self.redis_url, memory_url=self.memory_url)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "JobSettings":
        """The settings of a job that is run by hand: the variables that the product reads, with its defaults.

        Raises:
            SystemExit: OKMQ_REDIS_URL is missing and no private server's socket stands in the data folder.
        """
        values = os.environ if environ is None else environ
        data_dir = Path(values.get("OKMQ_DATA_DIR") or PROJECT / "var").absolute()
        socket, memory = (data_dir / server / "valkey.sock" for server in ("valkey", "valkey-memory"))
        redis_url = values.get("OKMQ_REDIS_URL") or (f"unix://{socket}" if socket.exists() else "")
        if not redis_url:
            raise SystemExit(f"OKMQ_REDIS_URL is not set, and no server listens at {socket}.")
        memory_url = values.get("OKMQ_MEMORY_REDIS_URL") or (f"unix://{memory}" if memory.exists() else None)
        return cls(
            redis_url=redis_url,
            memory_url=memory_url,
            history_url=values.get("OKMQ_HISTORY_URL") or str(data_dir / "history"),
            spark_dir=data_dir / "spark",
            master=values.get("OKMQ_SPARK_MASTER") or DEFAULT_MASTER,
            memory=values.get("OKMQ_SPARK_MEMORY") or DEFAULT_MEMORY,
            host=values.get("OKMQ_SPARK_HOST") or DEFAULT_HOST,
            cores=int(values["OKMQ_SPARK_CORES"]) if values.get("OKMQ_SPARK_CORES") else None,
        )


@contextmanager
def main_session(settings: JobSettings) -> Iterator[SparkSession]:
    """A session for one job, stopped at its end."""
    session = build(settings.session)
    try:
        yield session
    finally:
        end()
