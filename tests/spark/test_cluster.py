"""``OKMQ_SPARK_MASTER``: the jobs on a standalone master with a worker, all on loopback."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.history import History
from spark.jobs.settings import JobSettings
from streams.log import config
from tests.spark.cluster import cluster
from tests.spark.jobs import job_process
from tests.spark.published import Published, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master that has a worker."""
    with cluster(tmp_path) as running:
        yield running.address


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
