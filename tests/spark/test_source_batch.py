"""``spark.read.format("okmq")`` against a plain XRANGE."""

import json

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from spark import schemas
from streams.log import trim
from streams.log.entries import NewMessage
from tests.spark.published import Published, rows
from tests.waiting import until

pytestmark = pytest.mark.spark


def read(spark: SparkSession, published: Published, stream: str = "*", **options: str) -> DataFrame:
    return spark.read.format("okmq").options(**published.options(stream, **options)).load()


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def test_it_equals_what_stands_in_the_store(spark: SparkSession, published: Published) -> None:
    first, second = published.stream("orders.eu"), published.stream("orders.us")
    published.numbered(first, 3210, key="eu")
    published.numbered(second, 1500)
    published.delete(first, [1, 2, 777, 2000, 3210])
    frame = read(spark, published, "orders.*", rowsPerPartition="1000")
    assert frame.schema == schemas.MESSAGES
    assert rows(frame) == published.stored(first, second)


def test_every_kind_of_message_comes_back_as_it_was_sent(spark: SparkSession, published: Published) -> None:
    stream = published.stream("s")
    bodies = [
        b"null",
        b"1.50",
        b"1e400",
        b'"\\ud800"',
        '"é 🦆"'.encode(),
        b"123456789012345678901234567890",
        b"{}",
    ]
    published.publish(
        stream,
        [
            NewMessage(
                id=f"ü{n}",
                body=body,
                key=f"k.{n}" if n % 2 else None,
                headers=json.dumps({"trace": f"t{n}", "é": ""}).encode() if n % 3 else None,
                ttl_s=3600 if n % 4 == 0 else None,
            )
            for n, body in enumerate(bodies)
        ],
    )
    found = read(spark, published, "s")
    assert rows(found) == published.stored(stream)
    assert [row.body.encode() for row in found.orderBy("offset").collect()] == bodies


def test_names_and_workspaces_are_kept_apart(spark: SparkSession, published: Published) -> None:
    mine = published.stream("orders")
    published.numbered(mine, 10)
    published.numbered(published.stream("other"), 10)
    published.numbered(published.stream("_metrics", internal=True), 10)
    stranger = Published(
        log=published.log, url=published.url, workspace=f"{published.workspace}x", workspace_id=10_000
    )
    published_there = stranger.stream("orders")
    stranger.numbered(published_there, 7)
    assert read(spark, published, "orders").count() == 10
    assert read(spark, published, "or*").count() == 10
    assert read(spark, published, "*").count() == 20
    assert read(spark, published, "_metrics,orders").count() == 20
    everywhere = read(spark, published, "orders", workspace="*")
    assert {row.workspace_id for row in everywhere.collect()} == {published.workspace_id, 10_000}


def test_an_empty_stream_has_no_rows(spark: SparkSession, published: Published) -> None:
    published.stream("empty")
    assert read(spark, published, "empty").collect() == []


def test_starting_offsets_are_included_and_ending_ones_are_not(
    spark: SparkSession, published: Published
) -> None:
    for name in ("a", "b"):
        published.numbered(published.stream(name), 10)
    frame = read(spark, published, startingOffsets='{"a": 4}', endingOffsets='{"a": 7, "b": 3}')
    assert sorted((row.stream, row.offset) for row in frame.collect()) == [
        ("a", 4),
        ("a", 5),
        ("a", 6),
        ("b", 1),
        ("b", 2),
    ]
    assert (
        read(spark, published, startingOffsets='{"a": -2, "b": 10}', endingOffsets='{"b": -1}').count() == 11
    )


