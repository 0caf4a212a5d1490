"""Counting, on tiny frames."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from spark.transforms.keys import messages_by_key
from spark.transforms.rollups import not_yet_counted, per_minute, per_step

pytestmark = pytest.mark.spark

MESSAGES = "stream_id string, offset long, timestamp timestamp, key string, bytes long"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ROWS = [
    ("a", 1, at("2026-01-01T00:00:59.999"), "x", 10),
    ("a", 2, at("2026-01-01T00:01:00.000"), "x", 20),
    ("a", 4, at("2026-01-01T00:01:30.000"), "y", 5),
    ("a", 5, at("2026-01-01T23:59:59.999"), None, 1),
    ("a", 6, at("2026-01-02T00:00:00.000"), "x", 7),
    ("b", 1, at("2026-01-01T00:01:10.000"), "x", 100),
]


def test_minutes_hours_and_days(spark: SparkSession) -> None:
    frame = per_step(per_minute(spark.createDataFrame(ROWS, MESSAGES)))
    found = {
        (row.stream_id, row.step, row.start.astimezone(UTC)): (
            row.messages,
            row.bytes,
            row["first"],
            row["last"],
        )
        for row in frame.collect()
    }
    assert found == {
        ("a", "minute", at("2026-01-01T00:00")): (1, 10, 1, 1),
        ("a", "minute", at("2026-01-01T00:01")): (2, 25, 2, 4),
        ("a", "minute", at("2026-01-01T23:59")): (1, 1, 5, 5),
        ("a", "minute", at("2026-01-02T00:00")): (1, 7, 6, 6),
        ("a", "hour", at("2026-01-01T00:00")): (3, 35, 1, 4),
        ("a", "hour", at("2026-01-01T23:00")): (1, 1, 5, 5),
        ("a", "hour", at("2026-01-02T00:00")): (1, 7, 6, 6),
        ("a", "day", at("2026-01-01T00:00")): (4, 36, 1, 5),
        ("a", "day", at("2026-01-02T00:00")): (1, 7, 6, 6),
        ("b", "minute", at("2026-01-01T00:01")): (1, 100, 1, 1),
        ("b", "hour", at("2026-01-01T00:00")): (1, 100, 1, 1),
        ("b", "day", at("2026-01-01T00:00")): (1, 100, 1, 1),
    }


def test_only_what_is_above_the_counted_offset_of_wanted_streams(spark: SparkSession) -> None:
    counted = spark.createDataFrame([("a", 4)], "stream_id string, counted long")
    frame = not_yet_counted(spark.createDataFrame(ROWS, MESSAGES), counted=counted)
    assert sorted((row.stream_id, row.offset) for row in frame.collect()) == [("a", 5), ("a", 6)]


def test_keys_by_frequency(spark: SparkSession) -> None:
    found = messages_by_key(spark.createDataFrame(ROWS, MESSAGES).where("stream_id = 'a'")).collect()
    assert [(row.key, row.messages, row.bytes, row["last"]) for row in found] == [
        ("x", 3, 37, 6),
        (None, 1, 1, 5),
        ("y", 1, 5, 4),
    ]
