"""The session and the store of the tests of Spark, for those of the process that holds it."""

from tests.spark.conftest import (
    published,
    pytest_collection_modifyitems,
    settings_of_job,
    spark,
    spark_store,
)

__all__ = ["published", "pytest_collection_modifyitems", "settings_of_job", "spark", "spark_store"]
