"""What the PySpark that runs this offers a data source: the source ``okmq`` is for any PySpark 4.x.

What one lacks stands here as something that is never used with it; what is not here is in all of them.
"""

from typing import TYPE_CHECKING

from pyspark.sql import datasource

PUSHES_FILTERS = hasattr(datasource.DataSourceReader, "pushFilters")
"""Whether Spark tells a source what a query compares (4.1)."""

WRITES_ARROW_STREAMS = hasattr(datasource, "DataSourceStreamArrowWriter")
"""Whether a streaming write gives Arrow batches (4.1); a batch write always does."""

LIMITS_BATCHES = hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
"""Whether Spark tells a stream's reader where a micro-batch begins and how large it may be (4.2)."""

if TYPE_CHECKING or WRITES_ARROW_STREAMS:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:

    class DataSourceStreamArrowWriter:
        """Before PySpark 4.1."""


if TYPE_CHECKING or LIMITS_BATCHES:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """Before PySpark 4.2."""

    class ReadAllAvailable(ReadLimit):
        """Before PySpark 4.2."""

    class ReadMaxRows(ReadLimit):
        """Before PySpark 4.2."""

    class SupportsTriggerAvailableNow:
        """Before PySpark 4.2."""


__all__ = [
    "LIMITS_BATCHES",
    "PUSHES_FILTERS",
    "WRITES_ARROW_STREAMS",
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]
