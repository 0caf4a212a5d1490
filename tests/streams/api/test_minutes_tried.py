"""A rule tried on the minutes that the history counted, before there are samples."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams.models import AlertRule, Rollup, StandingRollup, Stream
from streams.selectors import back_test, minutes
from streams.selectors.back_tests import BackTest
from tests.streams.api.conftest import Api
from tests.streams.api.test_deleted_tried import now_ms, sampled

STATUS = {"watch": "status", "statuses": ["slow", "stalled"]}
LETTERS = {"watch": "dead_letters", "limit": 2}
EDGE = {"watch": "retention_edge", "limit": 60}
NOBODY = {"watch": "no_consumer", "limit": 60}
MONTH_S = 28 * 86_400


@pytest.fixture
def orders(owner: Api) -> Stream:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "billing"})
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    sampled(stream)  # none
    return stream


@pytest.fixture
def long_ago() -> datetime:
    return timezone.now().replace(second=0, microsecond=0) - timedelta(days=29)


def counted(stream: Stream, since: datetime, *minutes: dict[str, Any] | None, group: str = "billing") -> None:
    """What the history says of a group minute by minute; none is one at rest. An earlier version knew of the lag."""
    StandingRollup.objects.bulk_create(
        StandingRollup(
            stream_id=stream.stream_id,
            group=group,
            step="minute",
            start=since + timedelta(minutes=number),
            samples=6,
            last_ms=0,
            lag_max=0,
            lag_ms_max=0,
            **minute,
        )
        for number, minute in enumerate(minutes)
        if minute is not None
    )


def quiet(since: datetime, *said: tuple[float, float]) -> dict[str, Any]:
    """So many seconds after a moment nobody had fetched for so long."""
    return {
        "status_seen": {"ok": 1},
        "quiet": [[int((since.timestamp() + at_s) * 1000), int(for_s * 1000)] for at_s, for_s in said],
    }


def seen(*statuses: str) -> dict[str, Any]:
    return {"status_seen": dict.fromkeys(statuses, 1)}


def tried(owner: Api, rule: dict[str, Any], *, for_seconds: int = 0) -> BackTest:
    held = AlertRule(workspace=owner.workspace, stream="orders", for_seconds=for_seconds, **rule)
    return back_test(held, now_ms=now_ms())


def lengths(found: BackTest) -> list[float]:
    return [span.seconds for span in found.spans]


def test_a_status_is_that_of_a_minute_in_which_any_sample_has_it(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    counted(orders, long_ago, seen("ok"), seen("ok", "slow"), seen("stalled"), seen("ok"))
    found = tried(owner, STATUS)
    assert (lengths(found), found.subjects, found.since, found.sampled_since) == ([120], 1, long_ago, None)
    assert lengths(tried(owner, STATUS, for_seconds=60)) == [60]
    assert lengths(tried(owner, STATUS, for_seconds=180)) == []
    assert lengths(tried(owner, STATUS | {"statuses": ["losing"]})) == []
    assert lengths(tried(owner, STATUS | {"group": "b*"})) == [120]
    assert tried(owner, STATUS | {"group": "search"}).subjects == 0


def test_a_minute_of_which_the_status_is_not_known_changes_nothing(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    counted(orders, long_ago, seen("unknown"), seen("slow"), seen("unknown"), seen("unknown", "ok"))
    found = tried(owner, STATUS)
    assert (lengths(found), found.since) == ([120], long_ago + timedelta(minutes=1))


def test_dead_letters_are_the_most_of_each_minute(owner: Api, orders: Stream, long_ago: datetime) -> None:
    counted(orders, long_ago, *[{"dead_max": count} for count in (0, 3, 5, 2)])
    assert lengths(tried(owner, LETTERS)) == [120]
    assert lengths(tried(owner, LETTERS | {"limit": 5})) == []


def test_the_edge_is_the_nearest_of_each_minute_and_far_away_where_no_limit_removes_anything(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    edges = (None, 59_999, -1, None, 60_000, None)
    counted(orders, long_ago, *[{**seen("ok"), "edge_ms_min": edge_ms} for edge_ms in edges])
    assert lengths(tried(owner, EDGE)) == [120]
    assert lengths(tried(owner, EDGE | {"limit": 59})) == [60]
    assert lengths(tried(owner, EDGE | {"limit": 61})) == [120, 60]


def test_a_silence_begins_and_ends_when_it_did_inside_minutes(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    counted(
        orders,
        long_ago,
        quiet(long_ago, (5, 0), (55, 20)),  # nobody fetched from 35 s on
        quiet(long_ago, (65, 30), (115, 80)),
        quiet(long_ago, (125, 90), (140, 0), (175, 0)),  # until 140 s
    )
    (span,) = tried(owner, NOBODY).spans
    assert (span.start_s - long_ago.timestamp(), span.seconds) == (95, 45)
    assert lengths(tried(owner, NOBODY, for_seconds=50)) == []
    assert lengths(tried(owner, NOBODY | {"limit": 110})) == []


def test_a_silence_goes_on_while_the_group_is_at_rest_until_somebody_comes(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    later = quiet(long_ago, (3600, 0))
    counted(orders, long_ago, quiet(long_ago, (0, 0), (50, 20)), *[None] * 59, later)
    (span,) = tried(owner, NOBODY).spans
    assert (span.start_s - long_ago.timestamp(), span.seconds) == (90, 3510)


def test_somebody_who_waits_for_a_message_is_there_while_the_group_is_at_rest(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    counted(orders, long_ago, quiet(long_ago, (0, 0), (50, 0)))
    assert tried(owner, NOBODY).spans == []


def test_what_was_at_rest_since_before_anything_is_known_was_so_all_along(
    owner: Api, orders: Stream, long_ago: datetime
) -> None:
    counted(orders, long_ago, quiet(long_ago, (0, 0)), group="search")
    sampled(orders, (-100, {"quiet": 40 * 86_400}))
    assert MONTH_S < tried(owner, NOBODY).longest_seconds < 30 * 86_400


@pytest.mark.parametrize(
    ("rule", "minute"),
    [(STATUS, seen("slow")), (LETTERS, {"dead_max": 3}), (EDGE, {**seen("ok"), "edge_ms_min": 1})],
)
def test_at_rest_the_last_minute_holds_until_the_group_was_deleted(
    owner: Api, orders: Stream, long_ago: datetime, rule: dict[str, Any], minute: dict[str, Any]
) -> None:
    counted(orders, long_ago, minute)
    assert tried(owner, rule).longest_seconds > MONTH_S
    counted(orders, long_ago, minute, group="gone")
    assert lengths(tried(owner, rule | {"group": "gone"})) == [60], "nothing says when"


@pytest.mark.parametrize(
    ("rule", "minute", "sample"),
    [
        (STATUS, seen("slow"), {"status": "ok"}),
        (LETTERS, {"dead_max": 3}, {"dead": 2}),
        (EDGE, {**seen("ok"), "edge_ms_min": 1}, {"edge": None}),
    ],
)
def test_a_minute_holds_until_the_first_sample(
    owner: Api, orders: Stream, rule: dict[str, Any], minute: dict[str, Any], sample: dict[str, Any]
) -> None:
    start = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=30)
    counted(orders, start, minute, minute)
    sampled(orders, (start.timestamp() + 90 - now_ms() / 1000, sample))
    (span,) = tried(owner, rule).spans
    assert span.start_s == start.timestamp()
    assert span.seconds == pytest.approx(90, abs=0.1)


def test_of_a_minute_in_which_samples_begin_what_they_say_themselves_is_left_out(
    owner: Api, orders: Stream
) -> None:
    start = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=30)
    counted(orders, start, quiet(start, (10, 100), (50, 140)))
    begin_s = start.timestamp() - now_ms() / 1000
    sampled(orders, (begin_s + 30, {"quiet": 120}), (begin_s + 40, {"quiet": 0}))
    (span,) = tried(owner, NOBODY).spans
    assert span.start_s == start.timestamp() + 10
    assert span.seconds == pytest.approx(30, abs=0.1)


def test_what_others_did_does_not_shorten_how_far_it_reaches_back(
    owner: Api, orders: Stream, long_ago: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post("streams/", {"name": "other"})
    other = Stream.objects.get(workspace=owner.workspace, name="other")
    monkeypatch.setattr(minutes, "MOST_MINUTES", 3)
    counted(orders, long_ago, *[{"dead_max": 3}] * 3)
    later = long_ago + timedelta(days=1)
    for stream in (orders, other):
        counted(stream, later, *[{"dead_max": 1}] * 4, group="search")
        Rollup.objects.create(stream_id=stream.stream_id, step="minute", start=later, messages=60, bytes=1)
    for group in ("billing", "bill*", "*l*g"):
        assert tried(owner, LETTERS | {"group": group}).since == long_ago
    found = tried(owner, LETTERS)
    assert (found.since, found.subjects) == (later + timedelta(minutes=1), 1), "the newest three"
    monkeypatch.setattr(minutes, "MOST_MINUTES", 1)
    assert tried(owner, {"watch": "rate_above", "limit": 0.5}).longest_seconds == 60


@pytest.mark.parametrize("rule", [STATUS, LETTERS, EDGE, NOBODY])
def test_what_an_earlier_version_counted_says_nothing_of_it(
    owner: Api, orders: Stream, long_ago: datetime, rule: dict[str, Any]
) -> None:
    counted(orders, long_ago, {}, {})
    found = tried(owner, rule)
    assert (found.subjects, found.since, found.spans) == (0, None, [])
    assert tried(owner, {"watch": "lag", "limit": 1}).since == long_ago
    known = {**quiet(long_ago, (125, 200)), **seen("slow"), "dead_max": 9, "edge_ms_min": 9}
    counted(orders, long_ago + timedelta(minutes=2), known, group="billing")
    found = tried(owner, rule)
    assert found.since is not None
    assert 120 <= (found.since - long_ago).total_seconds() <= 125
    assert found.longest_seconds > MONTH_S
