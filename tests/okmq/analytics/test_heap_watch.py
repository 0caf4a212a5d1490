"""A query that needs more than the heap ends alone: the process of Spark goes on, and others get their answers."""

import json
import threading

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from okmq.analytics.answering import group_of
from okmq.analytics.heap_watch import HeapWatch
from okmq.analytics.process import Analytics
from okmq.analytics.queries import Queries
from okmq.analytics.shared_spark import SharedSpark
from spark import plans, watching
from spark.growth import Keeps
from spark.query import Course
from streams.log.entries import NewMessage
from streams.models import Query, QueryState, Run
from streams.services import history as service_of_runs
from tests.okmq.analytics.working import in_workspace, work
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

CROSS_JOIN = "SELECT size(collect_list(a.body)) FROM messages a CROSS JOIN messages b"

AT_ONCE = "SELECT size(collect_list(body)) FROM messages CROSS JOIN range(0, 350, 1, 1)"
"""Of 1,000 bodies of 1 kB: a third of the heap, which is written into one value twice as large, and larger again."""


@pytest.fixture
def here(published: Published) -> Published:
    """What is published, in a workspace that the database knows: 1,000 bodies of 1 kB."""
    found = in_workspace(published)
    body = json.dumps({"text": "x" * 1_000}).encode()
    found.publish(found.stream("large"), [NewMessage(id=f"m{n}", body=body) for n in range(1_000)])
    return found


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


def test_of_two_that_keep_rows_the_one_that_takes_more_is_ended(
    analytics: Analytics, here: Published
) -> None:
    large = put(here, CROSS_JOIN)
    first = answering(analytics.queries)
    until(lambda: watching.tasks_left(group_of(large)), within_s=120, what="its tasks run")
    small = put(here, "SELECT size(collect_set(length(a.id))) FROM messages a CROSS JOIN messages b")
    second = answering(analytics.queries)
    first.join(200)
    second.join(200)
    for each in (large, small):
        each.refresh_from_db()
    assert (large.state, small.state, small.rows) == (QueryState.FAILED, QueryState.SUCCEEDED, "[[3]]")


def test_what_keeps_little_is_answered(analytics: Analytics, here: Published) -> None:
    sql = """
    WITH kept AS (SELECT stream, collect_list(id) AS ids, median(bytes) AS middle FROM messages GROUP BY stream)
    SELECT stream, size(ids), middle, (SELECT size(collect_set(offset % 10)) FROM messages),
           (SELECT size(collect_list(m.id)) FROM messages m WHERE m.stream = kept.stream)
    FROM kept WHERE EXISTS (SELECT collect_list(id) FROM messages) AND stream IN (SELECT max(stream) FROM messages)
    """
    found = ended(analytics.queries, put(here, sql))
    assert (found.error, found.rows) == ("", '[["large",1000,1012.0,10,1000]]')


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "WITH k AS (SELECT stream, collect_list(offset) AS o FROM messages GROUP BY stream) "
            "SELECT size(a.o) + size(b.o) FROM k a JOIN k b ON a.stream = b.stream",
            "[[2000]]",
        ),
        (
            "SELECT t.n, l.s FROM (VALUES (3), (5)) t(n), "
            "LATERAL (SELECT size(collect_list(offset)) AS s FROM messages WHERE offset <= t.n) l ORDER BY n",
            "[[3,3],[5,5]]",
        ),
        (
            "SELECT n, (SELECT size(collect_list(offset)) FROM messages WHERE offset = n) "
            "FROM (VALUES (3), (5)) t(n) ORDER BY n",
            "[[3,1],[5,1]]",
        ),
        (
            "SELECT size(collect_set(key)), count(DISTINCT offset), count(DISTINCT id) FROM messages "
            "WHERE offset IN (SELECT max(offset) FROM messages UNION ALL SELECT median(2) FROM messages)",
            "[[0,2,2]]",
        ),
        (
            "SELECT * FROM (SELECT stream, offset % 2 AS odd, id FROM messages) "
            "PIVOT (size(collect_list(id)) FOR odd IN (0, 1))",
            '[["large",500,500]]',
        ),
        (
            "SELECT max(size(s)) FROM (SELECT collect_list(offset) OVER (PARTITION BY offset % 10) s FROM messages)",
            "[[100]]",
        ),
        (
            "SELECT stream, o % 3, size(collect_list(o)) FROM (SELECT stream, offset o FROM messages) "
            "GROUP BY ROLLUP (stream, o % 3) HAVING stream IS NULL",
            "[[null,null,1000]]",
        ),
    ],
)
def test_whatever_is_put_around_it(analytics: Analytics, here: Published, sql: str, rows: str) -> None:
    found = ended(analytics.queries, put(here, sql))
    assert (found.error, found.rows) == ("", rows)


def test_who_keeps_less_than_another_beside_it_is_not_to_blame(analytics: Analytics) -> None:
    watch = HeapWatch(SharedSpark(analytics.env))
    keeping = Course()
    with watch.over("plain", Course()) as plain:
        with watch.over("alone", Course()) as other:
            assert not watch.is_innocent(other)
        with watch.over("keeping", keeping) as large:
            keeping.keeps = Keeps.ROWS
            assert (watch.is_innocent(plain), watch.is_innocent(large)) == (True, False)
            with watch.over("many", Course()) as many:
                many.course.keeps = Keeps.MANY
                assert (watch.is_innocent(large), watch.is_innocent(many)) == (True, False)
        assert watch.is_innocent(plain)
    with watch.over("later", Course()) as later:
        assert not watch.is_innocent(later)


@pytest.mark.parametrize(
    ("sql", "keeps"),
    [
        ("SELECT count(*) FROM messages a CROSS JOIN messages b", Keeps.NOTHING),
        ("SELECT stream, collect_list(key) FROM messages GROUP BY stream", Keeps.ROWS),
        ("SELECT stream, (SELECT median(bytes) FROM messages) FROM messages", Keeps.ROWS),
        (CROSS_JOIN, Keeps.MANY),
        ("WITH b AS (SELECT explode(split(body, ',')) e FROM messages) SELECT listagg(e) FROM b", Keeps.MANY),
        ("SELECT mode(e) FROM messages LATERAL VIEW explode(array(1, 2)) t AS e", Keeps.MANY),
        (f"SELECT count(*) FROM messages WHERE offset < ({CROSS_JOIN})", Keeps.MANY),
    ],
)
def test_what_a_query_keeps_is_told_by_its_text(spark: SparkSession, sql: str, keeps: Keeps) -> None:
    assert plans.parse(spark, sql, tables=("messages",)).keeps is keeps
