"""Queries and replays that are under way at the same time share Spark's places: none waits for the end of another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from okmq.analytics.answering import group_of
from okmq.analytics.pools import Pools
from okmq.analytics.process import Analytics
from spark import watching
from streams.access import SYSTEM, Actor, Caller
from streams.models import Query, QueryState, Replay, Stream, Workspace
from streams.services import queries as service
from streams.services import replays as service_of_replays
from tests.okmq.analytics.working import due
from tests.spark.published import Published
from tests.waiting import until

LONG = "SELECT count(*) FROM range(0, 1000000000000, 1, 10000) WHERE hash(id) = 7 AND hash(id) = 8"
"""More tasks than anybody waits for, all of them there from the start."""


def test_each_has_a_pool_of_its_own_and_pools_are_taken_again() -> None:
    pools = Pools("queries")
    with pools.own() as first, pools.own() as second:
        assert (first, second) == ("queries-0", "queries-1")
    with pools.own() as second:
        assert second == "queries-0"
        with pools.own() as third:
            assert third == "queries-1"


def asked(here: Published, sql: str) -> Query:
    return Query.objects.create(
        workspace_id=here.workspace_id, sql=sql, limit=100, streams=[], asked_by="somebody"
    )


@contextmanager
def long_query(analytics: Analytics, here: Published) -> Iterator[Query]:
    """A query whose tasks run, and have not ended within."""
    query = asked(here, LONG)
    answering = threading.Thread(target=analytics.queries.answer_next)
    answering.start()
    until(lambda: watching.tasks_left(group_of(query)), within_s=60, what="its tasks run")
    try:
        yield query
    finally:
        service.query_cancel(Caller(query.workspace, frozenset({"read"}), Actor(query.asked_by)), query)
        answering.join(60)


def pools_of(session: SparkSession) -> set[str]:
    """The names of the pools that Spark keeps."""
    kept: Any = session.sparkContext._jsc.sc().getAllPools()
    return {str(kept.apply(n).name()) for n in range(kept.size())}


@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_long_queries_of_one_workspace_hold_up_no_other(analytics: Analytics, here: Published) -> None:
    other = Workspace.objects.create(name="another")
    serving = threading.Thread(target=analytics.queries.serve)
    serving.start()
    try:
        for _ in range(3):
            asked(here, LONG)
        until(
            lambda: Query.objects.filter(state=QueryState.RUNNING).count() == 2, within_s=60, what="two run"
        )
        small = Query.objects.create(workspace=other, sql="SELECT 1", limit=1, streams=[], asked_by="other")
        until(lambda: Query.objects.get(pk=small.pk).finished_at, within_s=60, what="it is answered")
        states = list(Query.objects.order_by("id").values_list("state", flat=True))
        assert states == [QueryState.RUNNING, QueryState.RUNNING, QueryState.QUEUED, QueryState.SUCCEEDED]
    finally:
        Query.objects.filter(state=QueryState.QUEUED).delete()
        Query.objects.update(cancel=True)
        until(
            lambda: not Query.objects.filter(finished_at=None).exists(), within_s=60, what="they have ended"
        )
        analytics.stop.set()
        serving.join(60)
        analytics.queries.join(60)


@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_a_small_query_is_answered_while_one_of_ten_thousand_tasks_goes_on(
    analytics: Analytics, here: Published, spark: SparkSession
) -> None:
    with long_query(analytics, here) as long:
        for n in range(3):
            small = asked(here, f"SELECT count(*) + {n} FROM range(0, 100, 1, 4)")
            assert analytics.queries.answer_next()
            small.refresh_from_db()
            assert (small.state, small.rows) == (QueryState.SUCCEEDED, f"[[{100 + n}]]")
        long.refresh_from_db()
        assert long.state == QueryState.RUNNING
    assert {each for each in pools_of(spark) if each.startswith("queries")} == {"queries-0", "queries-1"}


@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_a_replay_is_counted_and_published_while_a_query_of_ten_thousand_tasks_goes_on(
    analytics: Analytics, here: Published
) -> None:
    workspace = Workspace.objects.get(pk=here.workspace_id)
    for name in ("a", "b"):
        Stream.objects.create(workspace=workspace, name=name, stream_id=here.stream(name))
    here.numbered(Stream.objects.get(name="a").stream_id, 20)
    due(analytics)
    caller = Caller(workspace, frozenset({"admin"}), SYSTEM)
    with long_query(analytics, here) as long:
        service_of_replays.replay_request(
            caller, source="a", target="b", wanted=service_of_replays.ReplayWanted()
        )
        analytics.replays.work(Replay.objects.get())
        replay = Replay.objects.get()
        assert (replay.state, replay.stored) == ("succeeded", 20)
        long.refresh_from_db()
        assert long.state == QueryState.RUNNING
