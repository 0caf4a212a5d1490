"""Queries beside runs in the analytics process: answered, refused, cancelled and cut off, each with a sentence."""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection

from okmq.analytics.answering import Answering, group_of
from okmq.analytics.process import Analytics
from okmq.analytics.queries import Queries
from spark import query as query_of_spark
from spark import watching
from spark.sentences import NO_WORKER
from streams.access import Actor, Caller
from streams.models import Query, QueryState, Rollup, Run, StandingRollup
from streams.services import history as service_of_runs
from streams.services import queries as service
from tests.okmq.analytics.working import due, known, work
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

TELLING = {"okmq.analytics.answering", "okmq.analytics.queries"}
"""Who says that the database is away."""

# More short tasks than anybody waits for: a run gets its turn between two of them.
ENDLESS = "SELECT count(*) FROM range(0, 1000000000000, 1, 10000) WHERE hash(id) = 7 AND hash(id) = 8"


def put(here: Published, sql: str, *, streams: tuple[str, ...] = ()) -> Query:
    return Query.objects.create(
        workspace_id=here.workspace_id, sql=sql, limit=100, streams=list(streams), asked_by="somebody"
    )


def queries_of(analytics: Analytics, *, time_limit_s: float) -> Queries:
    """Queries of the same process that have another time."""
    return Queries(
        Answering(
            analytics.env,
            spark=analytics.spark,
            reasons=analytics.reasons,
            stop=analytics.stop,
            time_limit_s=time_limit_s,
        )
    )


def answered(analytics: Analytics, query: Query) -> Query:
    assert analytics.queries.answer_next()
    query.refresh_from_db()
    return query