def test_times_start_and_end_a_read(spark: SparkSession, published: Published) -> None:
    stream = published.stream("s")
    published.numbered(stream, 10)
    early = published.stored(stream)[-1][2]
    until(lambda: int(published.log.client.time()[0]) * 1000 > early, within_s=5)
    published.numbered(stream, 5, prefix="later")
    late = published.stored(stream)[10][2]
    published.stream("empty")
    later = {"startingTimestamp": str(late)}
    assert offsets(read(spark, published, "s", **later, startingOffsets="earliest")) == [11, 12, 13, 14, 15]
    assert offsets(read(spark, published, "s", endingTimestamp=str(late))) == list(range(1, 11))
    either = read(spark, published, "*", **later, startingOffsetsByTimestampStrategy="latest")
    assert offsets(either) == [11, 12, 13, 14, 15]
    with pytest.raises(AnalysisException, match=r"OptionError: .*'empty' has nothing at or after"):
        read(spark, published, "*", **later).count()


def test_only_the_columns_asked_for_are_built(spark: SparkSession, published: Published) -> None:
    published.numbered(published.stream("s"), 5)
    reader = spark.read.format("okmq").options(**published.options("s")).schema("body string, offset long")
    assert [row.offset for row in reader.load().orderBy("offset").collect()] == [1, 2, 3, 4, 5]


def test_partitions_follow_the_options(spark: SparkSession, published: Published) -> None:
    published.numbered(published.stream("s"), 1000)
    assert read(spark, published, "s", minPartitions="3").rdd.getNumPartitions() == 3
    assert read(spark, published, "s", rowsPerPartition="100").rdd.getNumPartitions() == 10


def test_what_retention_took_is_reported(spark: SparkSession, published: Published) -> None:
    stream = published.stream("s")
    published.numbered(stream, 10)
    published.log.run(trim.purge(stream, below=5))
    assert offsets(read(spark, published, "s")) == [5, 6, 7, 8, 9, 10]
    with pytest.raises(AnalysisException, match="offsets 2 to 4 are no longer there"):
        read(spark, published, "s", startingOffsets='{"s": 2}').count()
    lenient = read(spark, published, "s", startingOffsets='{"s": 2}', failOnDataLoss="false")
    assert offsets(lenient) == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": "nope"}, "OptionError: There is no stream 'nope' in workspace"),
        ({"ofset": "3"}, "Unknown option 'ofset'"),
        ({"startingOffsets": '{"s": 99}'}, "OptionError: .*'s' has no offset 99 yet; its last is 3"),
        ({"endingOffsets": '{"s": 99}'}, "OptionError: .*'s' has no offset 98 yet; its last is 3"),
        ({"endingOffsets": "earliest"}, "expected latest or a JSON object"),
        ({"endingOffsets": '{"s": -2}'}, "-2 .earliest. is given for 's'; expected latest"),
        ({"startingOffsets": "latest"}, "expected earliest or a JSON object"),
        ({"startingOffsets": '{"s": -1}'}, "-1 .latest. is given for 's'; expected earliest"),
        ({"startingOffset": "latest"}, "Unknown option 'startingoffset'"),
        ({"startingOffsets": '{"other": 1}'}, "OptionError: .*names 'other', which is not among the streams"),
        ({"endingOffsets": '{"other": 1}'}, "OptionError: .*names 'other', which is not among the streams"),
        ({"url": "unix:///nowhere/s"}, "The store of the streams does not answer"),
    ],
)
def test_refusals_say_what_is_wrong(
    spark: SparkSession, published: Published, options: dict[str, str], said: str
) -> None:
    published.numbered(published.stream("s"), 3)
    with pytest.raises(AnalysisException, match=said):
        spark.read.format("okmq").options(**{**published.options("s"), **options}).load().count()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("colour string", "no column 'colour'"),
        ("offset string", "'offset' .* is bigint"),
        ("key string, key string", "'key' is asked for twice"),
    ],
)
def test_a_schema_of_other_columns_is_refused(
    spark: SparkSession, published: Published, schema: str, said: str
) -> None:
    published.stream("s")
    with pytest.raises(AnalysisException, match=said):
        spark.read.format("okmq").options(**published.options("s")).schema(schema).load().count()
