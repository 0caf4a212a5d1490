"""Which run is next, of which jobs, and what it waits for."""

import pytest

from streams.models import Run
from streams.models.history import Job
from streams.services.history import run_finish, run_take, runs_interrupted, runs_wait

pytestmark = pytest.mark.django_db

WRITING, COUNTING = (Job.ARCHIVE, Job.COMPACT), (Job.ROLLUP,)


def queued(*jobs: str) -> list[Run]:
    return [Run.objects.create(job=job) for job in jobs]


def test_the_oldest_of_some_jobs_is_taken_first() -> None:
    _, first, second = queued("rollup", "archive", "archive")
    assert [run_take(WRITING), run_take(WRITING), run_take(WRITING)] == [first, second, None]


@pytest.mark.parametrize("before", ["archive", "compact"])
def test_a_rollup_waits_for_what_writes_the_history_and_was_asked_for_before_it(before: str) -> None:
    writing, counting = queued(before, "rollup")
    assert run_take(COUNTING) is None, "it is queued"
    assert run_take(WRITING) == writing
    assert run_take(COUNTING) is None, "it is under way"
    run_finish(writing, counts={}, error="Disk is full.")
    assert run_take(COUNTING) == counting


def test_the_archive_waits_for_no_rollup_and_a_compaction_does() -> None:
    counting, compacting, archiving = queued("rollup", "compact", "archive")
    assert run_take(COUNTING) == counting
    assert run_take(WRITING) == archiving
    run_finish(archiving, counts={})
    assert run_take(WRITING) is None
    run_finish(counting, counts={})
    (later,) = queued("rollup")
    assert run_take(COUNTING) is None, "neither overtakes the other"
    assert run_take(WRITING) == compacting
    assert runs_wait(Job.ARCHIVE, Job.ROLLUP)
    run_finish(compacting, counts={})
    assert run_take(COUNTING) == later
    assert not runs_wait(Job.ARCHIVE, Job.ROLLUP)


def test_what_is_cut_off_is_queued_again_and_what_goes_on_beside_it_is_left_alone() -> None:
    queued("rollup", "archive")
    counting, archiving = run_take(COUNTING), run_take(WRITING)
    assert runs_interrupted(WRITING) == [archiving]
    assert list(Run.objects.order_by("id").values_list("job", "state")) == [
        ("rollup", "running"),
        ("archive", "failed"),
        ("archive", "queued"),
    ]
    assert runs_interrupted(COUNTING) == [counting]
