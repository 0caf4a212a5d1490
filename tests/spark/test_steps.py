"""A query is brought the steps that it looks at, and no others; and its answer is the same as with all."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark.tables import COLUMNS
from tests.spark.asking import Asker
from tests.spark.published import Published

pytestmark = pytest.mark.spark

ALL = ["day", "hour", "minute"]
QUERIES = {
    "SELECT count(*) FROM rollups": ALL,
    "SELECT step, count(*) FROM rollups GROUP BY step ORDER BY step": ALL,
    "SELECT sum(messages) FROM rollups WHERE step = 'day'": ["day"],
    "SELECT sum(messages) FROM rollups WHERE messages > 1 AND lower(step) IN ('hour', 'day')": [
        "day",
        "hour",
    ],
    "SELECT sum(messages) FROM rollups WHERE step = 'hour' OR (step = 'day' AND messages > 1)": [
        "day",
        "hour",
    ],
    "SELECT sum(messages) FROM rollups WHERE step <> 'minute' AND start > '1969-01-01'": ["day", "hour"],
    "SELECT sum(messages) FROM rollups WHERE step = 'week'": [],
    "WITH d AS (SELECT * FROM rollups WHERE step = 'day') SELECT sum(a.messages) FROM d a JOIN d b USING (start)": [
        "day"
    ],
    "SELECT sum(r.messages) FROM rollups r JOIN messages m USING (stream) WHERE r.step = 'day'": ["day"],
    "SELECT sum(r.messages) FROM rollups r LEFT JOIN groups g USING (stream, step, start) WHERE step = 'hour'": [
        "hour"
    ],
    "SELECT count(*) FROM messages WHERE bytes < (SELECT max(messages) FROM rollups WHERE step = 'day')": [
        "day"
    ],
    "SELECT count(*) FROM messages WHERE stream IN (SELECT stream FROM rollups WHERE step = 'hour')": [
        "hour"
    ],
    "SELECT messages FROM rollups WHERE step = 'day' UNION ALL SELECT messages FROM rollups WHERE step = 'hour' "
    "ORDER BY 1": ["day", "hour"],
    "SELECT count(*) FROM rollups WHERE 1 / (CASE WHEN step = 'week' OR messages < 0 THEN 0 ELSE 1 END) = 1": ALL,
    "SELECT sum(CASE WHEN step = 'day' AND messages < 0 THEN cast(concat('no ', step) AS int) END) FROM rollups": ALL,
    "SELECT first(messages) OVER (PARTITION BY stream ORDER BY step, start) AS n FROM rollups ORDER BY n LIMIT 1": ALL,
}


@pytest.mark.parametrize("sql", QUERIES, ids=range(len(QUERIES)))
def test_only_the_steps_that_are_looked_at_are_brought(
    ask: Asker, published: Published, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 3)
    starts = [datetime(1970, 1, 1 + day, tzinfo=UTC) for day in range(2)]
    rows = [(step, start) for step in ALL for start in starts]
    numbers = [name for name, kind in COLUMNS["rollups"] if kind == "bigint"]
    ask.rollups = pa.table(
        {
            "stream_id": [stream] * len(rows),
            "step": [step for step, _ in rows],
            "start": pa.array([start for _, start in rows], pa.timestamp("us", tz="UTC")),
            **{name: pa.array([10**n for n in range(len(rows))], pa.int64()) for name in numbers},
        }
    )
    narrowed, asked = ask(sql), ask.steps_of["rollups"]
    assert asked == QUERIES[sql]
    monkeypatch.setattr("spark.query.steps_wanted", lambda *_: dict.fromkeys(("rollups", "groups"), ALL))
    assert (ask(sql), ask.steps_of["rollups"]) == (narrowed, ALL)
