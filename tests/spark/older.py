"""A process whose PySpark has no more of the API for data sources than 4.0 or 4.1: which readers and writers the source
gives there. ``python -m tests.spark.older 4.0 '<its options as JSON>'`` prints them as JSON.

The real ones take minutes and 400 MB each to install. What they have is held here, as their ``datasource`` modules say.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.pandas import types

CLASSES_OF_4_0 = frozenset(
    {
        "CaseInsensitiveDict",
        "DataSource",
        "DataSourceArrowWriter",
        "DataSourceReader",
        "DataSourceRegistration",
        "DataSourceStreamReader",
        "DataSourceStreamWriter",
        "DataSourceWriter",
        "InputPartition",
        "SimpleDataSourceStreamReader",
        "WriterCommitMessage",
    }
)
NEW_IN_4_1 = frozenset(
    {
        "DataSourceStreamArrowWriter",
        "EqualNullSafe",
        "EqualTo",
        "Filter",
        "GreaterThan",
        "GreaterThanOrEqual",
        "In",
        "IsNotNull",
        "IsNull",
        "LessThan",
        "LessThanOrEqual",
        "Not",
        "StringContains",
        "StringEndsWith",
        "StringStartsWith",
    }
)
NEW_METHODS = {
    "4.0": [("DataSourceReader", "pushFilters"), ("DataSourceStreamReader", "getDefaultReadLimit")],
    "4.1": [("DataSourceStreamReader", "getDefaultReadLimit")],
}
BATCH_ONLY, STREAM_ONLY = {"pushFilters": "true"}, {"maxOffsetsPerTrigger": "10"}


def take_away(version: str) -> None:
    """Leave of PySpark what this version has."""
    held = CLASSES_OF_4_0 if version == "4.0" else CLASSES_OF_4_0 | NEW_IN_4_1
    for name in [name for name in vars(datasource) if name[0].isupper() and name not in held]:
        delattr(datasource, name)
    for owner, name in NEW_METHODS[version]:
        delattr(getattr(datasource, owner), name)
    hidden: dict[str, Any] = {"pyspark.sql.streaming.datasource": None}
    sys.modules.update(hidden)
    newer = types.to_arrow_schema

    def to_arrow_schema(
        schema: Any, error_on_duplicated_field_names_in_struct: bool = False, timestamp_utc: bool = True
    ) -> Any:
        return newer(schema, timezone="UTC" if timestamp_utc else None)

    types.to_arrow_schema = to_arrow_schema  # type: ignore[assignment]


def given(options: Mapping[str, str]) -> dict[str, str]:
    """What the source gives for each kind of use: the name of a class, or why it is refused."""
    from spark.schemas import MESSAGES
    from spark.source import OkmqDataSource

    def source(more: Mapping[str, str]) -> OkmqDataSource:
        return OkmqDataSource({**options, **more})

    rows = MESSAGES.__class__([MESSAGES["id"], MESSAGES["body"]])
    uses: dict[str, Callable[[], object]] = {
        "read": lambda: source({}).reader(MESSAGES),
        "read of what is compared": lambda: source(BATCH_ONLY).reader(MESSAGES),
        "stream": lambda: source({}).streamReader(MESSAGES),
        "stream with a limit": lambda: source(STREAM_ONLY).streamReader(MESSAGES),
        "write": lambda: source({}).writer(rows, overwrite=False),
        "written stream": lambda: source({}).streamWriter(rows, overwrite=False),
    }
    return {use: _answer(make) for use, make in uses.items()}


def _answer(make: Callable[[], object]) -> str:
    from spark.options import OptionError

    try:
        return type(make()).__name__
    except OptionError as error:
        return str(error)


if __name__ == "__main__":
    take_away(sys.argv[1])
    print(json.dumps(given(json.loads(sys.argv[2]))))
