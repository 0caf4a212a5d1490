"""A query that needs more than the heap ends alone: the process of Spark goes on, and others get their answers."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from okmq.analytics.heap_watch import HeapWatch
from okmq.analytics.process import Analytics
from okmq.analytics.queries import Queries, group_of
from okmq.analytics.shared_spark import SharedSpark
from spark import watching
from spark.query import Course
from streams import store
from streams.log.entries import NewMessage
from streams.models import Query, QueryState, Run, Workspace
from streams.services import history as service_of_runs
from tests.spark.published import Published
from tests.spark.working import work
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

CROSS_JOIN = "SELECT size(collect_list(a.body)) FROM messages a CROSS JOIN messages b"

AT_ONCE = "SELECT size(collect_list(body)) FROM messages CROSS JOIN range(0, 350, 1, 1)"
"""Of 1,000 bodies of 1 kB: a third of the heap, which is written into one value twice as large, and larger again."""


@pytest.fixture
def here(published: Published) -> Published:
    """What is published, in a workspace that the database knows: 1,000 bodies of 1 kB."""
    workspace = Workspace.objects.create(name=published.workspace)
    found = replace(published, workspace_id=workspace.pk)
    body = json.dumps({"text": "x" * 1_000}).encode()
    found.publish(found.stream("large"), [NewMessage(id=f"m{n}", body=body) for n in range(1_000)])
    return found


@pytest.fixture
def analytics(here: Published, tmp_path: Path, settings: Any, spark: SparkSession) -> Iterator[Analytics]:
    """The process's inside, on the store and a history of this test's own."""
    settings.ENV = replace(
        settings.ENV,
        redis_url=here.url,
        data_dir=tmp_path,
        history_url=str(tmp_path / "history"),
        history_every_s=3600,
    )
    store.log.cache_clear()
    yield Analytics(settings.ENV, stop=threading.Event())
    store.log.cache_clear()


def put(here: Published, sql: str) -> Query:
    return Query.objects.create(
        workspace_id=here.workspace_id, sql=sql, limit=100, streams=[], asked_by="somebody"
    )


def answering(queries: Queries) -> threading.Thread:
    thread = threading.Thread(target=queries.answer_next)
    thread.start()
    return thread


def ended(queries: Queries, query: Query) -> Query:
    assert queries.answer_next()
    query.refresh_from_db()
    return query


def spark_pid() -> int:
    return int(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def test_a_query_that_keeps_more_than_the_heap_ends_alone(analytics: Analytics, here: Published) -> None:
    pid = spark_pid()
    large = put(here, CROSS_JOIN)
    first = answering(analytics.queries)
    until(lambda: watching.tasks_left(group_of(large)), within_s=120, what="its tasks run")
    beside = put(here, "SELECT count(*), max(length(body)) FROM messages")
    second = answering(analytics.queries)
    service_of_runs.run_request(jobs=["archive"], requested_by="somebody")
    work(analytics)
    first.join(200)
    second.join(200)
    for each in (large, beside):
        each.refresh_from_db()
    assert large.state == QueryState.FAILED
    assert large.error.startswith("It needed more memory than Spark has here")
    assert "OKMQ_SPARK_MEMORY" in large.error
    assert (beside.state, beside.rows) == (QueryState.SUCCEEDED, "[[1000,1012]]")
    assert list(Run.objects.values_list("job", "state")) == [("archive", "succeeded")]
    assert spark_pid() == pid
    assert not watching.tasks_left(group_of(large))
    assert ended(analytics.queries, put(here, "SELECT count(*) FROM messages")).rows == "[[1000]]"


@pytest.mark.parametrize("sql", [f"SELECT ({CROSS_JOIN})", AT_ONCE])
def test_so_does_one_that_keeps_it_within_another_or_needs_it_at_once(
    analytics: Analytics, here: Published, sql: str
) -> None:
    pid = spark_pid()
    large = ended(analytics.queries, put(here, sql))
    assert (large.state, large.error[:34]) == (QueryState.FAILED, "It needed more memory than Spark h")
    assert spark_pid() == pid
    assert ended(analytics.queries, put(here, "SELECT count(*) FROM messages")).rows == "[[1000]]"


def test_what_keeps_little_is_answered(analytics: Analytics, here: Published) -> None:
    sql = """
    WITH kept AS (SELECT stream, collect_list(id) AS ids, median(bytes) AS middle FROM messages GROUP BY stream)
    SELECT stream, size(ids), middle, (SELECT size(collect_set(offset % 10)) FROM messages),
           (SELECT size(collect_list(m.id)) FROM messages m WHERE m.stream = kept.stream)
    FROM kept WHERE EXISTS (SELECT collect_list(id) FROM messages) AND stream IN (SELECT max(stream) FROM messages)
    """
    found = ended(analytics.queries, put(here, sql))
    assert (found.error, found.rows) == ("", '[["large",1000,1012.0,10,1000]]')


def test_a_query_that_keeps_nothing_is_not_to_blame_beside_one_that_does(analytics: Analytics) -> None:
    watch = HeapWatch(SharedSpark(analytics.env))
    keeping, plain = Course(), Course()
    with watch.over("plain", plain) as other:
        with watch.over("alone", Course()) as third:
            assert not watch.is_innocent(third)
        with watch.over("keeping", keeping) as large:
            keeping.keeps = True
            assert (watch.is_innocent(other), watch.is_innocent(large)) == (True, False)
        assert watch.is_innocent(other)
    with watch.over("later", Course()) as later:
        assert not watch.is_innocent(later)
