"""The log of batches: a batch is there as a whole and once, wherever it is cut off."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark import schemas
from spark.history import History
from tests.spark.crashes import WITHIN_A_BATCH, Crash, CrashPoint

pytestmark = pytest.mark.spark

TIMES = [datetime(2026, 1, 1, 23, 59, 59, 999000, UTC), datetime(2026, 1, 2, tzinfo=UTC)]


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> History:
    return History(spark, str(tmp_path / "history"))


def messages(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Messages of one stream, on either side of midnight."""
    found = [
        (1, "aaaaaaaaaaaa", "a", n, TIMES[n % 2], f"m{n}", None, None, "null", 4)
        for n in range(first, last + 1)
    ]
    return spark.createDataFrame(found, schemas.MESSAGES).coalesce(1)


def add(history: History, rows: DataFrame, *, batch_id: int, first: int, last: int) -> int:
    batch = history.append(
        rows,
        query="q",
        batch_id=batch_id,
        start={"aaaaaaaaaaaa": first - 1},
        end={"aaaaaaaaaaaa": last},
    )
    return batch.number


def counting(history: History) -> list[int]:
    return sorted(row.offset for row in history.messages().collect())


def on_disk(history: History) -> list[int]:
    frame = history.session.read.parquet(history.files.root)
    return sorted(row.offset for row in frame.collect())


def test_nothing_is_there_before_the_first_batch(history: History) -> None:
    history.settle()
    assert history.last() is None
    assert history.messages().columns == schemas.HISTORY.fieldNames()
    assert counting(history) == []


def test_a_file_a_day_with_its_counts(spark: SparkSession, history: History) -> None:
    add(history, messages(spark, 1, 4), batch_id=0, first=1, last=4)
    batch = history.last()
    assert batch is not None
    assert [
        (file.path.split("/")[2], file.messages, file.bytes, file.first, file.last) for file in batch.files
    ] == [
        ("day=2026-01-02", 2, 8, 1, 3),
        ("day=2026-01-01", 2, 8, 2, 4),
    ]
    assert [file.first_ms for file in batch.files] == [round(TIMES[n].timestamp() * 1000) for n in (1, 0)]


def test_the_same_batch_again_is_not_added(spark: SparkSession, history: History) -> None:
    numbers = [add(history, messages(spark, 1, 4), batch_id=0, first=1, last=4) for _ in range(2)]
    assert (numbers, counting(history), on_disk(history)) == ([1, 1], [1, 2, 3, 4], [1, 2, 3, 4])


@pytest.mark.parametrize("point", WITHIN_A_BATCH, ids=str)
def test_a_batch_that_was_cut_off_is_there_once_after_it_is_done_again(
    spark: SparkSession, history: History, point: CrashPoint
) -> None:
    add(history, messages(spark, 1, 2), batch_id=0, first=1, last=2)
    with point.armed(), pytest.raises(Crash):
        add(history, messages(spark, 3, 9), batch_id=1, first=3, last=9)
    assert counting(history) in ([1, 2], [*range(1, 10)])
    add(history, messages(spark, 3, 9), batch_id=1, first=3, last=9)
    add(history, messages(spark, 10, 10), batch_id=2, first=10, last=10)
    assert counting(history) == on_disk(history) == [*range(1, 11)]
    assert [batch.number for batch in history.newest_first()] == [3, 2, 1]


def test_a_lost_head_is_found_again(spark: SparkSession, history: History) -> None:
    for n in range(3):
        add(history, messages(spark, n + 1, n + 1), batch_id=n, first=n + 1, last=n + 1)
    history.files.delete("_log/HEAD")
    last = history.last()
    assert last is not None
    assert last.number == 3
