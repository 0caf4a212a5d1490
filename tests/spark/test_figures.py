"""Windows of the history against a look at them in plain Python."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from spark.batches import HistoryFile
from spark.history import History
from spark.jobs.figures import Figures, look
from spark.transforms.figures import TOP_KEYS
from tests.spark.by_hand import looked_at_by_hand, windows_of
from tests.spark.past import past, remember

pytestmark = pytest.mark.spark


def test_every_minute_hour_and_day_is_as_counted_by_hand_and_so_again(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(spark, str(tmp_path_factory.mktemp("history")))
    rows = [*past("a", seed=1), *past("b", seed=2, days=1, messages=200)]
    middle = 700
    end = remember(history, rows[:middle])
    remember(history, rows[middle:1200], start=end)
    remember(history, rows[1200:])
    windows, files = windows_of(rows), history.current_files()
    by_hand = looked_at_by_hand(windows, rows)
    assert look(spark, history, files, windows=windows) == by_hand
    assert look(spark, history, list(reversed(files)), windows=windows) == by_hand
    assert sum(each.ids < each.messages for each in by_hand) > 0, "an id that comes again counts once"
    assert max(len(each.top_keys) for each in by_hand) == TOP_KEYS["day"]
    some = [replace(each, counted=end) for each in windows if each.stream_id == "a"][::7]
    cut_off = looked_at_by_hand(some, rows)
    assert look(spark, history, files, windows=some) == cut_off
    assert any(each.messages == 0 for each in cut_off), "a window of which nothing is counted"


class Counting(History):
    """Remembers which files were read."""

    asked: list[HistoryFile]

    def read(self, files: Iterable[HistoryFile]):  # type: ignore[no-untyped-def]
        self.asked = list(files)
        return super().read(self.asked)


def test_only_the_files_that_reach_into_a_window_are_read(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = Counting(spark, str(tmp_path_factory.mktemp("history")))
    rows = past("a", seed=3, days=3, messages=60)
    remember(history, rows)
    remember(history, past("b", seed=4, messages=60))
    (hour, *_) = [each for each in windows_of(rows) if each.step == "hour"]
    (found,) = look(spark, history, history.current_files(), windows=[hour])
    assert found == looked_at_by_hand([hour], rows)[0]
    assert [(file.stream_id, file.path.split("/")[2]) for file in history.asked] == [
        ("a", f"day={hour.start:%Y-%m-%d}")
    ]
    nothing = replace(hour, start=datetime(2020, 1, 1, tzinfo=UTC))
    assert look(spark, history, history.current_files(), windows=[nothing]) == [Figures(number=hour.number)]
