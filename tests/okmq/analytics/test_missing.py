"""Which offsets the history misses, by window: against a count by hand, also where they lie between two windows."""

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from okmq.analytics.process import Analytics
from spark.history import History
from spark.jobs.figures import LENGTHS
from streams.log import config
from streams.models import Rollup, Run
from streams.services import history as service
from tests.okmq.analytics.working import known, work
from tests.spark.by_hand import start_of
from tests.spark.past import ID, OFFSET, TIMESTAMP, Row, past, remember
from tests.spark.published import Published

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]


def missing_by_hand(rows: list[Row]) -> dict[tuple[str, datetime], int]:
    """Step and start → how many offsets lie between its messages and those before them."""
    found: Counter[tuple[str, datetime]] = Counter()
    for before, row in zip([None, *rows], rows, strict=False):
        for step in LENGTHS:
            gap = 0 if before is None else row[OFFSET] - before[OFFSET] - 1
            found[step, start_of(row[TIMESTAMP], step)] += gap
    return dict(found)


def missing_stored(stream_id: str) -> dict[tuple[str, datetime], int | None]:
    return {(each.step, each.start): each.missing for each in Rollup.objects.filter(stream_id=stream_id)}


@pytest.fixture
def history(analytics: Analytics, spark: SparkSession) -> History:
    return History(spark, analytics.spark.settings().history_url)


def counted(analytics: Analytics, published: Published, stream_id: str, *, up_to: int) -> Run:
    """A rollup run once the history says that it has a stream up to an offset."""
    published.log.run(config.archived_set(stream_id, up_to))
    (run,) = service.run_request(jobs=["rollup"], requested_by="somebody")
    work(analytics)
    run.refresh_from_db()
    assert (run.state, run.error) == ("succeeded", "")
    return run


def test_minutes_come_to_what_their_hour_misses_and_days_to_what_the_stream_does(
    analytics: Analytics, here: Published, history: History
) -> None:
    stream_id = known(here, "a")
    rows = [
        (*row[:OFFSET], row[OFFSET] + 5 * row[TIMESTAMP].day, *row[OFFSET + 1 :])
        for row in past(stream_id, seed=5, days=3, messages=900, first=40)
    ]
    cuts = [0, 300, 301, 640, len(rows)]
    start = 0
    for first, last in pairwise(cuts):
        start = remember(history, rows[first:last], start=start)
        counted(analytics, here, stream_id, up_to=start)
        assert missing_stored(stream_id) == missing_by_hand(rows[:last])
    of_all = rows[-1][OFFSET] - rows[0][OFFSET] + 1 - len(rows)
    sums: Counter[str] = Counter()
    for (step, _), missing in missing_stored(stream_id).items():
        sums[step] += missing or 0
    assert sums == dict.fromkeys(LENGTHS, of_all)
    inside = [
        each.last_offset - each.first_offset + 1 - each.messages  # type: ignore[operator]
        for each in Rollup.objects.filter(stream_id=stream_id, step="day")
    ]
    assert sum(inside) == of_all - 10, "five lie across each midnight"


def test_messages_that_the_history_has_twice_are_told_and_end_no_run(
    analytics: Analytics, here: Published, history: History
) -> None:
    stream_id = known(here, "a")
    rows = [
        (*row[:ID], f"m{n}", *row[ID + 1 :])
        for n, row in enumerate(past(stream_id, seed=6, days=1, messages=60))
    ]
    remember(history, rows)
    remember(history, rows[20:31], start=rows[19][OFFSET])
    counts: dict[str, Any] = counted(analytics, here, stream_id, up_to=rows[-1][OFFSET]).counts
    assert counts["twice"] == 11
    assert missing_stored(stream_id) == missing_by_hand(rows)
