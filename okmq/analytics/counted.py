"""What was counted of streams and groups, as tables for the queries: out of the SQL database, through this process."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from streams.log.counts import OF_STREAMS
from streams.models import Rollup
from streams.selectors import GroupStep, groups_counted, streams_counted

MOST_GROUP_STEPS = 200_000
"""Hours and days of groups that are handed to Spark; each is computed from what was seen in it."""

MOST_ROLLUPS = 1_000_000
"""Points that are handed to Spark; they come from the SQL database, through this process's memory."""

_TOO_MANY = f"The rollups have more than {MOST_ROLLUPS:,} minutes; ask for step = 'hour' or step = 'day', or messages."


def rollups_of(stream_ids: Collection[str], *, steps: Collection[str]) -> pa.Table:
    """What was counted of streams in some steps: ``stream_id, step, start``, the numbers of ``spark.tables.COLUMNS``.

    Raises:
        QueryFailed: there is more of it than fits.
    """
    from spark.query import QueryFailed
    from spark.tables import COLUMNS

    numbers = [name for name, kind in COLUMNS["rollups"] if kind == "bigint"]
    columns = ("stream_id", "step", "start", *numbers)
    published = columns[: -len(OF_STREAMS)]
    found = Rollup.objects.filter(stream_id__in=stream_ids, step__in=steps).values_list(*published)
    if found[: MOST_ROLLUPS + 1].count() > MOST_ROLLUPS:
        raise QueryFailed(_TOO_MANY)  # before there is memory for them all
    counted = streams_counted(stream_ids, steps=steps, most=MOST_ROLLUPS + 1)
    rows = [(*row, *map(counted.pop(row[:3], {}).get, OF_STREAMS)) for row in found.iterator()]
    # Of a step in which nothing was published, what else was counted in it.
    nothing = (0, 0, *[None] * (len(published) - 5))
    rows += [
        (*of, *nothing, *map(each.get, OF_STREAMS)) for of, each in counted.items() if any(each.values())
    ]
    if len(rows) > MOST_ROLLUPS:
        raise QueryFailed(_TOO_MANY)
    kinds = (pa.string(), pa.string(), pa.timestamp("us", tz="UTC"), *[pa.int64() for _ in numbers])
    by_column = zip(*rows, strict=True) if rows else ((),) * len(columns)
    arrays = [pa.array(values, kind) for values, kind in zip(by_column, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))


def groups_of(stream_ids: Collection[str], *, steps: Collection[str]) -> pa.Table:
    """How the groups of streams stood in some steps: ``stream_id`` and the columns of ``spark.tables.COLUMNS``.

    Raises:
        QueryFailed: there is more of it than fits.
    """
    from spark.query import QueryFailed
    from spark.tables import COLUMNS

    found = groups_counted(stream_ids, steps=steps, most=MOST_GROUP_STEPS + 1)
    if len(found) > MOST_GROUP_STEPS:
        raise QueryFailed(f"The groups have more than {MOST_GROUP_STEPS:,} hours; ask for step = 'day'.")
    kinds = {
        "string": pa.string(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "bigint": pa.int64(),
        "double": pa.float64(),
    }
    fields = [pa.field("stream_id", pa.string())]
    fields += [pa.field(name, kinds[kind]) for name, kind in COLUMNS["groups"] if name != "stream"]
    rows = [_group_row(*each) for each in found]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _group_row(stream_id: str, group: str, step: str, stood: GroupStep) -> dict[str, Any]:
    row: dict[str, Any] = {"stream_id": stream_id, "group": group, "step": step}
    for name, value in asdict(stood).items():
        row |= (
            {f"{name}_{of}": each for of, each in value.items()} if isinstance(value, dict) else {name: value}
        )
    return row
