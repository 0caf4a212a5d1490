"""Runs: taken, done, counted, failed with a reason, and never twice."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.models import Sum
from django.utils import timezone
from pyspark.sql import SparkSession

from okmq.analytics import rollups
from okmq.analytics.causes import readable
from okmq.analytics.lanes import Session
from okmq.analytics.process import Analytics, jobs_with_work
from okmq.analytics.shared_spark import SharedSpark
from okmq.analytics.writing_history import MOST_TRIES
from spark import schemas, tables
from spark.files import Files
from spark.history import History
from spark.jobs import archive, rewrite, standing
from spark.positions import CHECKPOINT
from streams import selectors, store
from streams.log import config, dead_letters, groups, keys, stats, trim
from streams.log.client import AsyncLog
from streams.log.entries import NewMessage
from streams.log.errors import StoreUnavailable
from streams.models import (
    Erasure,
    Event,
    Group,
    Query,
    Rollup,
    RollupPosition,
    Run,
    StandingRollup,
    Stream,
    Workspace,
)
from streams.models.history import Job
from streams.services import history as service
from streams.services import queries
from streams.services.removals import removals_record
from streams.upkeep import retention
from tests.okmq.analytics.working import due, inside, known, work
from tests.spark.crashes import NOT_NOTED, Crash
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def analytics(published: Published, tmp_path: Path, settings: Any) -> Iterator[Analytics]:
    """The process's inside, on the store and a history of this test's own."""
    with inside(published, settings, tmp_path) as analytics:
        yield analytics


def runs() -> list[tuple[str, str]]:
    return list(Run.objects.order_by("id").values_list("job", "state"))


def totals(step: str) -> tuple[int, int]:
    found = Rollup.objects.filter(step=step).aggregate(messages=Sum("messages"), bytes=Sum("bytes"))
    return found["messages"], found["bytes"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_schedule_archives_and_counts_what_is_new_and_only_that(
    analytics: Analytics, published: Published
) -> None:
    stream = known(published, "a")
    for prefix, count in (("first", 300), ("second", 100)):
        published.numbered(stream, count, prefix=prefix)
        due(analytics)
        due(analytics)
    rows = published.stored(stream)
    expected = (400, sum(row[7] for row in rows))
    assert runs() == [("archive", "succeeded"), ("rollup", "succeeded")] * 2
    assert [run.counts["messages"] for run in Run.objects.order_by("id")] == [300, 300, 100, 100]
    assert [totals(step) for step in ("minute", "hour", "day")] == [expected] * 3
    position = RollupPosition.objects.get(stream_id=stream)
    assert position.offset == 400
    assert position.fresh_to is not None
    assert round(position.fresh_to.timestamp() * 1000) == rows[-1][2]
    of_days = Rollup.objects.filter(step="day")
    assert {each.messages for each in of_days} == {each.looked_at for each in of_days}
    assert sum(each.ids or 0 for each in of_days) == 400
    assert max(each.size_max or 0 for each in of_days) == max(row[7] for row in rows)
    published.numbered(stream, 3, prefix="third")
    due(analytics)
    due(analytics)
    newest = Rollup.objects.filter(step="day").order_by("start").last()
    assert newest is not None
    assert (newest.messages_unscanned, newest.look_run) == (0, Run.objects.order_by("id").last())


def test_a_run_on_demand_with_nothing_new_needs_no_spark(
    analytics: Analytics, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: SharedSpark) -> SparkSession:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(SharedSpark, "session", refuse)
    published.stream("empty")
    service.run_request(requested_by="somebody")
    due(analytics)
    assert runs() == [("archive", "succeeded"), ("rollup", "succeeded")]


def test_a_history_that_may_be_another_than_the_log_was_told_of_is_looked_into(
    analytics: Analytics, published: Published
) -> None:
    folder = analytics.env.data_dir
    stream = published.stream("restored")
    published.numbered(stream, 5)
    published.log.run(config.archived_set(stream, 5))
    assert jobs_with_work(folder) == [Job.ARCHIVE, Job.ROLLUP]
    (folder / "spark" / CHECKPOINT).mkdir(parents=True)
    assert Job.ARCHIVE not in jobs_with_work(folder)


def test_of_a_stream_that_the_database_does_not_have_nothing_is_to_be_counted(
    analytics: Analytics, published: Published
) -> None:
    stream = published.stream("left")
    published.numbered(stream, 5)
    published.log.run(config.archived_set(stream, 5))
    assert not rollups.have_work()
    assert known(published, "left") == stream
    assert rollups.have_work()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_failed_run_says_why_and_the_next_one_does_its_work(
    analytics: Analytics, published: Published, tmp_path: Path
) -> None:
    published.numbered(known(published, "a"), 10)
    good = analytics.spark.env
    (tmp_path / "file").write_text("in the way")
    analytics.spark.env = replace(good, history_url=str(tmp_path / "file" / "history"))
    due(analytics)
    failed = Run.objects.get(job="archive")
    assert failed.state == "failed"
    assert "file" in failed.error
    assert "\n" not in failed.error
    analytics.spark.env = good
    due(analytics)
    assert runs()[-2:] == [("archive", "succeeded"), ("rollup", "succeeded")]
    assert totals("day")[0] == 10


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_that_finds_a_file_gone_names_it_and_no_folder_of_the_machine(
    analytics: Analytics, published: Published, tmp_path: Path
) -> None:
    published.numbered(known(published, "a"), 10)
    for job in ("archive", "rollup"):
        (run,) = service.run_request(jobs=[job], requested_by="somebody")
        work(analytics)
        for file in tmp_path.glob("history/workspace*/**/*.parquet"):
            file.unlink()
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.error.startswith("The history lacks offsets 1 to 10 of a stream: its file workspace_id=")
    assert str(tmp_path) not in run.error


def test_a_run_that_a_crash_cut_off_is_marked_and_done_again(
    analytics: Analytics, published: Published
) -> None:
    Run.objects.create(job="rollup", state="running", requested_by="schedule")
    serving = threading.Thread(target=analytics.serve)
    serving.start()
    until(lambda: Run.objects.filter(state="succeeded").exists(), what="the run is done again")
    analytics.stop.set()
    serving.join(10)
    cut_off, again = Run.objects.order_by("id")
    assert (cut_off.state, again.job, again.state) == ("failed", "rollup", "succeeded")
    assert cut_off.error == service.INTERRUPTED


def test_the_archive_goes_on_while_a_rollup_takes_its_time(analytics: Analytics) -> None:
    is_over = threading.Event()

    def rollup(run: Run, session: Session) -> dict[str, int]:
        assert is_over.wait(60)
        return {}

    (_, counting) = analytics.lanes
    counting.jobs = {Job.ROLLUP: rollup}
    service.run_request(jobs=["rollup"], requested_by="somebody")
    serving = threading.Thread(target=analytics.serve)
    serving.start()
    until(lambda: Run.objects.filter(state="running").exists(), what="the rollup is begun")
    service.run_request(requested_by="somebody")
    until(lambda: Run.objects.filter(state="succeeded").exists(), what="the archive is done")
    assert runs() == [("rollup", "running"), ("archive", "succeeded"), ("rollup", "queued")]
    is_over.set()
    until(lambda: not Run.objects.exclude(state="succeeded").exists(), what="the rollups are done")
    analytics.stop.set()
    serving.join(10)


def test_a_query_that_a_crash_cut_off_is_told_so(analytics: Analytics) -> None:
    workspace = Workspace.objects.create(name="cut-off")
    query = Query.objects.create(
        workspace=workspace, sql="SELECT 1", limit=1, asked_by="somebody", state="running"
    )
    serving = threading.Thread(target=analytics.serve)
    serving.start()
    until(lambda: Query.objects.get(pk=query.pk).is_finished, what="its end is told")
    analytics.stop.set()
    serving.join(10)
    query.refresh_from_db()
    assert (query.state, query.error) == ("lost", queries.LOST)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("boom"), "boom"),
        (ValueError(), "ValueError"),
        (
            RuntimeError(
                "[STREAM_FAILED] Query terminated\nTraceback (most recent call last):\n"
                '  File "x.py", line 1, in f\nspark.options.OptionError: No such thing.\n\tat a.b.C(D.scala:1)'
            ),
            "OptionError: No such thing.",
        ),
        (
            RuntimeError(
                "py4j.protocol.Py4JJavaError: An error occurred while calling o1.parquet.\n"
                ": java.io.IOException: outer\n\tat a.b.C(D.scala:1)\nCaused by: java.io.IOException: Disk is full\n"
            ),
            "IOException: Disk is full",
        ),
        (
            RuntimeError(
                "py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.\n"
                ": org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: Broken pipe\n"
            ),
            "A Python process of Spark ended while this ran, perhaps for want of memory.",
        ),
        (
            RuntimeError(
                "[STREAM_FAILED] Query [id = 47702057-c0ba, runId = 3e80c5a1-9f4e] terminated with exception: "
                "Python worker failed to connect back. SQLSTATE: XXKST"
            ),
            "A Python process of Spark did not begin in time, as on a busy machine.",
        ),
        (
            RuntimeError(
                "[STREAM_FAILED] Query [id = 47702057-c0ba, runId = 3e80c5a1-9f4e] terminated with exception: "
                "The disk is full. SQLSTATE: XXKST"
            ),
            "The disk is full.",
        ),
        (RuntimeError("x" * 2000), "x" * 500),
    ],
)
def test_an_error_becomes_a_sentence(error: Exception, sentence: str) -> None:
    assert readable(error) == sentence


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_spark_was_away_too_long_to_get_is_an_event_and_a_gap_in_the_history(
    analytics: Analytics, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour without Spark, by the setting of the hold; then it comes back and goes on behind the gap."""
    workspace, _ = Workspace.objects.get_or_create(name="default")
    stream_id = published.stream("late", max_messages=10)
    stream = Stream.objects.create(workspace=workspace, name="late", stream_id=stream_id, max_messages=10)
    published.numbered(stream_id, 300)

    def swept() -> int:
        """What the stream physically holds after the worker's next turn."""

        async def turn() -> None:
            log = AsyncLog(published.url)
            await retention.tend(log, [stream_id])
            await log.close()

        asyncio.run(turn())
        removals_record(published.log.run(stats.inspect_many([stream_id])))
        return int(published.log.client.execute_command("XLEN", keys.log(stream_id)))

    assert [swept(), swept()] == [300, 300], "the history may still come"
    monkeypatch.setattr(trim, "HOLD_FOR_HISTORY_MS", 0)
    assert swept() == 10
    published.numbered(stream_id, 5, prefix="later")
    due(analytics)
    assert runs() == [("archive", "succeeded"), ("rollup", "succeeded")]
    assert totals("day")[0] == 15
    (event,) = Event.objects.filter(kind="history.gap")
    assert event.summary == "290 messages of late were removed before the history had them."
    assert [(gap.messages, gap.time) for gap in selectors.history_gaps(stream)] == [(290, event.time)]
    assert selectors.history_totals(stream)[0] == 15


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_only_another_history_had_is_an_event(analytics: Analytics, published: Published) -> None:
    """As with a disk that was not mounted for a run and is back."""
    workspace, _ = Workspace.objects.get_or_create(name="default")
    stream_id = published.stream("moved")
    Stream.objects.create(workspace=workspace, name="moved", stream_id=stream_id)
    published.numbered(stream_id, 100)
    due(analytics)
    history = Path(analytics.env.history_url)
    away = history.rename(history.with_name("away"))
    published.numbered(stream_id, 10, prefix="meanwhile")
    due(analytics)
    published.log.run(trim.purge(stream_id, keep=5))
    shutil.rmtree(history)
    away.rename(history)
    published.numbered(stream_id, 5, prefix="back")
    due(analytics)
    assert {run.state for run in Run.objects.all()} == {"succeeded"}
    (event,) = Event.objects.filter(kind="history.gap")
    assert event.after == {"messages": 5, "first": 101, "last": 105}
    assert event.summary == (
        "The history is another one than that to which offsets 101 to 105 of moved had gone, and the stream no longer "
        "holds them."
    )


