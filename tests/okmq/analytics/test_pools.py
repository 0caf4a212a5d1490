"""Queries and replays that are under way at the same time share Spark's places: none waits for the end of another."""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from okmq.analytics.answering import group_of
from okmq.analytics.pools import BESIDE, MOST, Pools, of_lane
from okmq.analytics.process import Analytics
from spark import watching
from streams.access import SYSTEM, Actor, Caller
from streams.models import Query, QueryState, Replay, Run, Stream, Workspace
from streams.services import queries as service
from streams.services import replays as service_of_replays
from tests.okmq.analytics.working import due
from tests.spark.published import Published
from tests.waiting import until

LONG = "SELECT count(*) FROM range(0, 1000000000000, 1, 10000) WHERE hash(id) = 7 AND hash(id) = 8"
"""More tasks than anybody waits for, all of them there from the start."""


def test_the_youngest_comes_first_of_its_rank_and_lanes_before_all() -> None:
    pools = Pools()
    with pools.own() as first, pools.own() as second, pools.own(rank=BESIDE) as beside:
        assert of_lane("rollups") < second < first < beside
        with pools.own() as third:
            assert third < second
    with pools.own() as again:
        assert again == first, "of what has ended the number is taken again"


def test_where_one_goes_on_for_long_numbers_do_not_run_out() -> None:
    pools = Pools()
    with pools.own() as old:
        names = [old]
        for _ in range(3 * MOST):
            with pools.own() as name:
                names.append(name)
    assert len(set(names)) <= MOST + 1
    assert set(names[1:]) == {names[1]}
    with contextlib.ExitStack() as all_of_them:
        taken = [all_of_them.enter_context(pools.own()) for _ in range(MOST + 1)]
        assert len(set(taken)) == MOST + 1


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
def test_long_queries_of_one_workspace_hold_up_no_other_and_no_run(
    analytics: Analytics, here: Published
) -> None:
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
        here.numbered(here.stream("a"), 20)
        due(analytics)
        assert set(Run.objects.values_list("state", flat=True)) == {"succeeded"}
        assert Query.objects.filter(state=QueryState.RUNNING).count() == 2
    finally:
        Query.objects.filter(state=QueryState.QUEUED).delete()
        Query.objects.update(cancel=True)
        until(
            lambda: not any(watching.tasks_left(group_of(each)) for each in Query.objects.all()),
            within_s=60,
            what="they have ended",
        )
        analytics.stop.set()
        serving.join(60)
        analytics.queries.join(60)


@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_a_small_query_is_answered_while_one_of_ten_thousand_tasks_goes_on(
    analytics: Analytics, here: Published, spark: SparkSession
) -> None:
    kept = []
    with long_query(analytics, here) as long:
        for n in range(3):
            small = asked(here, f"SELECT count(*) + {n} FROM range(0, 100, 1, 4)")
            assert analytics.queries.answer_next()
            small.refresh_from_db()
            assert (small.state, small.rows) == (QueryState.SUCCEEDED, f"[[{100 + n}]]")
            kept.append(pools_of(spark))
        long.refresh_from_db()
        assert long.state == QueryState.RUNNING
    assert kept[0] == kept[-1], "pools are taken again"


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
