"""The shapes of rows: what the source gives, what the history's files hold."""

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

MESSAGES = StructType(
    [
        StructField("workspace_id", IntegerType(), nullable=False),
        StructField("stream_id", StringType(), nullable=False),
        StructField("stream", StringType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", TimestampType(), nullable=False),
        StructField("id", StringType(), nullable=False),
        StructField("key", StringType()),
        StructField("headers", MapType(StringType(), StringType(), valueContainsNull=False)),
        StructField("body", StringType(), nullable=False),
        StructField("bytes", LongType(), nullable=False),
    ]
)
"""One message a row; ``timestamp`` in UTC to the millisecond, ``body`` the JSON text as sent, ``bytes`` its length."""

PARTITION_COLUMNS = ("workspace_id", "stream_id", "day")
"""The folders of the history, outermost first; ``day`` is the UTC day of ``timestamp``."""

HISTORY = StructType([*MESSAGES.fields, StructField("day", DateType(), nullable=False)])
"""One message a row, as the history's Parquet files and their folders give it."""


_TIMES: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)
"""What has times in UTC; PySpark 4.0 does so unless told otherwise."""


def arrow(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of a Python data source with this schema."""
    return to_arrow_schema(schema, **_TIMES)
