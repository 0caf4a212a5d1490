"""Windows of the history against a look at them in plain Python."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from spark.history import History, HistoryFile
from spark.jobs.figures import LENGTHS, Figures, Window, look
from spark.transforms.figures import TOP_KEYS
from tests.spark.past import BYTES, ID, KEY, OFFSET, STREAM, TIMESTAMP, Row, past, remember

pytestmark = pytest.mark.spark

ALL = 10**12


def start_of(at: datetime, step: str) -> datetime:
    seconds = LENGTHS[step].total_seconds()
    return datetime.fromtimestamp(at.timestamp() // seconds * seconds, UTC)


def windows_of(rows: Iterable[Row], *, counted: int = ALL) -> list[Window]:
    """All windows that have a message."""
    named = sorted({(row[STREAM], step, start_of(row[TIMESTAMP], step)) for row in rows for step in LENGTHS})
    return [
        Window(number=n, stream_id=stream_id, step=step, start=start, counted=counted)
        for n, (stream_id, step, start) in enumerate(named)
    ]


def looked_at_by_hand(windows: list[Window], rows: Iterable[Row]) -> list[Figures]:
    of_window: dict[tuple[str, str, datetime], list[Row]] = {}
    for row in rows:
        for step in LENGTHS:
            of_window.setdefault((row[STREAM], step, start_of(row[TIMESTAMP], step)), []).append(row)
    found = []
    for window in windows:
        inside = [
            row
            for row in of_window.get((window.stream_id, window.step, window.start), [])
            if row[OFFSET] <= window.counted
        ]
        sizes = sorted(row[BYTES] for row in inside)
        keys = Counter(row[KEY] for row in inside if row[KEY] is not None)
        top = sorted(keys.items(), key=lambda each: (-each[1], each[0]))[: TOP_KEYS[window.step]]

        def rank(share: float, sizes: list[int] = sizes) -> int | None:
            return sizes[max(0, math.ceil(share * len(sizes)) - 1)] if sizes else None

        found.append(
            Figures(
                number=window.number,
                messages=len(inside),
                first=min((row[OFFSET] for row in inside), default=None),
                last=max((row[OFFSET] for row in inside), default=None),
                ids=len({row[ID] for row in inside}),
                keys=len(keys),
                size_p50=rank(0.5),
                size_p90=rank(0.9),
                size_p99=rank(0.99),
                size_max=rank(1.0),
                top_keys=top,
            )
        )
    return found


def test_every_minute_hour_and_day_is_as_counted_by_hand_and_so_again(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(spark, str(tmp_path_factory.mktemp("history")))
    rows = [*past("a", seed=1), *past("b", seed=2, days=1, messages=200)]
    middle = 700
    end = remember(history, rows[:middle], batch_id=1)
    remember(history, rows[middle:1200], batch_id=2, start=end)
    remember(history, rows[1200:], batch_id=3)
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
    remember(history, rows, batch_id=1)
    remember(history, past("b", seed=4, messages=60), batch_id=2)
    (hour, *_) = [each for each in windows_of(rows) if each.step == "hour"]
    (found,) = look(spark, history, history.current_files(), windows=[hour])
    assert found == looked_at_by_hand([hour], rows)[0]
    assert [(file.stream_id, file.path.split("/")[2]) for file in history.asked] == [
        ("a", f"day={hour.start:%Y-%m-%d}")
    ]
    nothing = replace(hour, start=datetime(2020, 1, 1, tzinfo=UTC))
    assert look(spark, history, history.current_files(), windows=[nothing]) == [Figures(number=hour.number)]
