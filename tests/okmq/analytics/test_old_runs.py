"""The process that holds Spark lets go of old runs, without Spark."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from okmq.analytics import process
from streams.models import Run
from streams.services import history as service
from tests.okmq.analytics.working import inside
from tests.spark.published import Published

pytestmark = pytest.mark.django_db(transaction=True)


def test_they_go_a_slice_a_look_after_the_days_that_are_set_and_no_more_are_looked_for(
    published: Published, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FORGOTTEN_AT_ONCE", 2)
    at = timezone.now() - timedelta(days=8)
    runs = [Run(job="archive", state="succeeded", started_at=at, finished_at=at) for _ in range(4)]
    Run.objects.bulk_create(runs)
    with inside(published, settings, tmp_path) as analytics:
        analytics.env = replace(analytics.env, runs_days=7)
        analytics.next_schedule = float("inf")
        left = []
        for _ in range(3):
            analytics.look()
            left.append(Run.objects.count())
        assert left == [2, 1, 1]
        Run.objects.bulk_create([Run(job="archive", state="succeeded", finished_at=at) for _ in range(2)])
        analytics.look()
        assert Run.objects.count() == 3, "it is looked for again in an hour"
        analytics.next_forgetting -= process.FORGET_EVERY_S
        analytics.look()
        assert Run.objects.count() == 1
