"""Streams in memory, read and archived like others, and archived on after their server has lost them."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from okmq.analytics.process import Analytics, jobs_with_work
from spark.history import History
from spark.jobs.archive import archive
from spark.jobs.settings import JobSettings
from spark.positions import archive_backlog
from spark.source import register
from streams import store as log_store
from streams.log import config
from streams.log.client import Log
from streams.models import RollupPosition, Run, Stream, Workspace
from tests.okmq.analytics.working import due
from tests.servers import Store, store
from tests.spark.published import Published, Row, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def volatile(tmp_path: Path) -> Iterator[Store]:
    """A server for streams in memory, of this test's own."""
    folder = tmp_path / "volatile"
    folder.mkdir()
    with store(folder, fsync=None) as running:
        yield running


@pytest.fixture
def both(published: Published, volatile: Store) -> Iterator[Published]:
    """What is published, with a server for streams in memory."""
    with closing(Log(published.url, memory_url=volatile.url)) as log:
        yield replace(published, log=log, memory_url=volatile.url)


@pytest.fixture
def job(both: Published, settings_of_job: JobSettings) -> JobSettings:
    return replace(settings_of_job, memory_url=both.memory_url)


def archived(spark: SparkSession, settings: JobSettings) -> list[Row]:
    return rows(History(spark, settings.history_url).messages())


def test_after_a_loss_the_history_goes_on_behind_the_gap(
    spark: SparkSession, both: Published, job: JobSettings, volatile: Store
) -> None:
    fleeting, durable = both.memory_stream("fleeting"), both.stream("kept")
    both.numbered(fleeting, 30)
    both.numbered(durable, 5)
    assert archive(spark, job).messages == 35
    kept = both.stored(fleeting)
    both.numbered(fleeting, 10, prefix="never-archived")
    volatile.kill()
    volatile.start()
    assert both.memory_stream("fleeting") == fleeting
    assert both.log.run(archive_backlog()) == 0
    last = both.numbered(fleeting, 20, prefix="after")
    assert both.log.run(archive_backlog()) == 20
    assert archive(spark, job).messages == 20
    assert archived(spark, job) == sorted(
        [*kept, *both.stored(fleeting), *both.stored(durable)], key=lambda row: row[:2]
    )
    assert both.log.run(config.archived_of([fleeting])) == {fleeting: last}


def test_while_their_server_cannot_be_reached_the_durable_ones_are_archived_and_nothing_is_doubled(
    spark: SparkSession, both: Published, job: JobSettings, tmp_path: Path
) -> None:
    fleeting, durable = both.memory_stream("fleeting"), both.stream("kept")
    both.numbered(fleeting, 30)
    assert archive(spark, job).messages == 30
    both.numbered(fleeting, 10, prefix="more")
    both.numbered(durable, 5)
    away = f"unix://{tmp_path}/nobody.sock"
    with closing(Log(both.url, memory_url=away)) as log:
        assert log.run(archive_backlog()) == 5
    assert archive(spark, replace(job, memory_url=away)).messages == 5
    assert archive(spark, job).messages == 10
    assert archived(spark, job) == both.stored(fleeting, durable)


def test_a_batch_of_one_whose_server_does_not_answer_is_an_error_or_leaves_it_out(
    spark: SparkSession, both: Published, tmp_path: Path
) -> None:
    register(spark)
    fleeting = both.memory_stream("fleeting")
    both.numbered(fleeting, 30)
    read = spark.read.format("okmq")
    assert rows(read.options(**both.options("fleeting")).load()) == both.stored(fleeting)
    away = both.options("fleeting", memoryUrl=f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(PySparkException, match="does not answer"):
        read.options(**away).load().collect()
    assert read.options(**away, failOnDataLoss="false").load().collect() == []


@pytest.mark.django_db(transaction=True)
def test_a_loss_is_counted_off_once_and_leaves_nothing_to_do(
    spark: SparkSession, both: Published, job: JobSettings, volatile: Store, tmp_path: Path, settings: Any
) -> None:
    settings.ENV = replace(
        settings.ENV,
        redis_url=both.url,
        memory_redis_url=volatile.url,
        data_dir=tmp_path,
        history_url=job.history_url,
        history_every_s=3600,
    )
    log_store.log.cache_clear()
    analytics = Analytics(settings.ENV, stop=threading.Event())

    def work() -> list[str]:
        """Let the schedule look until it finds nothing; the jobs that it ran."""
        before = set(Run.objects.values_list("pk", flat=True))
        due(analytics)
        assert jobs_with_work(tmp_path) == []
        return [run.job for run in Run.objects.exclude(pk__in=before).order_by("pk")]

    fleeting = both.memory_stream("fleeting")
    workspace = Workspace.objects.create(name="losing")
    Stream.objects.create(workspace=workspace, name="fleeting", stream_id=fleeting, storage="memory")
    both.numbered(fleeting, 30)
    assert work() == ["archive", "rollup"]
    assert RollupPosition.objects.get(stream_id=fleeting).offset == 30
    volatile.kill()
    assert work() == []
    volatile.start()
    both.memory_stream("fleeting")
    assert work() == ["rollup"]
    both.numbered(fleeting, 20, prefix="after")
    assert work() == ["archive", "rollup"]
    assert [run.counts["messages"] for run in Run.objects.order_by("pk")] == [30, 30, 0, 20, 20]
    log_store.log.cache_clear()
