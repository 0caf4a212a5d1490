"""The rollups against a count in plain Python."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from spark.jobs.archive import archive
from spark.jobs.rollup import Point, RolledUp, rollup
from spark.jobs.settings import JobSettings
from spark.positions import archived_offsets
from tests.spark.published import Published, Row, moment

pytestmark = pytest.mark.spark

Totals = Counter[tuple[str, str, datetime, str]]


def counted_by_hand(rows: list[Row]) -> Totals:
    """Messages and bytes by stream, step and start."""
    totals: Totals = Counter()
    for stream_id, _, unix_ms, _, _, _, _, size in rows:
        at = moment(unix_ms)
        minute = at.replace(second=0, microsecond=0)
        for step, start in (
            ("minute", minute),
            ("hour", minute.replace(minute=0)),
            ("day", minute.replace(hour=0, minute=0)),
        ):
            totals[stream_id, step, start, "messages"] += 1
            totals[stream_id, step, start, "bytes"] += size
    return totals


def counted_by_spark(points: list[Point]) -> Totals:
    totals: Totals = Counter()
    for point in points:
        totals[point.stream_id, point.step, point.start, "messages"] += point.messages
        totals[point.stream_id, point.step, point.start, "bytes"] += point.bytes
    return totals


def positions(found: RolledUp) -> dict[str, int]:
    return {each.stream_id: each.to_offset for each in found.positions}


def test_sums_equal_a_count_by_hand_and_a_second_run_adds_nothing(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    first, second = published.stream("a"), published.stream("b")
    published.numbered(first, 500)
    published.numbered(second, 77)
    published.delete(first, [3, 499, 500])
    archive(spark, settings_of_job)
    at = published.log.run(archived_offsets())
    found = rollup(spark, settings_of_job, counted={}, archived=at)
    assert counted_by_spark(found.points) == counted_by_hand(published.stored(first, second))
    assert (found.messages, positions(found)) == (574, {first: 500, second: 77})
    again = rollup(spark, settings_of_job, counted=positions(found), archived=at)
    assert again == RolledUp(points=[], positions=[], messages=0, bytes=0)


def test_each_run_adds_what_is_new_and_no_more(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    streams = [published.stream(name) for name in "abc"]
    counted: dict[str, int] = {}
    totals: Totals = Counter()
    for round_, (stream, count) in enumerate([(0, 40), (1, 30), (0, 20), (2, 10)]):
        published.numbered(streams[stream], count, prefix=f"{round_}-")
        archive(spark, settings_of_job)
        if round_ == 1:
            continue  # two batches wait when the next run counts
        found = rollup(
            spark, settings_of_job, counted=counted, archived=published.log.run(archived_offsets())
        )
        totals += counted_by_spark(found.points)
        assert all(each.from_offset == counted.get(each.stream_id, 0) for each in found.positions)
        counted |= positions(found)
    assert totals == counted_by_hand(published.stored(*streams))
    assert counted == {streams[0]: 60, streams[1]: 30, streams[2]: 10}


def test_offsets_without_a_message_move_the_position(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5)
    published.delete(stream, [1, 2, 3, 4, 5])
    archive(spark, settings_of_job)
    found = rollup(spark, settings_of_job, counted={}, archived=published.log.run(archived_offsets()))
    assert (found.points, positions(found)) == ([], {stream: 5})
    assert found.positions[0].fresh_to is None


def test_fresh_to_is_the_time_of_the_newest_message(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5)
    archive(spark, settings_of_job)
    found = rollup(spark, settings_of_job, counted={}, archived=published.log.run(archived_offsets()))
    assert found.positions[0].fresh_to == moment(published.stored(stream)[-1][2])
    assert found.points[0].start.tzinfo is UTC
