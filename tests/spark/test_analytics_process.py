"""The process as the supervisor starts it: its JVM comes when needed, goes when idle, and never outlives it."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.jobs import PROJECT, environment
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class AnalyticsProcess:
    """``manage.py okmq_analytics`` on a data folder of its own; what it started is known by the folder's name."""

    def __init__(self, data_dir: Path, redis_url: str) -> None:
        self.data_dir = data_dir
        self.mark = f"OKMQ_DATA_DIR={data_dir}".encode()
        self.environ = environment(
            OKMQ_DATA_DIR=str(data_dir),
            OKMQ_REDIS_URL=redis_url,
            OKMQ_HISTORY_EVERY="1",
            OKMQ_SPARK_IDLE="3",
            OKMQ_SPARK_MASTER="local[2]",
            DJANGO_SETTINGS_MODULE="okmq.settings",
        )
        data_dir.mkdir()
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, cwd=PROJECT, env=self.environ, check=True)
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.data_dir / "log").open("ab") as out:
            self.child = subprocess.Popen(
                [sys.executable, "manage.py", "okmq_analytics"],
                cwd=PROJECT,
                env=self.environ,
                stdout=out,
                stderr=out,
            )

    def send(self, signum: signal.Signals, *, within_s: float) -> int:
        """Send a signal and wait for the end; the exit code."""
        assert self.child is not None
        self.child.send_signal(signum)
        return self.child.wait(within_s)

    def others(self) -> list[int]:
        """The living processes of this folder but the one that was started here."""
        own = self.child.pid if self.child else 0
        return [pid for pid in self._marked() if pid != own]

    def _marked(self) -> Iterator[int]:
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                # A zombie's environment is empty, and so is that of a process that ends while it is read.
                if self.mark in environ.read_bytes().split(b"\0"):
                    yield int(environ.parent.name)
            except OSError:
                continue

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.data_dir / "okmq.sqlite3", timeout=10) as database:
            found = database.execute(question).fetchall()
        database.close()
        return found

    def counted(self, step: str) -> int:
        ((total,),) = self.ask(f"select coalesce(sum(messages), 0) from streams_rollup where step = '{step}'")
        assert isinstance(total, int)
        return total


@pytest.fixture
def process(published: Published, tmp_path: Path) -> Iterator[AnalyticsProcess]:
    running = AnalyticsProcess(tmp_path / "data", published.url)
    yield running
    if running.child is not None and running.child.poll() is None:
        running.child.kill()
        running.child.wait()


def test_killed_restarted_idle_and_ended(process: AnalyticsProcess, published: Published) -> None:
    stream = published.stream("a")
    published.numbered(stream, 3000)
    process.start()
    until(process.others, within_s=120, what="Spark is started")
    process.send(signal.SIGKILL, within_s=5)
    until(lambda: not process.others(), within_s=10, what="the JVM and its workers end with it")

    process.start()
    until(lambda: process.counted("minute") == 3000, within_s=200, what="everything is counted")
    assert process.ask("select job, error <> '' from streams_run where state = 'failed'") == [("archive", 1)]
    until(lambda: not process.others(), within_s=60, what="Spark is let go when idle")
    assert process.child is not None
    assert process.child.poll() is None

    published.numbered(stream, 500, prefix="later")
    until(lambda: process.counted("day") == 3500, within_s=200, what="Spark is started again")
    assert process.counted("hour") == 3500
    published.numbered(stream, 2000, prefix="last")
    until(process.others, within_s=120, what="Spark lives")
    assert process.send(signal.SIGTERM, within_s=5) == 0
    until(lambda: not process.others(), within_s=2, what="nothing is left")
