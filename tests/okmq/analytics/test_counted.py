"""What was counted as tables for the queries: of the steps that are wanted, and no more than fits."""

from datetime import UTC, datetime, timedelta

import pytest

from okmq.analytics import counted
from spark.query import QueryFailed
from streams.models import Rollup, StandingRollup

pytestmark = pytest.mark.django_db

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def minutes() -> None:
    """Five minutes and a day of a stream, and a minute without a message in which a publish was refused as known."""
    Rollup.objects.bulk_create(
        Rollup(stream_id="s", step=step, start=BEGIN + timedelta(minutes=n), messages=n, bytes=n)
        for step, count in (("minute", 5), ("day", 1))
        for n in range(count)
    )
    StandingRollup.objects.create(
        stream_id="s",
        group="",
        step="minute",
        start=BEGIN + timedelta(minutes=9),
        samples=1,
        last_ms=1,
        duplicates=7,
        grown={"duplicates": 7},
    )


def test_steps_are_brought_that_are_asked_for() -> None:
    found = counted.rollups_of(["s"], steps=["minute", "hour"]).to_pylist()
    assert [(row["step"], row["start"].minute, row["messages"], row["duplicates"]) for row in found] == [
        *(("minute", n, n, None) for n in range(5)),
        ("minute", 9, 0, 7),
    ]
    assert [row["step"] for row in counted.rollups_of(["s"], steps=["day"]).to_pylist()] == ["day"]
    assert counted.rollups_of(["s"], steps=[]).num_rows == 0


def test_more_than_fits_is_refused_and_fewer_steps_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MOST_ROLLUPS", 5)
    with pytest.raises(QueryFailed, match="ask for step = 'hour' or step = 'day'"):
        counted.rollups_of(["s"], steps=["minute"])  # with the one that has no message
    assert counted.rollups_of(["s"], steps=["hour", "day"]).num_rows == 1
    monkeypatch.setattr(counted, "MOST_ROLLUPS", 4)
    monkeypatch.setattr(
        counted, "streams_counted", lambda *_, **__: pytest.fail("it is known that they do not fit")
    )
    with pytest.raises(QueryFailed):
        counted.rollups_of(["s"], steps=["minute"])
