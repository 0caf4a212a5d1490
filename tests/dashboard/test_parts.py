"""The small parts behind the pages: quantities, retention, concerns, rates, pictures."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.attention import concerns
from dashboard.live.rates import per_second
from dashboard.quantities import parse_duration, parse_moment, parse_size
from dashboard.stream_rows import Rates, StreamRow, health, retention_of
from dashboard.templatetags.pictures import spark_points
from streams.log.stats import EMPTY
from streams.models import Stream
from streams.selectors import Sampling, ServersAway, StreamView
from streams.upkeep.processes import ProcessStatus

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SAMPLED = Sampling(at_ms=1_000, now_ms=2_000)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30 min", 1800), ("1.5 h", 5400), ("7 d", 604_800), ("2W", 1_209_600)]
)
def test_a_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("64 KiB", 65_536), ("10gb", 10 * 2**30), ("1.5k", 1536)]
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "7", "7 x", "-1 d", "0 s", "1e3 s", "999999999999999999 w", "７ d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\."):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("15 min ago", NOW - timedelta(minutes=15)),
        ("15m ago", NOW - timedelta(minutes=15)),
        ("now", NOW),
        (" Now ", NOW),
        ("2026-11-21 07:05", NOW.replace(hour=7, minute=5)),
        ("2026-11-21T07:05:00+01:00", NOW.replace(hour=6, minute=5)),
        ("1795244753000", datetime(2026, 11, 21, 7, 5, 53, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read(text: str, moment: datetime) -> None:
    assert parse_moment(text, now=NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "ago", "99999999999999999999", "2026-13-01"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Enter a time"):
        parse_moment(text, now=NOW)


@pytest.mark.parametrize(
    ("limits", "text", "used"),
    [
        ({}, "no limit", None),
        ({"ttl": 604_800}, "7 d", None),
        ({"ttl": 60, "max_bytes": 100, "max_messages": 40}, "1 min · 100 B · 40 messages", 0.5),
    ],
)
def test_retention_is_one_chip(limits: dict[str, int], text: str, used: float | None) -> None:
    kept = retention_of(Stream(name="a", **limits), messages=20, size_bytes=10)
    assert (kept.text, kept.used) == (text, used)


def test_a_stream_is_active_for_a_minute_after_a_write() -> None:
    assert health(messages=3, last_ms=100_000, now_ms=159_000) == "active"
    assert health(messages=3, last_ms=100_000, now_ms=161_000) == "idle"
    assert health(messages=0, last_ms=None, now_ms=161_000) == "empty"


def process(**facts: object) -> ProcessStatus:
    given: dict[str, object] = {
        "name": "web",
        "pid": 1,
        "state": "running",
        "restarts": 0,
        "since": 0.0,
        "note": "",
    }
    return ProcessStatus(**{**given, **facts})  # type: ignore[arg-type]


def test_a_restart_is_told_for_an_hour() -> None:
    restarted = process(restarts=1, since=1_000.0, note="exited with signal 9")
    (told,) = concerns(seen=SAMPLED, processes=[restarted], rows=[], groups=[], now_s=1_012.0)
    assert (told.level, told.sentence) == ("warn", "web exited with signal 9, restarted 12 s ago.")
    assert concerns(seen=SAMPLED, processes=[restarted], rows=[], groups=[], now_s=9_999.0) == []


@pytest.mark.parametrize(("at_ms", "since"), [(1_000, "for 1 min 23 s"), (None, "yet")])
def test_a_worker_that_does_not_sample_is_told(at_ms: int | None, since: str) -> None:
    silent = Sampling(at_ms=at_ms, now_ms=84_000)
    (told,) = concerns(seen=silent, processes=[], rows=[], groups=[], now_s=84.0)
    assert told.level == "bad"
    assert told.sentence.startswith(f"The worker has not sampled {since}: ")


def test_nodes_that_are_away_are_told_with_what_still_works() -> None:
    away = ServersAway(nodes=2, of_nodes=3)
    (told,) = concerns(seen=SAMPLED, processes=[], rows=[], groups=[], now_s=0.0, away=away)
    assert told.level == "bad"
    assert told.sentence.startswith("2 of the 3 nodes of the message store are not responding: ")
    assert "The streams of the other nodes work." in told.sentence


def test_the_worst_concern_comes_first() -> None:
    missing = process(name="analytics", state="unavailable", note="Install Java.")
    dead = process(state="restarting", note="exited with code 1")
    told = concerns(seen=SAMPLED, processes=[missing, dead], rows=[], groups=[], now_s=0.0)
    assert [each.level for each in told] == ["bad", "warn"]


@pytest.mark.parametrize(("messages", "level"), [(8, None), (9, "warn"), (10, "bad")])
def test_a_stream_that_refuses_when_full_is_told_before_it_does(messages: int, level: str | None) -> None:
    from dataclasses import replace

    stream = Stream(name="a", discard="new", max_messages=10)
    row = StreamRow(StreamView(stream, replace(EMPTY, messages=messages)), Rates())
    assert [
        each.level for each in concerns(seen=SAMPLED, processes=[], rows=[row], groups=[], now_s=0.0)
    ] == ([level] if level else [])


def test_rates_fill_every_second_and_carry_over_a_late_tick() -> None:
    points = [(10.9, 5.0), (12.1, 7.0), (20.0, 1.0)]
    assert per_second(points, until_s=20, seconds=11, unsampled=()) == [5, 5, 7, 0, 0, 0, 0, 0, 0, 0, 1]
    found = per_second(points, until_s=20, seconds=11, unsampled=range(13, 18))
    assert found == [5, 5, 7, None, None, None, None, None, 0, 0, 1], "at rest, as far as somebody counted"


def test_a_sparkline_is_drawn_as_the_browser_draws_it() -> None:
    assert spark_points([0, 2, 1]) == "77.3,19.0 78.6,1.0 80.0,10.0"
