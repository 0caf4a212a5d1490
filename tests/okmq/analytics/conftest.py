"""The process that holds Spark, without its threads, on the session and the store of the tests of Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from okmq.analytics.process import Analytics
from tests.okmq.analytics.working import in_workspace, inside
from tests.spark.conftest import (
    published,
    pytest_collection_modifyitems,
    settings_of_job,
    spark,
    spark_store,
)
from tests.spark.published import Published

__all__ = ["published", "pytest_collection_modifyitems", "settings_of_job", "spark", "spark_store"]


@pytest.fixture
def here(published: Published) -> Published:
    """What is published, in a workspace that the database knows."""
    return in_workspace(published)


@pytest.fixture
def analytics(
    here: Published,
    tmp_path: Path,
    settings: Any,
    spark: SparkSession,
) -> Iterator[Analytics]:
    """The process's inside, on the store and a history of this test's own."""
    with inside(here, settings, tmp_path) as analytics:
        yield analytics