def erasure_of(published: Published, stream_id: str, **wanted: Any) -> Erasure:
    workspace, _ = Workspace.objects.get_or_create(name=published.workspace)
    return Erasure.objects.create(
        workspace=workspace, stream="a", stream_id=stream_id, requested_by="somebody", **wanted
    )


@pytest.mark.spark
def test_small_files_are_put_together_and_what_is_erased_is_seen_by_nobody_who_asks_next(
    spark: SparkSession,
    analytics: Analytics,
    published: Published,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(rewrite, "LEAST_FILES", 2)
    stream = published.stream("a")
    settings, known = analytics.spark.settings(), analytics.spark.batches()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    workspace, _ = Workspace.objects.get_or_create(name=published.workspace)
    there = Stream.objects.create(workspace=workspace, name="a", stream_id=stream)
    for batch_id, start in enumerate((0, 30)):
        rows = [
            (workspace.pk, stream, "a", n, at, f"m{n}", f"k.{n % 3}", None, "1", 1)
            for n in range(start + 1, start + 31)
        ]
        History(spark, settings.history_url).append(
            spark.createDataFrame(rows, schemas.MESSAGES).coalesce(1),
            query="q",
            batch_id=batch_id,
            start={stream: start},
            end={stream: start + 30},
        )
    published.log.run(config.archived_set(stream, 60))

    def asked() -> list[int]:
        registered = [each for each in published.log.run(config.streams()) if each.stream_id == stream]
        found = tables.messages(spark, settings, registered, known).select("offset").collect()
        return sorted(row.offset for row in found)

    analytics.lanes[0]._compact_soon_where_needed(lambda: spark)
    (queued,) = service.run_request(jobs=["compact"], requested_by="somebody")
    assert queued.requested_by == "schedule"  # it was asked for already
    work(analytics)
    queued.refresh_from_db()
    assert (queued.state, queued.counts) == ("succeeded", {"messages": 60, "files": 2, "into": 1})
    assert asked() == list(range(1, 61))
    erasure = erasure_of(published, stream, key="k.1")
    of_one = erasure_of(published, stream, offset=2)
    with NOT_NOTED.armed(), pytest.raises(Crash):
        analytics.lanes[0].step()
    analytics.lanes[0].begin_again()
    work(analytics)
    erasure.refresh_from_db()
    assert (erasure.state, erasure.messages, erasure.through, erasure.key) == ("succeeded", 20, 60, "")
    told = Event.objects.filter(kind="history.erasure_done", after__erasure=erasure.pk, after__messages=20)
    assert told.count() == 1
    of_one.refresh_from_db()
    assert (of_one.state, of_one.messages, of_one.through) == ("succeeded", 1, 60)
    assert asked() == [n for n in range(3, 61) if n % 3 != 1]
    rewrites = sum(batch.is_rewrite for batch in History(spark, settings.history_url).newest_first())
    assert rewrites == 2, "of the compaction, and one for both erasures"
    for messages in (0, 39):  # what is there is not meant, until it is deleted
        erasure = erasure_of(published, "")
        work(analytics)
        erasure.refresh_from_db()
        assert (erasure.state, erasure.messages) == ("succeeded", messages)
        Stream.objects.filter(pk=there.pk).delete()
    assert asked() == []
    Files(spark, settings.history_url).write("_log/HEAD", "nothing")
    for died_at, why in ((float("-inf"), "nothing"), (float("inf"), "Spark ended by itself each time")):
        analytics.spark._died_at = died_at
        erasure = erasure_of(published, stream, offset=3)
        work(analytics)
        erasure.refresh_from_db()
        assert (erasure.state, erasure.messages) == ("failed", None)
        assert why in erasure.error
        assert caplog.text.count(f"Erasure {erasure.pk} is done again") == MOST_TRIES - 1


@pytest.mark.spark
def test_what_rewrites_the_history_reads_of_its_log_only_what_is_new(
    spark: SparkSession, analytics: Analytics, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "LEAST_FILES", 2)
    stream = published.stream("a")
    for prefix in ("first", "second"):
        published.numbered(stream, 10, prefix=prefix, key="k")
        archive.archive(spark, analytics.spark.settings())
    history = History(spark, analytics.spark.settings().history_url)
    analytics.spark.batches().refresh(history)
    read, real = list[str](), Files.read

    def noting(files: Files, path: str) -> str | None:
        read.append(path)
        return real(files, path)

    monkeypatch.setattr(Files, "read", noting)
    service.run_request(jobs=["compact"], requested_by="somebody")
    erasure_of(published, stream, key="k.1")
    erasure_of(published, "")
    work(analytics)
    assert runs() == [("compact", "succeeded")]
    assert set(Erasure.objects.values_list("state", flat=True)) == {"succeeded"}
    assert "_log/000000000003.json" in read
    assert "_log/000000000001.json" not in read


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_erasure_waits_for_no_run_that_was_asked_for_after_it(
    analytics: Analytics, published: Published
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5)
    lane = analytics.lanes[0]

    def states() -> list[str]:
        of_runs = Run.objects.order_by("id").values_list("state", flat=True)
        return [*of_runs, *Erasure.objects.values_list("state", flat=True)]

    service.run_request(jobs=["archive"], requested_by="somebody")
    erasure_of(published, stream, offset=3)
    assert lane.step()
    assert states() == ["succeeded", "queued"]
    service.run_request(jobs=["archive"], requested_by="schedule")
    assert lane.step()
    assert states() == ["succeeded", "queued", "succeeded"], "the second run waits, the erasure is done"
    assert lane.step()
    assert states() == ["succeeded"] * 3


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_erasure_waits_for_a_store_that_is_away(
    analytics: Analytics, published: Published, settings: Any, tmp_path: Path
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 20)
    erasure = erasure_of(published, stream, offset=3)
    for url, refused in ((f"unix://{tmp_path}/nobody.sock", MOST_TRIES), (published.url, 0)):
        settings.ENV = replace(settings.ENV, redis_url=url)
        store.log.cache_clear()
        for _ in range(refused):
            with pytest.raises(StoreUnavailable):
                analytics.lanes[0].step()
            analytics.lanes[0].begin_again()
    work(analytics)
    erasure.refresh_from_db()
    assert (erasure.state, erasure.messages, erasure.through) == ("succeeded", 1, 20)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_erasure_reaches_what_a_limit_has_hidden_and_the_history_has_not_got_yet(
    analytics: Analytics, published: Published, spark: SparkSession
) -> None:
    stream = published.stream("a", max_messages=5)
    published.publish(stream, [NewMessage(id="person", body=b"1", key="their.name")])
    published.numbered(stream, 20, key="k")
    erasure = erasure_of(published, stream, key="their.name")
    work(analytics)
    erasure.refresh_from_db()
    assert (erasure.state, erasure.messages, erasure.through) == ("succeeded", 1, 21)
    service.run_request(requested_by="somebody")
    work(analytics)
    history = History(spark, analytics.spark.settings().history_url)
    assert sorted(row.offset for row in history.messages().collect()) == list(range(2, 22))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_erasure_reaches_the_dead_letters_of_all_groups(
    analytics: Analytics, published: Published
) -> None:
    stream = published.stream("a")
    named = [NewMessage(id=f"m{n}", body=b"1", key="their.name") for n in range(5)]
    published.publish(stream, [*named, NewMessage(id="other", body=b"1", key="k")])
    workspace, _ = Workspace.objects.get_or_create(name=published.workspace)
    there = Stream.objects.create(workspace=workspace, name="a", stream_id=stream)
    for name in ("one", "other"):
        Group.objects.create(stream=there, name=name)
        published.log.run(groups.group_publish(stream, name, groups.Settings(), delivered=0))
        published.log.run(groups.fetch(stream, name, limit=10))
        published.log.run(groups.term(stream, name, "offsets", list(range(1, 7)), reason="bad"))
    published.log.run(dead_letters.replay(stream, "one", [2]))
    published.delete(stream, range(1, 6))
    wanted = [erasure_of(published, stream, offset=1), erasure_of(published, stream, key="their.name")]
    work(analytics)
    for erasure in wanted:
        erasure.refresh_from_db()
    assert [(each.state, each.dead_letters) for each in wanted] == [("succeeded", 2), ("succeeded", 8)]
    for name in ("one", "other"):
        assert [each.offset for each in published.log.run(dead_letters.page(stream, name))] == [6]
        assert not published.log.run(groups.fetch(stream, name, limit=10)).deliveries
    told = Event.objects.filter(kind="history.erasure_done", stream="a").order_by("id")
    assert [event.after["dead_letters"] for event in told if event.after] == [2, 8]


@pytest.fixture
def metrics(published: Published) -> Stream:
    """The stream of samples, as the installation makes it."""
    workspace, _ = Workspace.objects.get_or_create(name=published.workspace)
    stream_id = published.stream("_metrics", internal=True, archive=False)
    return Stream.objects.create(
        workspace=workspace, name="_metrics", stream_id=stream_id, internal=True, archive=False
    )


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_says_live_how_many_of_sparks_stages_and_tasks_are_done(
    analytics: Analytics, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_OFFSETS", 200)  # ten micro-batches, each with stages of its own
    published.numbered(known(published, "a"), 2000)
    (run,) = service.run_request(jobs=["archive"], requested_by="somebody")
    seen: list[tuple[int, int, int, int]] = []
    stop = threading.Event()
    watching = threading.Thread(target=look_at, args=(run.pk, seen, stop))
    watching.start()
    try:
        work(analytics)
    finally:
        stop.set()
        watching.join()
    run.refresh_from_db()
    assert run.state == "succeeded"
    assert run.stages_done == run.stages > 10
    assert run.tasks_done == run.tasks >= run.stages
    under_way = [each for each in seen if 0 < each[0] < run.stages]
    assert under_way, "told while it ran"
    assert all(done <= stages and tasks_done <= tasks for stages, done, tasks, tasks_done in seen)
    assert seen == sorted(seen), "only ever more"
    # What comes after it is none of its work.
    service.run_request(jobs=["rollup"], requested_by="somebody")
    work(analytics)
    first, second = Run.objects.order_by("id").values_list("stages", flat=True)
    assert first == run.stages
    assert second > 0


def look_at(run_id: int, seen: list[tuple[int, int, int, int]], stop: threading.Event) -> None:
    """Read what is told of a run that is under way, again and again."""
    figures = ("stages", "stages_done", "tasks", "tasks_done")
    try:
        while not stop.wait(0.05):
            seen += Run.objects.filter(pk=run_id, state="running").values_list(*figures)
    finally:
        connections.close_all()


def sampled(published: Published, metrics: Stream, *, at_ms: int, redelivered: int) -> None:
    group = {"lag": 3, "lag_seconds": 1.5, "redelivered": redelivered}
    body = {"at": at_ms, "streams": {}, "groups": {"stood-in-run": {"g": group}}}
    message = NewMessage(id=f"{at_ms}", body=json.dumps(body).encode())
    published.publish(metrics.stream_id, [message])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_counts_how_groups_stood_each_sample_once(
    analytics: Analytics, published: Published, metrics: Stream
) -> None:
    Stream.objects.create(workspace=metrics.workspace, name="s", stream_id="stood-in-run")
    at_ms = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    for n, redelivered in enumerate((2, 5)):
        sampled(published, metrics, at_ms=at_ms + n, redelivered=redelivered)
        (run,) = service.run_request(jobs=["rollup"], requested_by="somebody")
        work(analytics)
        run.refresh_from_db()
        assert (run.state, run.counts["samples"]) == ("succeeded", 3)
    (row,) = StandingRollup.objects.filter(stream_id="stood-in-run", step="day")
    assert (row.group, row.samples, row.redelivered, row.lag_ms_max) == ("g", 2, 5, 1500)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_samples_that_come_while_a_run_counts_are_left_to_the_next(
    analytics: Analytics, published: Published, metrics: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def beside(*args: Any, **kwargs: Any) -> standing.Standing | None:
        looks.append(kwargs["counted"])
        sampled(published, metrics, at_ms=int(time.time() * 1000) + len(looks), redelivered=0)
        return look(*args, **kwargs)

    look = standing.standing
    monkeypatch.setattr(standing, "standing", beside)
    monkeypatch.setattr(standing, "RECORDS_AT_ONCE", 2)
    for n in range(3):
        sampled(published, metrics, at_ms=n, redelivered=0)
    (run,) = service.run_request(jobs=["rollup"], requested_by="somebody")
    work(analytics)
    run.refresh_from_db()
    assert (run.state, looks) == ("succeeded", [0, 2])


@pytest.mark.usefixtures("analytics")
def test_samples_alone_are_worth_a_run_every_half_hour(published: Published, metrics: Stream) -> None:
    now_ms = int(time.time() * 1000)
    assert not rollups.samples_are_due()
    sampled(published, metrics, at_ms=now_ms, redelivered=0)
    assert not rollups.samples_are_due(), "the first of them may wait, too"
    position = RollupPosition.objects.create(
        stream_id=metrics.stream_id, fresh_to=timezone.now() - rollups.SAMPLES_EVERY
    )
    assert rollups.samples_are_due()
    position.offset = 1
    position.save()
    assert not rollups.samples_are_due(), "there is nothing new"
