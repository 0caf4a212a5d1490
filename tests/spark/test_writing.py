"""Rows become messages, each once: without a session where a row is looked at, with one where Spark repeats."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, IntegerType, LongType, MapType, StringType, StructField, StructType

from spark import schemas
from spark.options import OptionError
from spark.writing import OkmqWriter, RowError
from spark.writing import Published as Done
from streams.log import keys, stats
from streams.log.client import one
from streams.log.entries import parse
from tests.spark.published import Published

TEXT = StringType()


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


ROWS = columns(id=TEXT, body=TEXT, key=TEXT, headers=MapType(TEXT, TEXT), ttl=IntegerType())


def batch(*rows: dict[str, Any], schema: StructType = ROWS) -> pa.RecordBatch:
    names = schema.fieldNames()
    return pa.RecordBatch.from_pylist(
        [{name: row.get(name) for name in names} for row in rows], schema=schemas.arrow(schema)
    )


def writer(published: Published, stream: str = "s", schema: StructType = ROWS, **more: str) -> OkmqWriter:
    return OkmqWriter(published.options(stream, **more), schema, overwrites=False)


def test_a_row_becomes_the_message_that_it_says(published: Published) -> None:
    stream = published.stream("s")
    rows: list[dict[str, Any]] = [
        {"id": "a", "body": ' {"n": 1.50}\n'},
        {"id": "ü" * 50, "body": "1e400", "key": "eu.1", "headers": {"ä": '"', "z": ""}},
        {"id": "lone", "body": '"\\ud800"', "ttl": 3600},
        {"id": "none", "body": "null", "headers": {}},
    ]
    done = writer(published).write(iter([batch(*rows[:2]), batch(*rows[2:], rows[0])]))
    assert done == Done(stored=4, duplicates=1)
    entries = published.log.run(one(("XRANGE", keys.log(stream), "-", "+")))
    found = [parse(entry) for entry in entries]
    assert [(each.id, each.body.decode(), each.key) for each in found] == [
        (row["id"], row["body"].strip(), row.get("key")) for row in rows
    ]
    assert [None if each.headers is None else json.loads(each.headers) for each in found] == [
        row.get("headers") for row in rows
    ]
    assert [each.expires_ms is not None for each in found] == [False, False, True, False]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": None}, "id None: id: expected 1 to 50"),
        ({"id": ""}, "id: expected 1 to 50"),
        ({"id": "x" * 51}, "id: expected 1 to 50"),
        ({"body": None}, "the JSON null is the text 'null'"),
        ({"body": ""}, "not JSON"),
        ({"body": "{'n': 1}"}, "not JSON"),
        ({"body": "NaN"}, "not JSON"),
        ({"body": '["\\ud800", NaN]'}, "not JSON"),
        ({"body": "[" * 200 + "]" * 200}, "nested too deep"),
        ({"key": "eu..1"}, "dot-separated"),
        ({"key": "us.1"}, r"the stream accepts eu\.>, not 'us.1'"),
        ({"key": None}, "not None"),
        ({"headers": {"a": None}}, "one is null"),
        ({"headers": {"a": "x" * 70_000}}, "at most 65536 bytes"),
        ({"ttl": 0}, "expected seconds from 1"),
    ],
)
def test_a_row_that_is_no_message_is_refused_with_all_of_its_call(
    published: Published, row: dict[str, Any], said: str
) -> None:
    stream = published.stream("s", keys=("eu.>",))
    good = {"id": "good", "body": "1", "key": "eu.1"}
    with pytest.raises(RowError, match=said):
        writer(published).write(iter([batch(good, {**good, "id": "bad", **row})]))
    assert published.stored(stream) == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (columns(body=TEXT), "Column 'id' is missing"),
        (columns(id=TEXT), "Column 'body' is missing"),
        (columns(id=LongType(), body=TEXT), "Column 'id' of a message is string, not bigint"),
        (columns(id=TEXT, body=ROWS), "Column 'body' of a message is string, not struct<id:string"),
        (columns(id=TEXT, body=TEXT, offset=LongType()), "no column 'offset'; select those of id string"),
    ],
)
def test_columns_that_make_no_message_are_refused(
    published: Published, schema: StructType, said: str
) -> None:
    published.stream("s")
    with pytest.raises(OptionError, match=said):
        writer(published, schema=schema)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": "nope"}, "There is no stream 'nope'"),
        ({"stream": "s*"}, "expected the name of one stream"),
        ({"stream": "_metrics"}, "expected the name of one stream"),
        ({"workspace": "*"}, "expected a workspace's name"),
        ({"startingOffsets": "latest"}, "Unknown option 'startingoffsets'"),
    ],
)
def test_options_that_lead_nowhere_are_refused(
    published: Published, options: dict[str, str], said: str
) -> None:
    published.stream("s")
    with pytest.raises(OptionError, match=said):
        OkmqWriter({**published.options("s"), **options}, ROWS, overwrites=False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sealed": True}, "'s' is sealed"),
        ({"max_messages": 1, "discard": "new"}, "full"),
    ],
)
def test_what_the_stream_refuses_is_said(published: Published, settings: dict[str, Any], said: str) -> None:
    stream = published.stream("s", **settings)
    rows = [{"id": str(n), "body": "10"} for n in range(2)]
    with pytest.raises(RuntimeError, match=said):
        writer(published).write(iter([batch(*rows)]))
    assert published.stored(stream) == []


def test_a_row_that_is_too_large_is_named(published: Published) -> None:
    stream = published.stream("s", max_message_bytes=3)
    rows = [{"id": f"m{n}", "body": str(10**n)} for n in range(5)]
    with pytest.raises(RowError, match="The row with id 'm3': body: 4 bytes; the stream takes 3"):
        writer(published).write(iter([batch(*rows)]))
    assert published.stored(stream) == []


def numbered(spark: SparkSession, count: int, *, wrong: int | None = None) -> DataFrame:
    """Messages in several partitions; the body of one may be no JSON."""
    body = sf.concat(sf.lit('{"n": '), sf.col("id"), sf.lit("}"))
    if wrong is not None:
        body = sf.when(sf.col("id") == wrong, sf.lit("{")).otherwise(body)
    return spark.range(count, numPartitions=3).select(
        sf.concat(sf.lit("m"), sf.col("id")).alias("id"), body.alias("body")
    )


@pytest.mark.spark
def test_a_job_that_failed_half_way_and_runs_again_publishes_each_row_once(
    spark: SparkSession, published: Published
) -> None:
    stream = published.stream("s")

    def write(frame: DataFrame) -> None:
        frame.write.format("okmq").options(**published.options("s")).mode("append").save()

    with pytest.raises(PySparkException, match="The row with id 'm9000': body: this is not JSON text"):
        write(numbered(spark, 9001, wrong=9000))
    part = len(published.stored(stream))
    assert 0 < part < 9000
    for _ in range(2):
        write(numbered(spark, 9001))
    found = published.stored(stream)
    assert sorted(row[3] for row in found) == sorted(f"m{n}" for n in range(9001))
    assert all(json.loads(row[6]) == {"n": int(row[3][1:])} for row in found)
    with pytest.raises(PySparkException, match=r"only added to: write with mode\('append'\)"):
        numbered(spark, 1).write.format("okmq").options(**published.options("s")).mode("overwrite").save()


def _forget_the_end(checkpoint: Path) -> None:
    """As a crash leaves it between a batch and the note that it is done."""
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    for path in (checkpoint / "commits").glob(f"*{newest}*"):
        path.unlink()


def _forget_everything(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def test_the_worker_is_told_that_the_stream_has_changed(published: Published) -> None:
    stream = published.stream("s")
    published.log.client.delete(keys.TOUCHED)
    writer(published).write(iter([batch({"id": "a", "body": "1"})]))
    assert published.log.run(stats.take_touched(10)) == [stream]


def test_each_task_asks_which_keys_the_stream_takes_now(published: Published) -> None:
    published.stream("s", keys=["eu.*"])
    begun = writer(published)
    assert begun.write(iter([batch({"id": "a", "body": "1", "key": "eu.1"})])).stored == 1
    published.stream("s", keys=["us.*"])
    assert begun.write(iter([batch({"id": "b", "body": "1", "key": "us.1"})])).stored == 1
    with pytest.raises(RowError, match=re.escape("the stream accepts us.*, not 'eu.2'")):
        begun.write(iter([batch({"id": "c", "body": "1", "key": "eu.2"})]))


@pytest.mark.spark
@pytest.mark.parametrize("forget", [_forget_the_end, _forget_everything], ids=["last-batch", "checkpoint"])
def test_a_query_that_repeats_what_it_did_publishes_nothing_twice(
    spark: SparkSession, published: Published, tmp_path: Path, forget: Callable[[Path], None]
) -> None:
    source, target = published.stream("a"), published.stream("b")
    folder = tmp_path / "checkpoint"

    def drain() -> None:
        (
            spark.readStream.format("okmq")
            .options(**published.options("a", startingOffsets="earliest", maxOffsetsPerTrigger="70"))
            .load()
            .select("id", "body", "key", "headers")
            .writeStream.format("okmq")
            .options(**published.options("b"))
            .option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    published.numbered(source, 100, key="k")
    drain()
    forget(folder)
    published.numbered(source, 20, prefix="later")
    drain()
    assert [row[3:7] for row in published.stored(target)] == [row[3:7] for row in published.stored(source)]


@pytest.mark.spark
def test_a_query_whose_sink_would_overwrite_is_refused(
    spark: SparkSession, published: Published, tmp_path: Path
) -> None:
    published.numbered(published.stream("a"), 1)
    rows = (
        spark.readStream.format("okmq")
        .options(**published.options("a", startingOffsets="earliest"))
        .load()
        .groupBy("key")
        .count()
        .select(sf.lit("x").alias("id"), sf.col("count").cast("string").alias("body"))
    )
    query = (
        rows.writeStream.format("okmq")
        .options(**published.options("a"))
        .option("checkpointLocation", str(tmp_path))
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException, match="A stream is only added to"):
        query.awaitTermination()
