"""Which windows are looked at, when, and what is stored of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from streams.models import Erasure, Rollup, RollupPosition, Run, Workspace
from streams.services.windows import (
    WindowFigures,
    windows_beside,
    windows_due,
    windows_forget,
    windows_naming,
    windows_store,
)

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WITHIN, AFTER = NOON + timedelta(minutes=30), NOON + timedelta(hours=1)
FOUND = WindowFigures(
    pk=0,
    looked_at=10,
    scanned=10,
    first_offset=1,
    last_offset=12,
    missing=2,
    ids=9,
    keys=2,
    size_p50=10,
    size_p90=20,
    size_p99=30,
    size_max=31,
    top_keys=[("a", 6), ("b", 4)],
)


def forget(*, offset: int | None = None, key: str = "") -> int:
    return windows_forget("s", offset=offset, key=key, naming=windows_naming("s", key=key))


def window(**more: Any) -> Rollup:
    known = {"stream_id": "s", "step": "hour", "start": NOON, "messages": 10, "bytes": 100}
    return Rollup.objects.create(**{**known, **more})


@pytest.mark.parametrize(
    ("looked_at", "messages", "now", "is_due"),
    [
        (0, 10, WITHIN, True),
        (10, 10, AFTER, False),
        (100, 124, WITHIN, False),
        (100, 125, WITHIN, True),
        (100, 101, AFTER - timedelta(milliseconds=1), False),
        (100, 101, AFTER, True),
    ],
)
def test_a_window_is_due_once_it_has_grown_by_a_quarter_or_is_over(
    looked_at: int, messages: int, now: datetime, is_due: bool
) -> None:
    window(looked_at=looked_at, messages=messages)
    assert bool(windows_due(now=now)) is is_due


def test_the_newest_come_first_and_no_more_than_asked_for() -> None:
    for hours in range(5):
        window(start=NOON + timedelta(hours=hours))
    RollupPosition.objects.create(stream_id="s", offset=77)
    due = windows_due(now=AFTER, limit=2)
    assert [(each.start, each.counted) for each in due] == [
        (NOON + timedelta(hours=4), 77),
        (NOON + timedelta(hours=3), 77),
    ]


def test_what_was_found_is_stored_beside_the_sums_and_is_due_no_more() -> None:
    row, gone = window(), window(start=AFTER)
    gone.delete()
    windows_store([replace(FOUND, pk=row.pk), replace(FOUND, pk=gone.pk or 999)], since=AFTER)
    row.refresh_from_db()
    assert (row.messages, row.bytes, row.missing, row.size_p90) == (10, 100, 2, 20)
    assert row.top_keys == [["a", 6], ["b", 4]]
    assert windows_due(now=AFTER) == []
    assert Rollup.objects.count() == 1


@pytest.mark.parametrize(
    ("erased", "forgotten"),
    [
        ({"offset": 5, "key": ""}, True),
        ({"offset": 12, "key": ""}, True),
        ({"offset": 13, "key": ""}, False),
        ({"offset": None, "key": "a"}, True),
        ({"offset": None, "key": "c"}, False),
    ],
)
def test_what_names_an_erased_key_is_forgotten_and_looked_for_anew(
    erased: dict[str, Any], forgotten: bool
) -> None:
    row, other = window(), window(stream_id="t")
    windows_store([replace(FOUND, pk=row.pk), replace(FOUND, pk=other.pk)], since=AFTER)
    assert forget(**erased) == int(forgotten)
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.top_keys is None) is forgotten
    assert other.top_keys is not None
    assert [each.pk for each in windows_due(now=AFTER)] == ([row.pk] if forgotten else [])


def test_a_field_may_have_a_name_that_no_text_of_postgresql_has() -> None:
    row = window(step="day")
    field = {"name": "a\x00b", "present": 1, "types": {"null": 1}}
    windows_store([replace(FOUND, pk=row.pk, bodies=10, unreadable=0, fields=[field])], since=AFTER)
    row.refresh_from_db()
    assert row.fields == [{**field, "name": "a␀b"}]


def test_fields_of_days_are_looked_for_anew_where_a_key_was_erased() -> None:
    row, other = window(step="day"), window()
    fields = [{"name": "f", "present": 1, "types": {"null": 1}}]
    windows_store(
        [replace(FOUND, pk=row.pk, bodies=10, unreadable=0, fields=fields), replace(FOUND, pk=other.pk)],
        since=AFTER,
    )
    assert forget(key="unknown") == 1
    row.refresh_from_db()
    assert (row.fields, row.top_keys, row.looked_at) == (None, None, 0)
    assert [each.pk for each in windows_due(now=AFTER)] == [row.pk]


def test_a_look_that_an_erasure_overtook_is_not_stored_and_taken_again() -> None:
    row, other = window(), window(stream_id="t")
    Erasure.objects.create(
        workspace=Workspace.objects.create(name="erasing"),
        stream_id="s",
        state="succeeded",
        finished_at=AFTER,
    )
    found = [replace(FOUND, pk=row.pk), replace(FOUND, pk=other.pk)]
    assert windows_store(found, since=AFTER - timedelta(seconds=1)) == 1
    assert [each.pk for each in windows_due(now=AFTER)] == [row.pk]
    assert windows_store(found, since=AFTER + timedelta(seconds=1)) == 2


@pytest.mark.parametrize("state", ["running", "queued", "succeeded"])
def test_while_the_database_is_held_only_windows_are_read_that_may_name_the_key(state: str) -> None:
    rows = [window(start=NOON + timedelta(hours=hours)) for hours in range(6)]
    old, without, changed, gone, late, other = rows
    before = Run.objects.create(job="rollup", state="succeeded")
    known = [old, without, changed, gone, late]
    keys = {row.pk: [("b", 6)] if row in (without, late) else FOUND.top_keys for row in known}
    windows_store([replace(FOUND, pk=pk, top_keys=of) for pk, of in keys.items()], since=AFTER, run=before)
    run = Run.objects.create(job="rollup", state=state) if state != "succeeded" else None
    naming = windows_naming("s", key="a")
    run = run or Run.objects.create(job="rollup")
    stored = {changed.pk: [("b", 6)], late.pk: FOUND.top_keys, other.pk: [("c", 1)]}
    windows_store([replace(FOUND, pk=pk, top_keys=of) for pk, of in stored.items()], since=AFTER, run=run)
    gone.delete()
    with CaptureQueriesContext(connection) as asked:
        assert windows_forget("s", offset=None, key="a", naming=naming) == 2
    left = Rollup.objects.filter(top_keys__isnull=False)
    assert set(left.values_list("pk", flat=True)) == {without.pk, changed.pk, other.pk}
    looks = [
        each["sql"] for each in asked if each["sql"].startswith("SELECT") and '"top_keys"' in each["sql"]
    ]
    assert looks
    assert all("look_run_id" in sql or '"id" IN' in sql for sql in looks)


def test_a_run_also_looks_at_what_has_grown_at_all_as_long_as_that_is_little_work() -> None:
    due = window(messages=10)
    small, large, too_large = (
        window(start=NOON + timedelta(hours=hours), messages=messages, looked_at=messages - 1)
        for hours, messages in ((1, 100), (2, 900), (3, 1000))
    )
    window(start=NOON + timedelta(hours=4), messages=50, looked_at=50)
    anyway = windows_due(now=WITHIN)
    assert [each.pk for each in anyway] == [due.pk]
    assert [each.pk for each in windows_beside(but=anyway, most=1000)] == [small.pk, large.pk]
    assert [each.pk for each in windows_beside(but=anyway, most=2000)] == [small.pk, large.pk, too_large.pk]
    assert windows_beside(but=anyway, most=99) == []


def test_a_look_names_its_run_and_time_and_how_much_was_there_until_it_is_forgotten() -> None:
    row, run = window(), Run.objects.create(job="rollup", requested_by="schedule")
    windows_store([replace(FOUND, pk=row.pk, scanned=8)], since=AFTER, run=run)
    row.refresh_from_db()
    assert (row.look_run, row.look_time) == (run, AFTER)
    assert (row.looked_at, row.messages_scanned, row.messages_unscanned) == (10, 8, 0)
    assert windows_due(now=AFTER) == [], "what was erased does not have it looked at for ever"
    forget(offset=5)
    row.refresh_from_db()
    assert (row.look_run, row.look_time, row.ids, row.size_p50) == (None, None, None, None)
    assert (row.messages_scanned, row.messages_unscanned) == (0, 10)


def looked(row: Rollup, first: int | None, last: int | None, *, messages: int = 10) -> None:
    """A look at a window finds these offsets and messages, with none missing between them."""
    found = replace(FOUND, pk=row.pk, looked_at=messages, scanned=messages, missing=0)
    windows_store([replace(found, first_offset=first, last_offset=last)], since=AFTER)


def missing() -> list[int | None]:
    """Of each hour, in the order of their times."""
    hours = Rollup.objects.filter(stream_id="s", step="hour").order_by("start")
    return list(hours.values_list("missing", flat=True))


def test_what_is_missing_between_two_windows_is_counted_into_the_later_one() -> None:
    first, second, third = (window(start=NOON + timedelta(hours=hours)) for hours in range(3))
    for other in (window(stream_id="t"), window(step="day", start=NOON - timedelta(hours=12))):
        looked(other, 1, 2)
    looked(third, 51, 60)
    looked(first, 11, 20)
    assert missing() == [0, None, 0], "nobody knows yet what the second has"
    looked(second, 24, 33)
    assert missing() == [0, 3, 17]
    looked(second, 22, 31)
    assert missing() == [0, 1, 19]
    looked(first, 12, 21)
    assert missing() == [0, 0, 19]


def test_a_window_that_has_grown_since_its_look_says_nothing_of_the_next_one() -> None:
    first, second = window(messages=12), window(start=AFTER)
    looked(first, 1, 10)
    looked(second, 20, 29)
    assert missing() == [0, 0]
    looked(first, 1, 12, messages=12)
    assert missing() == [0, 7]


def test_a_window_of_which_all_was_erased_hides_none_of_those_before_it() -> None:
    rows = [window(start=NOON + timedelta(hours=hours)) for hours in range(3)]
    for row, (first, last) in zip(rows, [(1, 10), (11, 20), (21, 30)], strict=True):
        looked(row, first, last)
    assert missing() == [0, 0, 0]
    looked(rows[1], None, None)
    assert missing() == [0, 0, 10]


def test_offsets_of_a_clock_that_was_set_back_make_nothing_missing_below_nought() -> None:
    later, earlier = window(start=AFTER), window()
    looked(later, 1, 10)
    looked(earlier, 11, 20)
    assert missing() == [0, 0]
