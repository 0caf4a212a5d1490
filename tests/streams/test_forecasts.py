"""Where a stream is going, by hand-made rates."""

import pytest

from streams.forecasts import Fall, Forecast, Going, Reading, Seen, fall, forecast, reading_of

HOLDS = {"messages": 100, "bytes": 1000, "rate_in": 10.0, "bytes_in": 100.0, "oldest_s": 10.0}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, Forecast({}, None, None, None)),
        ({"ttl": 60}, Forecast({"ttl": 50.0}, 60.0, 600, 6000)),
        ({"max_messages": 300}, Forecast({"max_messages": 20.0}, 30.0, 300, 3000)),
        ({"max_bytes": 2000}, Forecast({"max_bytes": 10.0}, 20.0, 200, 2000)),
        ({"max_messages": 100}, Forecast({"max_messages": 0.0}, 10.0, 100, 1000)),
        # A full stream that refuses keeps what it has, and that grows older.
        ({"max_messages": 300, "refuses": True}, Forecast({"max_messages": 20.0}, None, 300, 3000)),
        # Age holds it below the count, which it never comes to.
        ({"ttl": 60, "max_messages": 10_000}, Forecast({"ttl": 50.0}, 60.0, 600, 6000)),
    ],
)
def test_the_tightest_limit_decides(limits: dict[str, int], expected: Forecast) -> None:
    assert forecast(Going(**HOLDS, **limits)) == expected  # type: ignore[arg-type]


def test_nothing_is_foreseen_while_nothing_comes_in() -> None:
    assert forecast(Going(messages=1, bytes=1, rate_in=0.0, bytes_in=0.0, ttl=60)) is None


@pytest.mark.parametrize(
    ("limits", "reading", "expected"),
    [
        # It stands still while ten messages a second come in: 300 are behind in 20 s, 2000 bytes in 10 s.
        (
            {"max_messages": 300},
            Reading(behind=100, behind_s=10, grows=10, ages=1),
            Fall(20.0, "max_messages"),
        ),
        (
            {"max_messages": 300, "max_bytes": 2000},
            Reading(behind=100, behind_s=10, grows=10, ages=1),
            Fall(10.0, "max_bytes"),
        ),
        ({"ttl": 60}, Reading(behind=100, behind_s=10, grows=10, ages=1), Fall(50.0, "ttl")),
        ({"ttl": 60}, Reading(behind=100, behind_s=10, grows=0, ages=0.5), Fall(100.0, "ttl")),
        ({"ttl": 60}, Reading(behind=100, behind_s=70, grows=-5, ages=-1), Fall(0.0, "ttl")),
        ({"max_messages": 300}, Reading(behind=100, behind_s=10, grows=-1, ages=-1), None),
        ({"ttl": 60}, Reading(behind=0, behind_s=0, grows=0, ages=0), None),
        ({"max_messages": 300, "refuses": True}, Reading(behind=100, behind_s=1, grows=10, ages=1), None),
        ({}, Reading(behind=100, behind_s=10, grows=10, ages=1), None),
    ],
)
def test_a_group_falls_off_where_it_reads_slower_than_the_edge_comes(
    limits: dict[str, int], reading: Reading, expected: Fall | None
) -> None:
    assert fall(Going(**HOLDS, **limits), reading) == expected  # type: ignore[arg-type]


def test_how_a_group_reads_follows_from_the_last_minutes() -> None:
    window = [Seen(0.0, 100, 5.0, 7, 100), Seen(10.0, 150, 10.0, 7, 150)]
    assert reading_of(window, behind=150, behind_s=10.0, rate_in=9.0) == Reading(
        behind=150, behind_s=10.0, grows=5.0, ages=0.5
    )
    # Its filter wants every second message: what is behind grows by twice as much.
    filtered = [seen._replace(behind=2 * seen.open) for seen in window]
    assert reading_of(filtered, behind=300, behind_s=10.0, rate_in=9.0).grows == 10.0
    # However much has come since it was seen last.
    assert reading_of(filtered, behind=900, behind_s=10.0, rate_in=9.0).grows == 10.0


@pytest.mark.parametrize(
    ("removed", "rate_in", "grows", "ages"),
    [
        (400, 40.0, 40.0, 1.0),  # it reads nothing: all that comes adds to what it would be behind
        (200, 40.0, 20.0, 0.5),
        (400, 0.0, 40.0, 1.0),
    ],
)
def test_what_retention_takes_from_a_group_is_not_read(
    removed: int, rate_in: float, grows: float, ages: float
) -> None:
    window = [Seen(0.0, 100, 2.5, 900, 100), Seen(10.0, 100, 2.5, 900 + removed, 100)]
    expected = Reading(behind=100, behind_s=2.5, grows=grows, ages=ages)
    assert reading_of(window, behind=100, behind_s=2.5, rate_in=rate_in) == expected


def test_a_group_that_nobody_has_watched_yet_is_taken_to_stand_still() -> None:
    still = Reading(behind=7, behind_s=2.0, grows=9.0, ages=1.0)
    assert reading_of([Seen(0.0, 7, 2.0, 0, 7)], behind=7, behind_s=2.0, rate_in=9.0) == still