def killed(_: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What ends the process that is to do it, as the system does where memory is short."""

    def end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    return end


def test_a_query_under_which_a_python_process_of_spark_is_killed_is_lost_and_may_be_asked_again(
    analytics: Analytics, here: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(query_of_spark, "within", killed)
        lost = answered(analytics, put(here, "SELECT 1"))
    assert (lost.state, lost.error) == (QueryState.LOST, NO_WORKER)
    assert answered(analytics, put(here, "SELECT 1")).state == QueryState.SUCCEEDED


def test_a_query_is_answered_from_history_and_live_tail_of_its_own_workspace(
    analytics: Analytics, here: Published
) -> None:
    elsewhere = replace(here, workspace="elsewhere", workspace_id=here.workspace_id + 1)
    elsewhere.numbered(elsewhere.stream("a"), 3)
    stream = known(here, "a")
    here.numbered(stream, 20)
    due(analytics)
    here.numbered(stream, 5, prefix="live")
    here.numbered(here.stream("b"), 7)
    sql = "SELECT (SELECT count(*) FROM messages), (SELECT sum(messages) FROM rollups WHERE step = 'day')"
    query = answered(analytics, put(here, sql, streams=("a*",)))
    assert (query.state, query.rows, query.row_count) == (QueryState.SUCCEEDED, "[[25,20]]", 1)
    assert query.columns[0][1] == "bigint"
    assert answered(analytics, put(here, "SELECT count(*) FROM messages")).rows == "[[32]]"
    for start, redelivered in ((0, 4), (1, 9)):
        StandingRollup.objects.create(
            stream_id=stream,
            group="g",
            step="hour",
            start=datetime(2026, 1, 1, start, tzinfo=UTC),
            samples=2,
            last_ms=1,
            redelivered=redelivered,
            lag_max=7,
            lag_seen={"3": 1, "7": 1},
            lag_ms_max=2_500,
            lag_ms_seen={"2496": 2},
        )
    for minute, removed in ((1, 0), (2, 7)):
        StandingRollup.objects.create(
            stream_id=stream,
            step="minute",
            start=datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
            samples=2,
            last_ms=1,
            duplicates=1,
            removed=removed,
            grown={"removed": removed} if removed else {},
        )
    sql = "SELECT minute(start), messages, ids, duplicates, removed FROM rollups WHERE start < '2026-02-01'"
    assert answered(analytics, put(here, sql)).rows == "[[2,0,null,0,7]]"
    columns = (
        "stream, group, hour(start), samples, lag_p50, lag_max, lag_seconds_p99, ack_seconds_p50, redelivered"
    )
    query = answered(analytics, put(here, f"SELECT {columns} FROM groups ORDER BY start"))
    assert json.loads(query.rows) == [
        ["a", "g", 0, 2, 3, 7, 2.496, None, 4],
        ["a", "g", 1, 2, 3, 7, 2.496, None, 5],
    ]
    assert answered(analytics, put(here, "SELECT count(*) FROM groups", streams=("b",))).rows == "[[0]]"
    refused = answered(analytics, put(here, "DROP TABLE messages"))
    assert (refused.state, refused.rows) == (QueryState.REFUSED, "[]")
    assert "DROP is not" in refused.error


def test_an_endless_query_holds_up_no_run_and_is_cancelled_to_its_last_task(
    analytics: Analytics, here: Published
) -> None:
    here.numbered(known(here, "a"), 10)
    service_of_runs.run_request(jobs=["archive"], requested_by="somebody")
    work(analytics)
    query = put(here, ENDLESS)
    answering = threading.Thread(target=analytics.queries.answer_next)
    answering.start()
    until(lambda: watching.tasks_left(group_of(query)), within_s=60, what="its tasks run")
    assert Query.objects.get().state == QueryState.RUNNING
    service_of_runs.run_request(jobs=["rollup"], requested_by="somebody")
    work(analytics)
    assert list(Run.objects.order_by("id").values_list("job", "state")) == [
        ("archive", "succeeded"),
        ("rollup", "succeeded"),
    ]
    assert Rollup.objects.filter(step="day").get().messages == 10
    service.query_cancel(Caller(query.workspace, frozenset({"read"}), Actor(query.asked_by)), query)
    answering.join(60)
    query.refresh_from_db()
    assert query.state == QueryState.CANCELLED
    assert not watching.tasks_left(group_of(query))


def test_a_query_has_its_time(analytics: Analytics, here: Published) -> None:
    analytics.queries = queries_of(analytics, time_limit_s=1.0)
    query = answered(analytics, put(here, ENDLESS))
    assert (query.state, query.error) == (QueryState.FAILED, "It took longer than 1 seconds.")
    assert not watching.tasks_left(group_of(query))


@pytest.mark.parametrize("what_ends_it", ["somebody", "its time"])
def test_a_query_outlasts_a_database_that_is_away_and_ends_as_any_other(
    analytics: Analytics, here: Published, database_away: Callable[[], Any], what_ends_it: str
) -> None:
    time_limit_s = 300.0 if what_ends_it == "somebody" else 5.0
    queries = queries_of(analytics, time_limit_s=time_limit_s)
    query = put(here, ENDLESS)
    with served(queries):
        until(lambda: Query.objects.get().state == QueryState.RUNNING, within_s=60, what="it runs")
        with database_away():
            pass
        if what_ends_it == "somebody":
            service.query_cancel(Caller(query.workspace, frozenset({"read"}), Actor(query.asked_by)), query)
        until(lambda: Query.objects.get().is_finished, what="it ends")
        until(lambda: not watching.tasks_left(group_of(query)), what="Spark ends its tasks")
        query.refresh_from_db()
        ended = {
            "somebody": (QueryState.CANCELLED, ""),
            "its time": (QueryState.FAILED, "It took longer than 5 seconds."),
        }
        assert (query.state, query.error) == ended[what_ends_it]


def test_a_query_that_nothing_works_on_since_the_database_was_away_is_lost(
    analytics: Analytics, here: Published, database_away: Callable[[], Any]
) -> None:
    taken = put(here, "SELECT 1")
    Query.objects.update(state=QueryState.STARTING)
    asked = put(here, "SELECT 2")
    with ExitStack() as serving:
        with database_away():
            serving.enter_context(served(analytics.queries))
        until(lambda: not Query.objects.filter(finished_at=None).exists(), what="both have an end")
    taken.refresh_from_db()
    asked.refresh_from_db()
    assert (taken.state, taken.error) == (QueryState.LOST, service.LEFT)
    assert (asked.state, asked.rows) == (QueryState.SUCCEEDED, "[[2]]")


@pytest.fixture
def database_away(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], Any]:
    """Keep everybody from writing into the database until the queries have noticed, and longer than they wait."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.2)

    @contextmanager
    def away() -> Iterator[None]:
        with closing(
            sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, timeout=20)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            until(
                lambda: any(each.name in TELLING for each in caplog.records),
                within_s=60,
                what="the queries are told",
            )
            other.execute("ROLLBACK")

    return away


@contextmanager
def served(queries: Queries) -> Iterator[None]:
    serving = threading.Thread(target=queries.serve)
    serving.start()
    try:
        yield
    finally:
        queries.stop.set()
        serving.join(60)
        queries.join(60)
        queries.stop.clear()
