"""A query that fills the disk ends alone: its files go, the process of Spark goes on, and others get their answers."""

import threading

import pytest
from pyspark import SparkContext

from okmq.analytics import disk_watch
from okmq.analytics.answering import group_of
from okmq.analytics.disk_watch import DiskWatch
from okmq.analytics.process import Analytics
from okmq.analytics.queries import Queries
from spark import folders, session, watching
from streams.models import Query, QueryState, Run
from streams.services import history as service_of_runs
from tests.okmq.analytics.working import work
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

MIB = 2**20

WINDOW = (
    "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY id % 7 ORDER BY hash(id)) AS n "
    "FROM range(0, 200000000, 1, 4))"
)
"""Some gigabytes of rows, none of which an answer needs at once."""

LONG = "SELECT count(*) FROM range(0, 3000000000, 1, 100) WHERE hash(id) = 7 AND hash(id) = 8"
"""It keeps nothing, and takes its time."""


def put(here: Published, sql: str) -> Query:
    return Query.objects.create(
        workspace_id=here.workspace_id, sql=sql, limit=100, streams=[], asked_by="somebody"
    )


def answering(queries: Queries, query: Query) -> threading.Thread:
    thread = threading.Thread(target=queries.answer_next)
    thread.start()
    until(lambda: watching.tasks_left(group_of(query)), within_s=120, what="its tasks run")
    return thread


def ended(thread: threading.Thread, query: Query) -> Query:
    thread.join(240)
    query.refresh_from_db()
    return query


def spark_pid() -> int:
    return int(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def test_a_query_that_spills_more_than_it_may_ends_alone_and_its_files_go(
    analytics: Analytics, here: Published
) -> None:
    here.numbered(here.stream("a"), 50)
    pid, analytics.queries.answering.disk.most_bytes = spark_pid(), 100 * MIB
    large = put(here, WINDOW)
    first = answering(analytics.queries, large)
    service_of_runs.run_request(jobs=["archive"], requested_by="somebody")
    work(analytics)
    assert ended(first, large).state == QueryState.FAILED
    assert large.error == (
        "It kept more than 100 MiB on the disk at once; narrow it by stream, key or time, or count and filter before "
        "it sorts, joins or takes a window. OKMQ_SQL_DISK allows more."
    )
    until(lambda: folders.held_bytes() < 10 * MIB, within_s=60, what="its files have gone")
    assert list(Run.objects.values_list("job", "state")) == [("archive", "succeeded")]
    assert spark_pid() == pid
    small = put(here, "SELECT count(*) FROM messages")
    assert analytics.queries.answer_next()
    small.refresh_from_db()
    assert small.rows == "[[50]]"


def test_of_two_the_one_that_has_put_most_on_the_disk_is_ended(analytics: Analytics, here: Published) -> None:
    large, beside = put(here, WINDOW), put(here, LONG)
    first = answering(analytics.queries, large)
    second = answering(analytics.queries, beside)
    group = group_of(large)
    until(lambda: folders.written([group])[group], within_s=120, what="Spark tells what it has written")
    analytics.queries.answering.disk.most_bytes = 10 * MIB
    assert ended(first, large).state == QueryState.FAILED
    beside.refresh_from_db()
    assert (beside.state, beside.error) == (QueryState.RUNNING, "")
    beside.cancel = True
    beside.save(update_fields=["cancel"])
    assert ended(second, beside).state == QueryState.CANCELLED


def test_where_the_disk_is_nearly_full_less_is_too_much(
    analytics: Analytics, here: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch, "WORTH_IT_BYTES", MIB)
    found = folders.disk()
    assert found is not None
    analytics.queries.answering.disk = DiskWatch(most_bytes=2**50, reserve_bytes=found[0])
    large = put(here, WINDOW)
    assert ended(answering(analytics.queries, large), large).state == QueryState.FAILED
    assert large.error.startswith(
        "The disk of this machine is nearly full, and it kept much there; make room"
    )


def test_what_a_query_that_was_answered_has_shuffled_is_gone(analytics: Analytics, here: Published) -> None:
    folders.clear()
    until(lambda: folders.held_bytes() < MIB, within_s=60, what="what others left has gone")
    query = put(here, "SELECT count(DISTINCT hash(id)) FROM range(0, 2000000, 1, 4)")
    assert analytics.queries.answer_next()
    query.refresh_from_db()
    assert query.state == QueryState.SUCCEEDED
    until(lambda: folders.held_bytes() < MIB, within_s=5, what="its files have gone")


def test_sessions_of_one_jvm_share_a_folder(analytics: Analytics) -> None:
    before = len(session.folders())
    analytics.spark.session()
    assert len(session.folders()) == before
