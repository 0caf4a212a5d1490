"""The Spark session of the history's jobs: one machine by default, small, private, in UTC."""

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import AUTH_COMMAND_NAME, Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark.class_data import SILENT, ClassData
from spark.source import register
from spark.watching import built_context

PROJECT = Path(__file__).resolve().parent.parent
DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "1g"
DEFAULT_HOST = "127.0.0.1"

ENDING_S = 1.0

LOGGING = f"-Dlog4j2.configurationFile={(PROJECT / 'spark' / 'log4j2.properties').as_uri()}"
"""Java's lines of the log have no text of an error; a machine of a cluster that lacks the file has those of Spark."""

ENDING_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"

ENDING_DEAF_TASKS = {
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.pollingInterval": "1s",
    "spark.task.reaper.killTimeout": "5s",
    "spark.task.reaper.threadDump": "false",
}
"""A task that was told to end and does not, as in a regular expression, would keep its core of a cluster for good: its
executor is ended, and the worker starts another. On this machine ``okmq.analytics.shared_spark`` ends Spark."""

for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    # PySpark would log what it raises, with the value that is at fault.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

_folders: list[Path] = []
"""What this process's JVM fills with temporary files."""


class NotStarted(Exception):
    """The JVM ended before anything could be said to it: it was killed, there was no memory for it, or no Java."""


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """What a session needs to know.

    Attributes:
        master: where Spark runs (``OKMQ_SPARK_MASTER``), ``local[*]`` for this machine.
        memory: the most that the driver's heap takes (``OKMQ_SPARK_MEMORY``), such as ``1g``; on a cluster that of each
            executor, too.
        host: this machine's name or address at which executors reach the driver (``OKMQ_SPARK_HOST``).
        cores: the most tasks at once (``OKMQ_SPARK_CORES``), of this machine in place of those that ``master`` names,
            or of all workers of a standalone master; None leaves it to ``master``.
        folder: Spark's own files: shuffle and spill, warehouse, temporary files. Made if it is missing.
    """

    folder: Path
    master: str = DEFAULT_MASTER
    memory: str = DEFAULT_MEMORY
    host: str = DEFAULT_HOST
    cores: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether Spark runs on this machine, in the driver's own process."""
        return self.master.startswith("local")

    @property
    def places(self) -> dict[str, str]:
        """Where Spark runs and on how many cores, as it is told."""
        if self.cores is None:
            return {"spark.master": self.master}
        if self.is_local:
            failures = self.master.partition(",")[2].rstrip("]")
            return {"spark.master": f"local[{self.cores}{failures and ','}{failures}]"}
        return {"spark.master": self.master, "spark.cores.max": str(self.cores)}


def build(settings: SessionSettings, *, name: str = "okmq", classes_to: Path | None = None) -> SparkSession:
    """Start a session, with the source ``okmq`` registered; the caller stops it.

    Nothing is left behind in the working directory, and nothing listens but on loopback, answering nobody else, or on a
    cluster's behalf on ``settings.host``.

    Args:
        classes_to: a file that Java writes its classes to when it ends, in place of reading those that are kept.

    Raises:
        NotStarted: the JVM has ended.
    """
    host = DEFAULT_HOST if settings.is_local else settings.host
    local = _folder(settings.folder / "local")
    temporary = local / "tmp"
    temporary.mkdir(exist_ok=True)
    java_options = " ".join(
        [
            *([] if settings.is_local else [ENDING_WITHOUT_MEMORY]),
            _quoted(f"-Djava.io.tmpdir={temporary}"),
            _quoted(f"-Dderby.system.home={temporary}"),
            _quoted(LOGGING),
            "-Duser.timezone=UTC",  # what a thread takes that no session was activated on
            # Two heaps' worth of parallel collectors are not for a background process; ``spark.heap`` asks this one.
            "-XX:+UseSerialGC",
            "-XX:MaxMetaspaceSize=384m",
            "-XX:ReservedCodeCacheSize=128m",
            *map(_quoted, _class_data(classes_to)),
        ]
    )
    # Spark reads these two from the environment only: the interpreter of the workers, and the address to resolve.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", host)
    builder = SparkSession.builder.appName(name)
    for key, value in {
        **settings.places,
        "spark.driver.memory": settings.memory,
        "spark.executor.memory": settings.memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": f"{ENDING_WITHOUT_MEMORY} {_quoted(LOGGING)}",
        # Or a task that ran out of stack, as a regular expression does on a long text, or of the driver's heap, would
        # end Spark for everybody.
        "spark.executor.killOnFatalError.depth": "0",
        **({} if settings.is_local else ENDING_DEAF_TASKS),
        # Any user of the machine may connect to its ports. Spark makes the secret itself, and keeps it within Java.
        **({"spark.authenticate": "true"} if settings.is_local else {}),
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(local),
        "spark.sql.warehouse.dir": (settings.folder / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Or the text of a query could have this process's environment put into it: ${env:…}.
        "spark.sql.variable.substitute": "false",
        "spark.sql.runSQLOnFiles": "false",
        # Pools share the processors task by task, whoever came first; within one, whoever came first is served first.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Open writers for the folders of one task; without them every task sorts its rows by folder first.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
        # A restart needs the last micro-batch and the one before; a hundred are kept by default.
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.executorEnv.PYTHONPATH": _python_path(),
    }.items():
        builder = builder.config(key, value)
    session = _started(builder)
    session.sparkContext.setLogLevel("ERROR")  # also where the file is not
    activate(session)
    register(session)
    return session


def _started(builder: SparkSession.Builder) -> SparkSession:
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError) as error:
        if _jvm_process() is not None:
            raise
        raise NotStarted(
            "Java ended while it was starting Spark: it was killed, or there is no memory for it, or no Java 17."
        ) from error


