"""``OKMQ_SPARK_MASTER``: the jobs on a standalone master with a worker, all on loopback."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark.history import History
from spark.jobs.settings import JobSettings
from streams.log import config
from tests.spark.jobs import environment, job_process
from tests.spark.published import Published, rows
from tests.waiting import until

pytestmark = pytest.mark.spark

SPARK = Path(pyspark.__file__).parent
HEAPS = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def running(kind: str, *arguments: str, folder: Path) -> Iterator[Path]:
    """A process of Spark's own deployment, until the block ends; its log."""
    log = folder / f"{kind}.log"
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment(**HEAPS), stdout=out, stderr=out, cwd=folder)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master that has a worker."""
    with ExitStack() as stack:
        listening = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = stack.enter_context(running("master.Master", *listening, folder=tmp_path))
        address = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:[1-9][0-9]*)")
        until(lambda: address.search(log.read_text()) is not None, within_s=120, what="the master listens")
        found = address.search(log.read_text())
        assert found is not None
        worker = [
            *listening,
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(tmp_path / "work"),
            found[1],
        ]
        log = stack.enter_context(running("worker.Worker", *worker, folder=tmp_path))
        registered = "Successfully registered with master"
        until(lambda: registered in log.read_text(), within_s=120, what="the worker has registered")
        yield found[1]


def test_everything_is_archived_once_by_the_workers_of_a_cluster(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, tmp_path: Path, master: str
) -> None:
    first, second = published.stream("a"), published.stream("b")
    published.numbered(first, 3000, key="k")
    published.numbered(second, 200)
    settings = replace(settings_of_job, memory="512m")
    job = job_process("archive", settings, tmp_path / "log", master=master)
    try:
        assert job.wait(timeout=300) == 0, (tmp_path / "log").read_text()
    finally:
        job.kill()
        job.wait()
    found = History(spark, settings.history_url).messages()
    assert rows(found) == published.stored(first, second)
    assert published.log.run(config.archived_of([first, second])) == {first: 3000, second: 200}
    assert any((tmp_path / "work").iterdir())  # an executor of the worker did it, not the driver
