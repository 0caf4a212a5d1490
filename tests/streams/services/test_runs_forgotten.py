"""Runs that ended long ago are let go of, but for those that tell how the history stands."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams import selectors
from streams.models import Rollup, RollupPosition, Run
from streams.models.history import Job, RunState, Step
from streams.services import history as service

pytestmark = pytest.mark.django_db

KEPT = timedelta(days=30)


def ended(state: str = "succeeded", *, job: str = Job.ROLLUP, days: float = 40) -> Run:
    """A run that ended so many days ago."""
    at = timezone.now() - timedelta(days=days)
    return Run.objects.create(job=job, state=state, started_at=at, finished_at=at)


def left() -> list[int]:
    return list(Run.objects.order_by("id").values_list("pk", flat=True))


def counted(step: str, *, minute: int = 0, **more: Any) -> Rollup:
    return Rollup.objects.create(
        stream_id="s",
        step=step,
        start=datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
        messages=3,
        bytes=30,
        **more,
    )


def test_what_ended_before_that_goes_and_what_ended_since_stays() -> None:
    ended(days=31)
    ended("failed", days=30.1)
    young = [ended("failed", days=29.9), ended(days=1)]
    assert service.runs_forget(kept=KEPT) == 2
    assert left() == [each.pk for each in young]
    assert service.runs_forget(kept=KEPT) == 0


def test_what_has_not_ended_stays() -> None:
    waiting = [Run.objects.create(job=Job.ROLLUP, state=state) for state in service.UNFINISHED]
    Run.objects.update(created_at=timezone.now() - timedelta(days=40))
    last = ended(days=1)
    assert service.runs_forget(kept=KEPT) == 0
    assert left() == [*(each.pk for each in waiting), last.pk]


@pytest.mark.parametrize("job", Job.values)
def test_of_each_job_the_last_success_and_what_failed_after_it_stay(job: str) -> None:
    ended(job=job)
    ended("failed", job=job)
    last, failed, failed_again = ended(job=job), ended("failed", job=job), ended("failed", job=job)
    other = next(each for each in Job.values if each != job)
    never = [ended("failed", job=other), ended("failed", job=other)]
    assert service.runs_forget(kept=KEPT) == 2
    assert left() == [each.pk for each in (last, failed, failed_again, *never)]
    mended = ended(job=job, days=1)
    assert service.runs_forget(kept=KEPT) == 3
    assert left() == [*(each.pk for each in never), mended.pk]


def test_a_run_that_a_page_names_stays() -> None:
    by_which = [ended() for _ in range(4)]
    of_minute = ended()
    last = ended()
    RollupPosition.objects.create(stream_id="s", run=by_which[0])
    RollupPosition.objects.create(stream_id="t", run=by_which[1])
    counted(Step.HOUR, look_run=by_which[2])
    counted(Step.DAY, look_run=by_which[3])
    at = timezone.now()
    counted(Step.MINUTE, look_run=by_which[3], look_time=at, run=of_minute)
    counted(Step.MINUTE, minute=1, look_run=of_minute, look_time=at, run=of_minute)
    assert service.runs_forget(kept=KEPT) == 1
    assert left() == [*(each.pk for each in by_which), last.pk]
    first, second = Rollup.objects.filter(step=Step.MINUTE).order_by("start")
    assert (first.look_run, second.look_run) == (by_which[3], None)
    scan = selectors.scan_of([second])
    assert (scan.run_id, scan.time, second.messages) == (None, at, 3)


def test_they_go_in_slices_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FORGOTTEN_AT_ONCE", 2)
    old = [ended() for _ in range(5)]
    last = ended()
    RollupPosition.objects.create(stream_id="s", run=old[0])
    assert service.runs_forget(kept=KEPT) == 2
    assert left() == [each.pk for each in (old[0], old[3], old[4], last)]
    assert service.runs_forget(kept=KEPT) == 2
    assert service.runs_forget(kept=KEPT) == 0
    assert left() == [old[0].pk, last.pk]


def test_how_many_have_begun_meanwhile_is_told_also_while_old_ones_go() -> None:
    ended()
    ended(days=1)
    (waiting,) = service.run_request(jobs=[Job.ARCHIVE], requested_by="somebody")
    begun = selectors.runs_begun_from_now()
    assert begun() == 0
    assert service.runs_forget(kept=KEPT) == 1
    assert begun() == 0
    assert service.run_take([Job.ARCHIVE]) == waiting
    assert begun() is None
    waiting.refresh_from_db()
    service.run_finish(waiting, counts={})
    assert begun() == 1
    service.run_request(jobs=[Job.ROLLUP], requested_by="somebody")
    assert begun() == 1
    taken = service.run_take([Job.ROLLUP])
    assert taken is not None
    service.run_finish(taken, counts={}, error="Disk is full.")
    assert (begun(), RunState(taken.state)) == (2, RunState.FAILED)
