"""Storing what Spark counted: added to what is there, and never twice."""

import importlib
from datetime import UTC, datetime, timedelta

import pytest
from django.apps import apps

from streams.access import SYSTEM
from streams.models import Rollup, RollupPosition, StandingRollup, Stream, Workspace
from streams.models.history import Step
from streams.services.history import Progressed, RollupPoint, rollups_add
from streams.services.streams import streams_delete
from tests.streams.services.loaded import loaded

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE = datetime(2026, 1, 1, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def streams() -> None:
    workspace, _ = Workspace.objects.get_or_create(name="counting")
    for name in ("s", "t"):
        Stream.objects.create(workspace=workspace, name=name, stream_id=name)


def point(start: datetime, messages: int, *, stream: str = "s", step: str = "hour") -> RollupPoint:
    return RollupPoint(stream_id=stream, step=step, start=start, messages=messages, bytes=messages * 10)


def in_every_step(start: datetime, *, stream: str = "s") -> list[RollupPoint]:
    """One message, as it is counted."""
    return [point(Step(step).floor(start), 1, stream=stream, step=step) for step in Step.values]


def moved(start: int, end: int, *, stream: str = "s") -> Progressed:
    return Progressed(stream_id=stream, from_offset=start, to_offset=end, fresh_to=NOON)


def stored() -> dict[datetime, tuple[int, int]]:
    return {row.start: (row.messages, row.bytes) for row in Rollup.objects.filter(stream_id="s")}


def test_new_points_are_stored_and_later_ones_added() -> None:
    rollups_add([point(NOON, 5)], positions=[moved(0, 5)], run=None)
    rollups_add([point(NOON, 2), point(ONE, 3)], positions=[moved(5, 10)], run=None)
    assert stored() == {NOON: (7, 70), ONE: (3, 30)}
    assert RollupPosition.objects.get(stream_id="s").offset == 10


def test_the_same_count_again_adds_nothing() -> None:
    for _ in range(2):
        rollups_add([point(NOON, 5)], positions=[moved(0, 5)], run=None)
    assert stored() == {NOON: (5, 50)}


def test_a_stream_counted_by_another_run_meanwhile_is_passed_over_alone() -> None:
    rollups_add([point(NOON, 5)], positions=[moved(0, 5)], run=None)
    points = [point(NOON, 9), point(NOON, 4, stream="t")]
    rollups_add(points, positions=[moved(3, 12), moved(0, 4, stream="t")], run=None)
    assert stored() == {NOON: (5, 50)}
    assert Rollup.objects.get(stream_id="t").messages == 4


def test_nothing_new_moves_the_position_all_the_same() -> None:
    assert rollups_add([], positions=[moved(0, 7)], run=None) == 0
    assert RollupPosition.objects.get(stream_id="s").offset == 7


def test_nothing_is_loaded_but_what_is_added_to_however_much_lies_between() -> None:
    for stream in ("s", "t"):
        minutes = [point(NOON + n * MINUTE, 1, stream=stream, step="minute") for n in range(300)]
        rollups_add(minutes, positions=[moved(0, 300, stream=stream)], run=None)
    now = NOON + 299 * MINUTE
    old = [each for n in range(450) for each in in_every_step(NOON - timedelta(days=365) + n * MINUTE)]
    of_s = {(each.step, each.start): each for each in old}.values()
    first = [*in_every_step(now), *of_s, *in_every_step(now, stream="t")]
    moves = [[moved(300, 301), moved(300, 301, stream="t")], [moved(301, 302), moved(301, 302, stream="t")]]
    with loaded(Rollup) as rows:
        assert rollups_add(first, positions=moves[0], run=None) == len(first)
    assert {(row.stream_id, row.step, row.start) for row in rows} == {
        (stream, "minute", now) for stream in "st"
    }
    with loaded(Rollup) as rows:
        rollups_add(first, positions=moves[1], run=None)
    assert len(rows) == len(first)
    assert {"top_keys", "fields"} <= rows[0].get_deferred_fields()
    of_now = Rollup.objects.filter(start__lte=now, stream_id="t").order_by("step", "-start")
    found = {step: of_now.filter(step=step).values_list("messages", "bytes")[0] for step in Step.values}
    assert found == {"minute": (3, 30), "hour": (2, 20), "day": (2, 20)}
    assert set(
        Rollup.objects.filter(start__lt=NOON - timedelta(days=1)).values_list("messages", flat=True)
    ) == {2}


def test_nothing_is_written_of_a_stream_that_was_deleted_while_it_was_counted() -> None:
    streams_delete([Stream.objects.select_related("workspace").get(stream_id="s")], actor=SYSTEM)
    points = [point(NOON, 5), point(NOON, 4, stream="t")]
    assert rollups_add(points, positions=[moved(0, 5), moved(0, 4, stream="t")], run=None) == 1
    assert list(RollupPosition.objects.values_list("stream_id", flat=True)) == ["t"]
    assert list(Rollup.objects.values_list("stream_id", flat=True)) == ["t"]


def test_an_upgrade_takes_what_was_written_of_streams_that_are_not_there() -> None:
    for stream in ("s", "gone"):
        RollupPosition.objects.create(stream_id=stream, offset=1)
        Rollup.objects.create(stream_id=stream, step="day", start=NOON, messages=1, bytes=1)
        StandingRollup.objects.create(stream_id=stream, step="day", start=NOON, samples=1, last_ms=1)
    importlib.import_module("streams.migrations.0052_figures_of_no_stream").go(apps, None)
    for model in (RollupPosition, Rollup, StandingRollup):
        assert list(model.objects.values_list("stream_id", flat=True)) == ["s"]
