"""What the source takes over of a query's filters, without a session and with one."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from spark import pushed, schemas
from spark.options import parse
from spark.readers import PushedReader
from tests.spark.published import Published, Row, moment, rows
from tests.spark.test_source_batch import read
from tests.waiting import until

OFFSET, KEY, TIME, BODY = ("offset",), ("key",), ("timestamp",), ("body",)
AT = moment(1_700_000_000_500)
BETWEEN = AT + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("each", "bounds"),
    [
        (EqualTo(OFFSET, 7), {"first": 7, "last": 7}),
        (GreaterThan(OFFSET, 7), {"first": 8}),
        (GreaterThanOrEqual(OFFSET, 7), {"first": 7}),
        (LessThan(OFFSET, 7), {"last": 6}),
        (LessThanOrEqual(OFFSET, 7), {"last": 7}),
        (EqualTo(TIME, AT), {"since_ms": 1_700_000_000_500, "until_ms": 1_700_000_000_500}),
        (EqualTo(TIME, BETWEEN), {"since_ms": 1_700_000_000_501, "until_ms": 1_700_000_000_500}),
        (GreaterThan(TIME, AT), {"since_ms": 1_700_000_000_501}),
        (GreaterThan(TIME, BETWEEN), {"since_ms": 1_700_000_000_501}),
        (GreaterThanOrEqual(TIME, AT), {"since_ms": 1_700_000_000_500}),
        (GreaterThanOrEqual(TIME, BETWEEN), {"since_ms": 1_700_000_000_501}),
        (LessThan(TIME, AT), {"until_ms": 1_700_000_000_499}),
        (LessThan(TIME, BETWEEN), {"until_ms": 1_700_000_000_500}),
        (LessThanOrEqual(TIME, BETWEEN), {"until_ms": 1_700_000_000_500}),
    ],
)
def test_comparisons_bound_what_is_read(each: Filter, bounds: dict[str, int]) -> None:
    assert pushed.take([each], by_time=True) == (pushed.Pushed(**bounds), [])  # type: ignore[arg-type]


def test_the_narrowest_of_several_bounds_holds() -> None:
    filters = [GreaterThan(OFFSET, 3), GreaterThan(OFFSET, 9), LessThan(OFFSET, 50), LessThan(OFFSET, 20)]
    assert pushed.take(filters, by_time=True)[0] == pushed.Pushed(first=10, last=19)


@pytest.mark.parametrize(
    "each",
    [
        Not(EqualTo(OFFSET, 7)),
        In(OFFSET, (1, 2)),
        EqualTo(BODY, "1"),
        EqualTo(("headers", "offset"), 3),
        EqualTo(TIME, datetime(2026, 1, 1)),
        Not(EqualTo(KEY, "a")),
        IsNotNull(("headers",)),
        EqualNullSafe(OFFSET, None),
    ],
    ids=str,
)
def test_the_rest_is_left_to_spark(each: Filter) -> None:
    assert pushed.take([each], by_time=True) == (pushed.NOTHING, [each])


def test_times_are_left_to_spark_where_they_do_not_bound() -> None:
    each = LessThan(TIME, AT)
    assert pushed.take([each], by_time=False) == (pushed.NOTHING, [each])


@pytest.mark.parametrize(
    ("each", "wanted"),
    [
        (EqualTo(KEY, "a"), {"a"}),
        (EqualNullSafe(KEY, "a"), {"a"}),
        (In(KEY, ("a", None, "b.c")), {"a", "b.c"}),
        (StringStartsWith(KEY, "b."), {"b.c"}),
        (IsNull(KEY), {None}),
        (IsNotNull(KEY), {"a", "b.c"}),
        (IsNotNull(OFFSET), {"a", "b.c", None}),
    ],
    ids=str,
)
def test_keys_are_looked_at_as_spark_would(each: Filter, wanted: set[str | None]) -> None:
    taken, left = pushed.take([each], by_time=True)
    assert ({key for key in ("a", "b.c", None) if taken.wants_key(key)}, left) == (wanted, [])


@dataclass
class Two:
    """Two streams, the second half of one published a second later than everything else."""

    published: Published
    first: str
    second: str

    @property
    def stored(self) -> list[Row]:
        return self.published.stored(self.first, self.second)

    @property
    def cut(self) -> int:
        """The time of the first message that came later."""
        return int(next(row[2] for row in self.stored if row[:2] == (self.first, 201)))


@pytest.fixture
def two(published: Published) -> Two:
    first, second = published.stream("a"), published.stream("b")
    published.numbered(first, 200, key="eu")
    published.numbered(second, 30)
    newest = published.stored(second)[-1][2]
    until(lambda: int(published.log.client.time()[0]) * 1000 > newest, within_s=5)
    published.numbered(first, 100, key="us", prefix="later")
    published.delete(first, [1, 150, 250])
    return Two(published, first, second)


def test_bounds_narrow_what_a_read_asks_of_the_log(two: Two) -> None:
    cut = moment(two.cut)
    cases: list[tuple[list[Filter], list[tuple[str, int, int]]]] = [
        ([], [("a", 2, 300), ("b", 1, 30)]),
        ([GreaterThan(OFFSET, 20), LessThan(OFFSET, 101)], [("a", 21, 100), ("b", 21, 30)]),
        ([GreaterThanOrEqual(TIME, cut)], [("a", 201, 300)]),
        ([LessThan(TIME, cut), EqualTo(OFFSET, 200)], [("a", 200, 200)]),
        ([GreaterThan(OFFSET, 300)], []),
    ]
    for filters, expected in cases:
        reader = PushedReader(parse(two.published.options()), schemas.arrow(schemas.MESSAGES))
        assert list(reader.pushFilters(filters)) == []
        ranges = [each for part in reader.partitions() for each in part.ranges]  # type: ignore[attr-defined]
        assert [(each.stream, each.first, each.last) for each in ranges] == expected, filters


def test_of_messages_with_other_keys_nothing_is_built(two: Two) -> None:
    reader = PushedReader(parse(two.published.options()), schemas.arrow(schemas.MESSAGES))
    reader.pushFilters([EqualTo(KEY, "us.1")])
    built = [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch["offset"].to_pylist()
    ]
    assert built == [row[1] for row in two.stored if row[4] == "us.1"]


@pytest.mark.spark
def test_a_query_finds_what_it_would_without(spark: SparkSession, two: Two) -> None:
    cut = two.cut
    cases: list[tuple[Column, Any]] = [
        (sf.col("offset").between(140, 160), lambda row: 140 <= row[1] <= 160),
        (sf.col("timestamp") >= moment(cut), lambda row: row[2] >= cut),
        (sf.col("timestamp") < moment(cut), lambda row: row[2] < cut),
        (sf.col("key") == "us.1", lambda row: row[4] == "us.1"),
        (
            sf.col("key").startswith("eu.") & (sf.col("offset") > 190) & (sf.length("body") > 12),
            lambda row: (row[4] or "").startswith("eu.") and row[1] > 190 and row[7] > 12,
        ),
        (sf.col("key").isNull(), lambda row: row[4] is None),
    ]
    for condition, holds in cases:
        found = read(spark, two.published, pushFilters="true").where(condition)
        assert rows(found) == [row for row in two.stored if holds(row)], condition
        assert filtered_by_spark(found) == set(), condition
        assert filtered_by_spark(read(spark, two.published).where(condition)), condition


@pytest.mark.spark
def test_one_loaded_frame_answers_any_number_of_queries(spark: SparkSession, two: Two) -> None:
    whole = read(spark, two.published)
    planned(whole.where("offset BETWEEN 10 AND 20 AND key = 'eu.1'"))
    assert rows(whole.where("offset <= 5")) == [row for row in two.stored if row[1] <= 5]
    assert rows(whole) == two.stored
    late, early = whole.where("offset > 290"), whole.where("offset <= 5")
    assert rows(late.union(early)) == [row for row in two.stored if row[1] > 290 or row[1] <= 5]
    joined = early.alias("e").join(late.alias("l"), sf.col("e.offset") + 290 == sf.col("l.offset"))
    assert joined.count() == sum(1 for row in two.stored if row[1] <= 5 and row[1] + 290 <= 300)


def filtered_by_spark(frame: DataFrame) -> set[str]:
    """The columns that the source could compare but Spark does, in the filters of its plan."""
    filters = [line for line in planned(frame).splitlines() if re.search(r"\bFilter\b", line)]
    return set(re.findall(r"\b(offset|timestamp|key)#", "".join(filters)))


def planned(frame: DataFrame) -> str:
    """How Spark would carry a query out."""
    inner: Any = frame._jdf
    return str(inner.queryExecution().executedPlan().toString())
