"""Profiles of days against plain Python."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.history import History
from spark.jobs.figures import Window
from spark.jobs.profiles import Profile, profiles
from spark.transforms.profiles import MOST_FIELDS
from tests.spark.by_hand import profile_by_hand
from tests.spark.past import Row, remember

pytestmark = pytest.mark.spark

DAY = datetime(2026, 3, 1, tzinfo=UTC)
VALUES: tuple[Any, ...] = (
    "text",
    "",
    "7",
    7,
    -1.5,
    1e300,
    12345678901234567890,
    True,
    False,
    None,
    {"inner": 1},
    {},
    [1, "a"],
    [],
    "2026-03-01",
)


def bodies(chance: random.Random) -> list[str]:
    made = []
    for n in range(400):
        names = chance.sample(
            ["a", "b", "Ünï", "with space", "x.y", "", f"rare{n}", "1"], chance.randrange(8)
        )
        made.append({name: chance.choice(VALUES) for name in names})
    plain: list[Any] = [[1, {"a": 1}], "text {", 5, None, True]
    return [
        *(json.dumps(each, ensure_ascii=chance.random() < 0.5) for each in [*made, *plain]),
        ' \n\t{"a": 1}',
        '{"a": 1, "a": 2}',
    ]


def test_every_day_is_as_told_by_hand_and_so_again(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = random.Random(11)
    history = History(spark, str(tmp_path_factory.mktemp("history")))
    rows: list[Row] = []
    days = [bodies(chance), bodies(chance)[:50]]
    for n, texts in enumerate(days):
        for text in texts:
            at = DAY + timedelta(days=n, milliseconds=len(rows))
            offset = len(rows) + 1
            rows.append((1, "a", "s", offset, at, f"m{offset}", None, None, text, len(text)))
    remember(history, rows)
    cut = len(days[0]) + 20
    windows = [
        Window(number=7, stream_id="a", step="day", start=DAY, counted=10**9),
        Window(number=8, stream_id="a", step="day", start=DAY + timedelta(days=1), counted=cut),
        Window(number=9, stream_id="a", step="day", start=DAY + timedelta(days=9), counted=10**9),
        Window(number=5, stream_id="a", step="hour", start=DAY, counted=10**9),
    ]
    by_hand = {
        7: profile_by_hand(7, days[0]),
        8: profile_by_hand(8, days[1][:20]),
        9: Profile(number=9),
    }
    assert profiles(spark, history, history.current_files(), windows=windows) == by_hand
    assert profiles(spark, history, history.current_files(), windows=windows[::-1]) == by_hand
    assert (by_hand[7].unreadable, len(by_hand[7].fields)) == (1, MOST_FIELDS)
