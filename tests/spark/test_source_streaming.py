"""``spark.readStream.format("okmq")``: every message once, over new, deleted and restarted things."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streams.log import keys, trim
from streams.log.client import one
from tests.spark.published import Published, Row, rows
from tests.waiting import until

pytestmark = pytest.mark.spark


class Sink:
    """Keeps what a query hands over, batch by batch; a repeated batch replaces itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batches: dict[int, list[Row]] = {}

    def start(self, spark: SparkSession, options: dict[str, str], *, once: bool = True) -> StreamingQuery:
        writer = (
            spark.readStream.format("okmq")
            .options(**{"startingOffsets": "earliest", **options})
            .load()
            .writeStream.option("checkpointLocation", str(self.folder))
            .foreachBatch(self._keep)
        )
        return (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime="50 milliseconds")
        ).start()

    def drain(self, spark: SparkSession, options: dict[str, str]) -> StreamingQuery:
        """Run over what is there now."""
        query = self.start(spark, options)
        query.awaitTermination()
        return query

    def _keep(self, frame: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = rows(frame)

    @property
    def rows(self) -> list[Row]:
        return sorted((row for batch in self.batches.values() for row in batch), key=lambda row: row[:2])


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path / "checkpoint")


def test_batches_keep_to_the_limit_and_lose_nothing(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    first, second = published.stream("a"), published.stream("b")
    published.numbered(first, 900, key="k")
    published.numbered(second, 100)
    sink.drain(spark, published.options(maxOffsetsPerTrigger="300"))
    assert [len(batch) for batch in sink.batches.values()] == [300, 300, 300, 100]
    assert all({row[0] for row in batch} == {first, second} for batch in sink.batches.values())
    assert sink.rows == published.stored(first, second)


def test_a_restart_goes_on_where_it_stopped(spark: SparkSession, published: Published, sink: Sink) -> None:
    stream = published.stream("a")
    published.numbered(stream, 50)
    sink.drain(spark, published.options())
    published.numbered(stream, 30, prefix="later")
    sink.drain(spark, published.options(startingOffsets="latest"))
    assert [len(batch) for batch in sink.batches.values()] == [50, 30]
    assert sink.rows == published.stored(stream)


def test_a_new_stream_is_picked_up_from_its_start(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    first = published.stream("a")
    published.numbered(first, 5)
    query = sink.start(spark, published.options(startingOffsets="latest"), once=False)
    try:
        until(lambda: query.lastProgress is not None, within_s=60)
        second = published.stream("b")
        published.numbered(second, 7)
        until(lambda: len(sink.rows) == 7, within_s=60, what="the new stream's messages come")
    finally:
        query.stop()
    assert sink.rows == published.stored(second)


def test_a_deleted_stream_is_closed_and_one_made_again_starts_anew(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    first, second = published.stream("a"), published.stream("b")
    published.numbered(first, 5)
    published.numbered(second, 5)
    sink.drain(spark, published.options())
    published.remove("a")
    again = published.stream("a")
    published.numbered(again, 3)
    published.numbered(second, 2, prefix="more")
    query = sink.drain(spark, published.options())
    assert [len(batch) for batch in sink.batches.values()] == [10, 5]
    assert query.exception() is None
    assert [row for row in sink.rows if row[0] == again] == published.stored(again)


@pytest.mark.parametrize("made_again", [False, True], ids=["deleted", "made_again"])
def test_a_stream_that_was_deleted_before_it_was_read_to_its_end_ends_the_query(
    spark: SparkSession, published: Published, sink: Sink, made_again: bool
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5)
    sink.drain(spark, published.options())
    published.numbered(stream, 3, prefix="more")
    published.remove("a")
    again = [published.stream("a")] if made_again else []
    for each in again:
        published.numbered(each, 2)
    with pytest.raises(StreamingQueryException, match=r"Stream 'a': offsets 6 to 8 .* \(it was deleted\)"):
        sink.drain(spark, published.options())
    assert len(sink.rows) == 5
    sink.drain(spark, published.options(failOnDataLoss="false"))
    assert [row for row in sink.rows if row[0] != stream] == published.stored(*again)
    assert sink.drain(spark, published.options()).exception() is None, "it is told once"


def test_a_stream_of_whose_end_nobody_knows_ends_the_query(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5)
    sink.drain(spark, published.options())
    published.remove("a")
    published.log.run(one(("DEL", keys.ENDED)))
    with pytest.raises(StreamingQueryException, match=rf"{stream}.* had offsets from 6 on is not known"):
        sink.drain(spark, published.options())


def test_what_comes_after_the_start_of_a_run_waits_for_the_next(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 20)
    keep = sink._keep

    def publish_meanwhile(frame: DataFrame, batch_id: int) -> None:
        published.numbered(stream, 5, prefix=f"during{batch_id}")
        keep(frame, batch_id)

    sink._keep = publish_meanwhile  # type: ignore[method-assign]
    sink.drain(spark, published.options(maxOffsetsPerTrigger="10"))
    assert [row[1] for row in sink.rows] == list(range(1, 21))


def test_what_went_before_it_was_read_ends_the_query(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 10)
    sink.drain(spark, published.options())
    published.numbered(stream, 10, prefix="more")
    published.log.run(trim.purge(stream, below=15))
    with pytest.raises(StreamingQueryException, match="offsets 11 to 14 are no longer there"):
        sink.drain(spark, published.options())
    sink.drain(spark, published.options(failOnDataLoss="false"))
    assert [row[1] for row in sink.rows] == [*range(1, 11), *range(15, 21)]


def test_a_query_starts_at_a_time(spark: SparkSession, published: Published, sink: Sink) -> None:
    stream = published.stream("a")
    published.numbered(stream, 10)
    early = published.stored(stream)[-1][2]
    until(lambda: int(published.log.client.time()[0]) * 1000 > early, within_s=5)
    published.numbered(stream, 5, prefix="later")
    sink.drain(spark, published.options(startingTimestamp=str(early + 1)))
    assert [row[1] for row in sink.rows] == [11, 12, 13, 14, 15]


def test_a_map_may_begin_a_query_at_the_end_of_a_stream(
    spark: SparkSession, published: Published, sink: Sink
) -> None:
    published.numbered(published.stream("a"), 10)
    second = published.stream("b")
    published.numbered(second, 10)
    sink.drain(spark, published.options(startingOffsets='{"a": -1, "b": -2}'))
    assert sink.rows == published.stored(second)


@pytest.mark.parametrize(
    "option",
    [{"endingOffsets": "latest"}, {"endingOffsets": '{"a": 1}'}, {"endingTimestamp": "1"}],
)
def test_an_end_is_refused(
    spark: SparkSession, published: Published, sink: Sink, option: dict[str, str]
) -> None:
    published.stream("a")
    with pytest.raises(StreamingQueryException, match=r"ending\w+ is for batch reads"):
        sink.drain(spark, published.options(**option))