def activate(session: SparkSession) -> None:
    """Have what this thread asks Spark for follow the session's settings.

    Spark's parser, and some expressions, look for settings at the session that is active on the thread. Where none is,
    as on every thread that did not start Spark, they take Spark's defaults: the variables of ``${env:…}`` are put into
    the text, and times are in the time zone of the machine.
    """
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def lives() -> bool:
    """Whether this process has a JVM that runs, with a context that was not stopped."""
    process = _jvm_process()
    return process is not None and process.poll() is None and not _is_stopped()


def died() -> bool:
    """Whether the JVM of this process, or Spark in it, has ended by itself; a JVM that is just ending is waited for."""
    process = _jvm_process()
    if process is None:
        return False
    if _is_stopped():
        return True
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def runs(session: SparkSession) -> bool:
    """Whether this session is the one whose JVM runs."""
    return lives() and session.sparkContext is SparkContext._active_spark_context


def has_nobody() -> bool:
    """Whether this process's Spark is on a cluster that has given it no executor, or none any more."""
    context = built_context()
    if context is None or str(context.master).startswith("local"):
        return False
    try:
        jsc: Any = context._jsc
        return bool(jsc.sc().getExecutorMemoryStatus().size() <= 1)  # the driver is one
    except (Py4JError, OSError):
        return False  # the JVM has just gone


def end() -> None:
    """End the session and its JVM at once, so that the memory is given back; a next ``build`` starts anew.

    ``SparkSession.stop`` leaves the JVM running. It is killed rather than asked: that takes no time, says nothing
    alarming, and what was being written does not count until it is whole. Its workers end with it.
    """
    process = _jvm_process()
    _say_no_more()
    if process is not None:
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
    _forget_session()


def answers(within_s: float) -> bool:
    """Whether the JVM takes calls: a new connection of ours is known to it within so long; True where there is no JVM.

    A thread of its own that had no memory is gone, and the JVM lives on: without the one that takes connections,
    whoever makes one waits for ever.
    """
    gateway: Any = SparkContext._gateway
    if gateway is None or _jvm_process() is None:
        return True
    told = gateway.java_parameters
    try:
        with socket.create_connection((told.address, told.port), within_s) as connection:
            connection.settimeout(within_s)
            connection.sendall(f"{AUTH_COMMAND_NAME}\n{told.auth_token}\n".encode())
            return bool(connection.recv(1))
    except TimeoutError:
        return False
    except OSError:
        return True  # it has just gone, which is seen elsewhere


def folders() -> Sequence[Path]:
    """Where this process's Spark has its temporary files."""
    return tuple(_folders)


def process() -> "subprocess.Popen[bytes] | None":
    """The JVM of this process; it can be killed also where it answers nothing."""
    return _jvm_process()


def _jvm_process() -> "subprocess.Popen[bytes] | None":
    return getattr(SparkContext._gateway, "proc", None)


def _is_stopped() -> bool:
    """Whether Spark has stopped its context, as it does where a cluster gives it up; the JVM runs on, of no use."""
    context = built_context()
    if context is None:
        return False
    try:
        jsc: Any = context._jsc
        return bool(jsc.sc().isStopped())
    except (Py4JError, OSError):
        return False  # the JVM has just gone


def _say_no_more() -> None:
    """Have nothing told to the JVM, and nothing printed of what its end breaks off."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway._gateway_client.is_connected = False
    accumulators: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.handle_error = lambda request, address: None


def _forget_session() -> None:
    """Close what listened to a JVM that has ended, and take back what PySpark keeps of it (it has no call for this).

    While the JVM lives this would wait for ever: closing a connection waits for the thread that reads from it.
    """
    accumulators: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.shutdown()
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown_callback_server()
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def _folder(parent: Path) -> Path:
    """A folder of this process's own, the same as long as its JVM; those of processes that are gone are removed."""
    if _folders and _jvm_process() is not None:
        return _folders[-1]
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.iterdir():
        if not Path("/proc", left.name.partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)
    number = 1 + len(list(parent.glob(f"{os.getpid()}-*")))
    folder = parent / f"{os.getpid()}-{number}"
    folder.mkdir()
    _folders.append(folder)
    return folder


def _class_data(classes_to: Path | None) -> list[str]:
    if classes_to is None:
        return ClassData().options
    # What is compiled for speed is not kept, and would be most of the work.
    return ["-XX:TieredStopAtLevel=1", f"-XX:ArchiveClassesAtExit={classes_to}", *SILENT]


def _quoted(option: str) -> str:
    """An option of Java's as one word of a line, whatever its path is called."""
    return '"' + re.sub(r'["\\]', r"\\\g<0>", option) + '"'


def _python_path() -> str:
    """Where workers find this package and ``streams``, before whatever this process was given."""
    return ":".join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
