"""The source in PySpark 4.0 and 4.1: what these lack is refused or done otherwise; without a session."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

from spark import schemas
from spark.options import parse
from spark.readers import UntoldStreamReader
from spark.writing import OkmqStreamRowWriter
from spark.writing import Published as Done
from streams.log.client import Log
from streams.log.errors import StoreUnavailable
from tests.servers import Store, store
from tests.spark.jobs import PROJECT, environment
from tests.spark.published import Published

ARROW = schemas.arrow(schemas.MESSAGES)
TEXT = StringType()


@pytest.mark.parametrize(
    ("version", "compared", "written"),
    [
        ("4.0", "Option pushFilters needs PySpark 4.1 or later.", "OkmqStreamRowWriter"),
        ("4.1", "PushedReader", "OkmqStreamWriter"),
    ],
)
def test_an_older_pyspark_gets_what_it_can_use(
    published: Published, version: str, compared: str, written: str
) -> None:
    published.stream("s")
    asked = [sys.executable, "-m", "tests.spark.older", version, json.dumps(published.options("s"))]
    ended = subprocess.run(
        asked, cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "read": "OkmqReader",
        "read of what is compared": compared,
        "stream": "UntoldStreamReader",
        "stream with a limit": "Option maxOffsetsPerTrigger needs PySpark 4.2 or later.",
        "write": "OkmqWriter",
        "written stream": written,
    }


def reader(published: Published, **more: str) -> UntoldStreamReader:
    return UntoldStreamReader(parse(published.options(startingOffsets="earliest", **more)), ARROW)


def read(asked: UntoldStreamReader, start: dict[str, int], end: dict[str, int]) -> list[tuple[str, int]]:
    return [
        (row["stream_id"], row["offset"])
        for part in asked.partitions(start, end)
        for batch in asked.read(part)
        for row in batch.to_pylist()
    ]


def offsets(stream: str, wanted: Sequence[int]) -> list[tuple[str, int]]:
    return [(stream, offset) for offset in wanted]


def test_micro_batches_follow_each_other_though_nobody_says_where_they_begin(published: Published) -> None:
    first = published.stream("a")
    published.numbered(first, 50)
    here = reader(published)
    start, end = here.initialOffset(), here.latestOffset()
    assert read(here, start, end) == offsets(first, range(1, 51))
    published.numbered(first, 5, prefix="more")
    second = published.stream("b")
    published.numbered(second, 3)
    following = here.latestOffset()
    assert sorted(read(here, end, following)) == sorted(
        offsets(first, range(51, 56)) + offsets(second, range(1, 4))
    )
    published.numbered(second, 2, prefix="more")
    again = reader(published)
    assert read(again, following, again.latestOffset()) == offsets(second, [4, 5])


@pytest.fixture
def volatile(tmp_path: Path) -> Iterator[Store]:
    with store(tmp_path, fsync=None) as running:
        yield running


def test_a_stream_in_memory_that_cannot_be_asked_keeps_its_place_or_ends_the_query(
    published: Published, volatile: Store
) -> None:
    with closing(Log(published.url, memory_url=volatile.url)) as log:
        both = replace(published, log=log, memory_url=volatile.url)
        stream = both.memory_stream("fleeting")
        both.numbered(stream, 10)
        here = reader(both)
        here.initialOffset()
        reached = here.latestOffset()
        volatile.kill()
        assert here.latestOffset() == reached == {stream: 10}
        with pytest.raises(StoreUnavailable):
            reader(both).latestOffset()
        volatile.start()


def test_rows_are_published_as_batches_are(published: Published) -> None:
    stream = published.stream("s")
    schema = StructType(
        [
            StructField("id", TEXT),
            StructField("body", TEXT),
            StructField("headers", MapType(TEXT, TEXT)),
            StructField("ttl", IntegerType()),
        ]
    )
    writer = OkmqStreamRowWriter(published.options("s"), schema, overwrites=False)
    rows: list[Any] = [
        Row(id="a", body="1", headers={"ä": "z"}, ttl=60),
        Row(id="b", body="[2]", headers=None, ttl=None),
    ]
    assert writer.write(iter([*rows, rows[0]])) == Done(stored=2, duplicates=1)
    assert [row[3:7] for row in published.stored(stream)] == [
        ("a", None, {"ä": "z"}, "1"),
        ("b", None, None, "[2]"),
    ]
