"""No condition of a query is tried on what it may not see: an error, or that there is one, would tell it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from spark.tables import COLUMNS
from streams.log.entries import NewMessage
from tests.spark.asking import Asker
from tests.spark.published import Published

pytestmark = pytest.mark.spark

LATE = datetime(2077, 7, 7, tzinfo=UTC)
EARLY = datetime(2026, 1, 1, tzinfo=UTC)
FOREIGN = 777
"""Stands in every value of what is not for the caller, and in no other; of times the year does."""


def is_foreign(column: str, kind: str) -> str:
    if column == "step":
        return "step = 'hour'"
    return (
        f"year(`{column}`) > 2070"
        if kind == "timestamp"
        else f"cast(`{column}` AS string) LIKE '%{FOREIGN}%'"
    )


def told(table: str) -> str:
    """A condition that tells a foreign value of any column in its error, and holds for every other row."""
    return " AND ".join(
        f"cast(CASE WHEN {is_foreign(name, kind)} THEN concat('{name}=', cast(`{name}` AS string)) "
        "ELSE '1' END AS int) > 0"
        for name, kind in COLUMNS[table]
    )


def answered(table: str) -> str:
    """One that tells whether there is a foreign value, and holds for every other row."""
    return " AND ".join(
        f"1 / (CASE WHEN {is_foreign(name, kind)} THEN 0 ELSE 1 END) = 1" for name, kind in COLUMNS[table]
    )


def message(n: int, mark: str) -> NewMessage:
    body = json.dumps({"n": mark, "x": ""})
    wide = json.dumps({"n": mark, "x": "x" * (FOREIGN - len(body))}) if mark else body
    return NewMessage(
        id=f"{mark}-{n}", key=f"k{mark}", headers=json.dumps({"h": mark}).encode(), body=wide.encode()
    )


def counted(table: str, of: dict[str, bool]) -> pa.Table:
    """A row of what the jobs counted for each stream; its values are foreign where it is."""
    values: dict[str, Any] = {
        "step": ["day", "hour"],
        "string": ["s", f"s{FOREIGN}"],
        "timestamp": [EARLY, LATE],
    }
    kinds = {"string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC"), "double": pa.float64()}
    return pa.table(
        {
            "stream_id": pa.array(of, pa.string()),
            **{
                name: pa.array(
                    [values.get(name, values.get(kind, [1, FOREIGN]))[foreign] for foreign in of.values()],
                    kinds.get(kind, pa.int64()),
                )
                for name, kind in COLUMNS[table][1:]
            },
        }
    )


@pytest.fixture
def beside_foreign(ask: Asker, published: Published) -> Asker:
    """A workspace with two streams, beside one with a stream; all but ``mine`` have foreign values."""
    other = replace(
        published, workspace=f"{published.workspace}-b", workspace_id=published.workspace_id + 10**6
    )
    mine = published.stream("mine")
    uncovered = published.stream(f"uncovered-{FOREIGN}")
    theirs = other.stream(f"theirs-{FOREIGN}")
    samples = published.stream("_metrics", internal=True, archive=False)
    published.publish(mine, [message(n, "") for n in range(3)])
    for foreign in (uncovered, theirs):
        published.publish(foreign, [message(n, str(FOREIGN)) for n in range(FOREIGN - 1)])
    ask.archive()
    published.publish(mine, [message(n, "") for n in range(3, 5)])
    for foreign in (uncovered, theirs):
        published.publish(foreign, [message(FOREIGN, str(FOREIGN))])
    figures = ("offset", "messages", "bytes", "committed", "lag", "in", "bytes_in", "out")
    theirs_and = {foreign: dict.fromkeys(figures, FOREIGN) for foreign in (uncovered, theirs)}
    sampled = [
        {"at": EARLY.timestamp() * 1000, "streams": {**theirs_and, mine: dict.fromkeys(figures, 1)}},
        {"at": LATE.timestamp() * 1000, "streams": theirs_and},
    ]
    published.publish(
        samples, [NewMessage(id=f"{n}", body=json.dumps(each).encode()) for n, each in enumerate(sampled)]
    )
    of = {mine: False, uncovered: True, theirs: True}
    ask.rollups, ask.groups = counted("rollups", of), counted("groups", of)
    return ask


@pytest.mark.parametrize("table", COLUMNS)
def test_no_condition_is_tried_on_what_is_not_for_the_caller(beside_foreign: Asker, table: str) -> None:
    mine = {"messages": 5, "metrics": 1, "rollups": 1, "groups": 1}[table]
    for condition in (told(table), answered(table)):
        assert beside_foreign(f"SELECT count(*) FROM {table} WHERE {condition}", only="mine") == [[mine]]
        assert beside_foreign(
            f"SELECT count(*) FROM {table} WHERE stream = 'mine' AND ({condition})", only="mine"
        ) == [[mine]]
