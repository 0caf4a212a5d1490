"""A standalone master of Spark with one worker on loopback, which is started again when it dies."""

import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.spark.jobs import environment
from tests.waiting import until

SPARK = Path(pyspark.__file__).parent
HEAPS = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
WEB = ("--webui-port", "0")
LISTENING = ("--host", "127.0.0.1", "--port", "0", *WEB)
ADDRESS = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:[1-9][0-9]*)")
REGISTERED = "Successfully registered with master"


@dataclass(kw_only=True)
class Daemon:
    """A process of Spark's own deployment: a master or a worker."""

    kind: str
    arguments: Sequence[str]
    folder: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def said(self) -> str:
        """What it has said since its last start."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.kind}.log"

    def start(self) -> None:
        command = [
            str(SPARK / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{self.kind}",
            *self.arguments,
        ]
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=environment(**HEAPS), stdout=out, stderr=out, cwd=self.folder
            )

    @property
    def pid(self) -> int | None:
        """Its process id; None where it does not run."""
        return None if self.process is None or self.process.poll() is not None else self.process.pid

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@dataclass(kw_only=True)
class Cluster:
    """A master's address, and its worker."""

    address: str
    master: Daemon
    worker: Daemon

    def end(self) -> None:
        """End all of it; the worker comes again, and looks for the master."""
        self.master.end()
        self.worker.end()

    def start_anew(self) -> None:
        """End all of it, and start it again at the same address, as for an upgrade."""
        self.end()
        self.master.arguments = ("--host", "127.0.0.1", "--port", self.address.rpartition(":")[2], *WEB)
        self.master.start()
        until(lambda: ADDRESS.search(self.master.said) is not None, within_s=120, what="the master listens")

    def executors(self) -> list[int]:
        """The process ids of the executors that the worker has started."""
        found: list[int] = []
        for listing in Path(f"/proc/{self.worker.pid}/task").glob("*/children"):
            try:
                found += map(int, listing.read_text().split())
            except OSError:
                continue  # a thread that ended meanwhile
        return found

    def executor(self) -> int | None:
        """One of them; None where there is none."""
        return next(iter(self.executors()), None)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """One that runs, until the block ends; the files of its executors stand in ``folder / "work"``."""
    master = Daemon(kind="master.Master", arguments=LISTENING, folder=folder)
    started, over = [master], threading.Event()
    try:
        master.start()
        until(lambda: ADDRESS.search(master.said) is not None, within_s=120, what="the master listens")
        found = ADDRESS.search(master.said)
        assert found is not None
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        worker = Daemon(kind="worker.Worker", arguments=(*LISTENING, *size, found[1]), folder=folder)
        started.append(worker)
        worker.start()
        until(lambda: REGISTERED in worker.said, within_s=120, what="the worker has registered")
        with ThreadPoolExecutor(1) as supervisor:
            supervisor.submit(_keep_alive, worker, over)
            try:
                yield Cluster(address=found[1], master=master, worker=worker)
            finally:
                over.set()
    finally:
        for daemon in reversed(started):
            daemon.end()


def _keep_alive(daemon: Daemon, over: threading.Event) -> None:
    """As a service manager does."""
    while not over.wait(0.5):
        if daemon.pid is None:
            daemon.start()
