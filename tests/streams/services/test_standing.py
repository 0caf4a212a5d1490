"""How groups stood: added up from samples, once, and asked for by range."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streams import selectors
from streams.log.counts import Counts
from streams.models import RollupPosition, StandingRollup, Stream, Workspace
from streams.models.history import Step
from streams.selectors.standing import percentile
from streams.services.history import Progressed
from streams.services.standing import StoodPoint, standing_add
from tests.streams.services.loaded import loaded

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def stream() -> Stream:
    workspace, _ = Workspace.objects.get_or_create(name="standing")
    return Stream.objects.create(workspace=workspace, name="s", stream_id="stood")


def stood(
    hour: int = 0,
    *,
    group: str = "g",
    stream_id: str = "stood",
    made_ms: int | None = 1,
    counters: dict[str, int] | None = None,
    ack_ms: dict[str, int] | None = None,
    **more: Any,
) -> StoodPoint:
    """A window of a run of which one sample says the counters: the first and the last that does."""
    counted = Counts(made_ms, {"redelivered": 4} if counters is None else counters)
    acknowledged = None if ack_ms is None else Counts(made_ms, ack_ms)
    known: dict[str, Any] = {
        "samples": 2,
        "last_ms": 1,
        "counted": counted,
        "counted_first": counted,
        "counted_grown": {},
        "ack_ms": acknowledged,
        "ack_ms_first": acknowledged,
        "ack_ms_grown": {},
        "highest": {"lag": 9, "lag_ms": 2_500},
        "seen": {"lag": {3: 1, 9: 1}, "lag_ms": {2_496: 2}},
    }
    known |= {"step": "hour", "start": NOON + timedelta(hours=hour)}
    return StoodPoint(stream_id=stream_id, group=group, **{**known, **more})


def moved(start: int, end: int) -> Progressed:
    return Progressed(stream_id="metrics", from_offset=start, to_offset=end, fresh_to=NOON)


def test_later_samples_are_added_and_the_same_ones_are_not(stream: Stream) -> None:
    assert standing_add([stood()], position=moved(0, 5)) == 1
    assert standing_add([stood()], position=moved(0, 5)) == 0
    later = stood(
        samples=1,
        last_ms=7,
        counters={"redelivered": 6},
        highest={"lag": 4, "lag_ms": 9_000},
        seen={"lag": {3: 1}, "lag_ms": {8_960: 1}},
    )
    standing_add([later], position=moved(5, 6))
    (row,) = StandingRollup.objects.filter(stream_id="stood")
    assert (row.samples, row.last_ms, row.redelivered, row.acked) == (3, 7, 6, None)
    assert (row.lag_max, row.lag_ms_max) == (9, 9_000)
    assert (row.lag_seen, row.lag_ms_seen) == ({"3": 2, "9": 1}, {"2496": 2, "8960": 1})
    assert RollupPosition.objects.get(stream_id="metrics").offset == 6


def test_what_rules_watch_is_put_together_with_what_later_samples_say(stream: Stream) -> None:
    early = stood(
        highest={"dead": 3}, statuses={"ok": 2, "slow": 1}, edge_ms=900, quiet=[(10, 700), (20, 0), (30, 7)]
    )
    late = stood(highest={"dead": 1}, statuses={"slow": 1}, edge_ms=None, quiet=[(40, 700), (50, 0), (60, 9)])
    silent = stood(highest={}, statuses=None, edge_ms=None, quiet=None)
    for n, point in enumerate([silent, early, silent, late]):
        standing_add([point], position=moved(n, n + 1))
    (row,) = StandingRollup.objects.all()
    assert (row.dead_max, row.status_seen, row.edge_ms_min) == (3, {"ok": 2, "slow": 2}, 900)
    assert row.quiet == [[10, 700], [20, 0], [60, 9]]


def test_what_an_earlier_version_counted_stays_unknown(stream: Stream) -> None:
    standing_add([stood()], position=moved(0, 1))
    (row,) = StandingRollup.objects.all()
    assert (row.dead_max, row.status_seen, row.edge_ms_min, row.quiet) == (None, None, None, None)


def test_samples_of_a_stream_that_has_gone_are_passed_over(stream: Stream) -> None:
    standing_add([stood(stream_id="gone"), stood()], position=moved(0, 1))
    assert list(StandingRollup.objects.values_list("stream_id", flat=True)) == ["stood"]


def test_no_window_is_loaded_but_those_that_the_samples_are_of(stream: Stream) -> None:
    minutes = [NOON + n * timedelta(minutes=1) for n in range(300)]
    old = [stood(step="minute", start=each, group=group) for each in minutes for group in ("g", "rests")]
    standing_add([*old, *every_step(NOON, group="rests")[1:]], position=moved(0, 1))
    with loaded(StandingRollup) as rows:
        standing_add(every_step(minutes[-1], counters={"redelivered": 7}), position=moved(1, 2))
    read = [row for row in rows if "samples" not in row.get_deferred_fields()]
    assert [(row.group, row.step, row.start) for row in read] == [("g", "minute", minutes[-1])]
    row = StandingRollup.objects.get(group="g", step="minute", start=minutes[-1])
    assert (row.samples, row.redelivered, row.lag_seen) == (4, 7, {"3": 2, "9": 2})
    assert StandingRollup.objects.get(group="g", step="day").samples == 2


def test_what_grew_is_told_by_step_also_in_the_middle_of_a_life(stream: Stream) -> None:
    redelivered = {0: (1, 4), 1: (1, 4), 3: (1, 10), 4: (2, 12)}
    for n, (hour, (made_ms, value)) in enumerate(redelivered.items()):
        found = every_step(NOON + timedelta(hours=hour), made_ms=made_ms, counters={"redelivered": value})
        standing_add(found, position=moved(n, n + 1))
    (past,) = selectors.groups_past(stream, step="hour", since=NOON + timedelta(hours=1))
    assert [each.redelivered for each in past.steps] == [0, 6, 12]
    assert (past.group, past.redelivered, past.lag.p50, past.lag.max) == ("g", 18, 3, 9)
    assert (past.lag_seconds.p99, past.lag_seconds.max) == (2.496, 2.5)
    assert [each.redelivered for each in selectors.groups_past(stream, step="day")] == [22]
    assert selectors.groups_past(stream, step="hour", until=NOON) == []


def test_what_was_counted_inside_a_window_is_added_to_what_its_first_sample_brought(stream: Stream) -> None:
    standing_add(every_step(NOON, group="", counters={"duplicates": 5}), position=moved(0, 1))
    more = replace(
        stood(group="", counters={"duplicates": 7}),
        counted=Counts(2, {"duplicates": 3}),
        counted_grown={"duplicates": 4},
    )
    standing_add([more], position=moved(1, 2))
    standing_add([replace(more, counted_first=None)], position=moved(2, 3))
    assert selectors.duplicates_by_step(stream, step="hour") == {NOON: 5 + 2 + 4 + 4}


def test_a_window_that_an_earlier_version_began_is_told_from_where_it_stood_in_the_end(
    stream: Stream,
) -> None:
    for hour, value in ((0, 4), (1, 10), (3, 1)):
        for step in Step:
            StandingRollup.objects.update_or_create(
                stream_id="stood",
                group="g",
                step=step,
                start=step.floor(NOON + timedelta(hours=hour)),
                defaults={"redelivered": value, "samples": 1, "last_ms": 1},
            )
    standing_add(
        every_step(NOON + timedelta(hours=3, minutes=5), counters={"redelivered": 3}), position=moved(0, 1)
    )
    standing_add(every_step(NOON + timedelta(hours=4), counters={"redelivered": 8}), position=moved(1, 2))
    standing_add(
        every_step(NOON + timedelta(hours=4), counters={"redelivered": 9}, made_ms=2), position=moved(2, 3)
    )
    (past,) = selectors.groups_past(stream, step="hour")
    assert [each.redelivered for each in past.steps] == [4, 6, 3, 5 + 9]
    (past,) = selectors.groups_past(stream, step="day")
    assert past.redelivered == 9, "as the version before told it"


def every_step(moment: datetime, **more: Any) -> list[StoodPoint]:
    """A sample as Spark tells it: of its minute, of its hour and of its day."""
    return [stood(step=step, start=Step(step).floor(moment), **more) for step in Step.values]


def test_what_was_acknowledged_is_by_how_much_it_grew_also_over_runs_and_days(stream: Stream) -> None:
    late = NOON.replace(hour=23, minute=58)
    minute = timedelta(minutes=1)
    said: list[tuple[int | None, dict[str, int] | None]] = [
        (1, {"5": 2}),
        (1, {"5": 2, "96": 3}),
        (1, {"5": 4, "96": 3}),
        (None, None),
        (1, {"5": 4, "96": 4}),
        (2, {"5": 1}),
    ]
    for n, (made_ms, ack_ms) in enumerate(said):
        found = every_step(late + n * minute, made_ms=made_ms, ack_ms=ack_ms)
        standing_add(found, position=moved(n, n + 1))
    grown = [{"5": 2}, {"96": 3}, {"5": 2}, {}, {"96": 1}, {"5": 1}]
    rows = StandingRollup.objects.filter(stream_id="stood").order_by("start")
    assert list(rows.filter(step="minute").values_list("ack_ms_seen", flat=True)) == grown
    assert list(rows.filter(step="minute").values_list("ack_ms_ever", flat=True)) == [None] * 6
    assert list(rows.filter(step="hour").values_list("ack_ms_seen", flat=True)) == [
        {"5": 2, "96": 3},
        {"5": 3, "96": 1},
    ]
    assert list(rows.filter(step="day").values_list("ack_ms_seen", "ack_ms_ever")) == [
        ({"5": 2, "96": 3}, {"5": 2, "96": 3}),
        ({"5": 3, "96": 1}, {"5": 1}),
    ]
    (past,) = selectors.groups_past(stream, step="day")
    assert (past.ack_seconds.p50, past.ack_seconds.p99, past.ack_seconds.max) == (0.005, 0.096, 0.096)
    (since,) = selectors.groups_past(stream, step="minute", since=late + 5 * minute)
    assert (since.ack_seconds.p50, since.ack_seconds.max) == (0.005, 0.005)


@pytest.mark.parametrize(
    ("seen", "share", "expected"),
    [
        ({}, 0.5, None),
        ({7: 1}, 0.99, 7),
        ({1: 50, 2: 50}, 0.5, 1),
        ({1: 49, 2: 51}, 0.5, 2),
        ({10: 1, 2: 99}, 0.99, 2),
        ({10: 2, 2: 98}, 0.99, 10),
    ],
)
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(
    seen: dict[int, int], share: float, expected: int | None
) -> None:
    assert percentile(seen, share) == expected
