"""One Spark session a run, and a store that only these tests write to: the archive takes every stream it finds."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark import session as spark_session
from spark.jobs.settings import JobSettings
from spark.session import SessionSettings
from streams.log.client import Log
from tests.servers import store
from tests.spark.asking import Asker
from tests.spark.published import Published

_numbers = itertools.count(1)

TIMEOUT_S = 900
"""A cold JVM and its Python workers take a minute on a machine with other things to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that need Spark the time that its start may take."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that all tests share."""
    settings = SessionSettings(folder=tmp_path_factory.mktemp("spark"), master="local[2]")
    yield spark_session.build(settings, name="tests")
    spark_session.end()


@pytest.fixture(scope="session")
def spark_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store of these tests' own."""
    with store(tmp_path_factory.mktemp("store"), fsync="no") as running:
        yield running.url


@pytest.fixture
def published(spark_store: str, unique: str) -> Iterator[Published]:
    """A workspace of this test's own; its streams are gone afterwards, so that no archive finds them again."""
    with closing(Log(spark_store)) as log:
        yield Published(log=log, url=spark_store, workspace=unique, workspace_id=next(_numbers))
        log.client.flushall()


@pytest.fixture
def settings_of_job(published: Published, tmp_path: Path) -> JobSettings:
    """A history and a checkpoint of this test's own."""
    return JobSettings(
        redis_url=published.url, history_url=str(tmp_path / "history"), spark_dir=tmp_path / "spark"
    )


@pytest.fixture
def ask(spark: SparkSession, published: Published, settings_of_job: JobSettings) -> Asker:
    """Somebody who asks of this test's workspace."""
    return Asker(spark, published, settings_of_job)
