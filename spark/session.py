"""The Spark session of the history's jobs: one machine by default, small, private, in UTC."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark.source import register

PROJECT = Path(__file__).resolve().parent.parent
DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "1g"


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """What a session needs to know.

    Attributes:
        master: where Spark runs (``OKMQ_SPARK_MASTER``), ``local[*]`` for this machine.
        memory: the most that the driver's heap takes (``OKMQ_SPARK_MEMORY``), such as ``1g``.
        folder: Spark's own files: shuffle and spill, warehouse, temporary files. Made if it is missing.
    """

    folder: Path
    master: str = DEFAULT_MASTER
    memory: str = DEFAULT_MEMORY


def build(settings: SessionSettings, *, name: str = "okmq") -> SparkSession:
    """Start a session, with the source ``okmq`` registered; the caller stops it.

    Nothing is left behind in the working directory, and nothing listens but on loopback.
    """
    local, temporary = settings.folder / "local", settings.folder / "tmp"
    for folder in (local, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    java_options = " ".join(
        [
            f"-Djava.io.tmpdir={temporary}",
            f"-Dderby.system.home={temporary}",
            "-XX:+UseSerialGC",  # two heaps' worth of parallel collectors are not for a background process
            "-XX:MaxMetaspaceSize=384m",
            "-XX:ReservedCodeCacheSize=128m",
        ]
    )
    # Spark reads these two from the environment only: the interpreter of the workers, and the address to resolve.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(settings.master).appName(name)
    for key, value in {
        "spark.driver.memory": settings.memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(local),
        "spark.sql.warehouse.dir": (settings.folder / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Open writers for the folders of one task; without them every task sorts its rows by folder first.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.executorEnv.PYTHONPATH": _python_path(),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session


def _python_path() -> str:
    """Where workers find this package and ``streams``, before whatever this process was given."""
    return ":".join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
