"""The process as the supervisor starts it: its JVM comes when needed, goes when idle, and never outlives it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from streams.log import bringing, entries, groups, trim
from tests.okmq.analytics.running import AnalyticsProcess
from tests.product import free_port
from tests.spark.jobs import PROJECT
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def process(published: Published, tmp_path: Path) -> Iterator[AnalyticsProcess]:
    running = AnalyticsProcess(tmp_path / "data", published.url)
    yield running
    running.end()


def test_killed_restarted_idle_and_ended(process: AnalyticsProcess, published: Published) -> None:
    stream = published.stream("a")
    process.know(stream)
    published.numbered(stream, 3000)
    process.start()
    until(process.others, within_s=120, what="Spark is started")
    process.send(signal.SIGKILL, within_s=5)
    until(lambda: not process.others(), within_s=10, what="the JVM and its workers end with it")

    process.start()
    until(lambda: process.counted("minute") == 3000, within_s=200, what="everything is counted")
    assert process.ask("select job, error <> '' from streams_run where state = 'failed'") == [("archive", 1)]
    until(lambda: not process.others(), within_s=60, what="Spark is let go when idle")
    assert process.child is not None
    assert process.child.poll() is None

    published.numbered(stream, 500, prefix="later")
    until(lambda: process.busy(TASK, cpu_s=0.1), within_s=120, what="Spark is started again, and works")
    os.kill(process.jvm(), signal.SIGKILL)
    until(lambda: process.counted("day") == 3500, within_s=200, what="what Spark died under is done again")
    assert process.counted("hour") == 3500
    errors = process.ask("select error from streams_run where state = 'failed' order by id")
    assert errors[1:] == [("Spark exited by itself while this ran; it will be rerun.",)]
    published.numbered(stream, 2000, prefix="last")
    until(process.others, within_s=120, what="Spark lives")
    assert process.send(signal.SIGTERM, within_s=5) == 0
    until(lambda: not process.others(), within_s=2, what="nothing is left")


ENDLESS = "SELECT count(*) FROM range(0, 1000000000000, 1, 10000) WHERE hash(id) = 7 AND hash(id) = 8"

# Constant, so that Spark computes it while it plans: there is no job and no task, and nothing hears of a cancelling.
DEAF = f"SELECT '{'a' * 60}c' RLIKE '^(a|aa)+(b)\\\\2?$'"

# The thread that Spark plans and waits on: rows are collected on that of the call, Arrow on one of its own.
COLLECTING, TO_ARROW = "Thread-", "serve-Arrow"

# Those that tasks run on, as Linux cuts their names.
TASK = "Executor task l"


def test_queries_that_hear_nothing_are_ended_with_spark_and_others_go_on(
    process: AnalyticsProcess, published: Published
) -> None:
    stream = published.stream("a")
    process.know(stream)
    process.put(DEAF, DEAF, "SELECT 2")
    process.start()
    until(
        lambda: process.states() == ["running", "running", "queued"],
        within_s=120,
        what="there is no room for a third",
    )
    until(lambda: process.busy(COLLECTING, cpu_s=10) >= 2, within_s=200, what="Spark is at work on both")
    published.numbered(stream, 3000)
    until(lambda: process.ask("select 1 from streams_run"), within_s=30, what="a run is begun meanwhile")
    process.cancel(DEAF)
    until(
        lambda: process.states()[:2] == ["cancelled", "cancelled"],
        within_s=5,
        what="they are cancelled at once",
    )
    until(lambda: process.states()[2] == "succeeded", within_s=90, what="the third is answered")
    until(lambda: process.counted("day") == 3000, within_s=200, what="the run is done, or done again")
    assert "does not end, so Spark is ended" in (process.data_dir / "log").read_text()


def test_java_that_answers_nothing_is_ended_and_started_anew(
    process: AnalyticsProcess, published: Published
) -> None:
    process.put(ENDLESS)
    process.start()
    until(lambda: process.busy("Executor task", cpu_s=1), within_s=200, what="Spark is at work on it")
    first = process.jvm()
    os.kill(first, signal.SIGSTOP)  # as one that only collects garbage
    until(lambda: not Path(f"/proc/{first}").exists(), within_s=120, what="Java is ended")
    until(lambda: process.states() == ["lost"], within_s=60, what="who asked is told")
    process.change("update streams_query set state = 'queued', sql = 'SELECT 2'")
    until(lambda: process.states() == ["succeeded"], within_s=120, what="the next is answered")
    assert "Spark has taken no call" in (process.data_dir / "log").read_text()


def test_a_replay_and_an_erasure_that_spark_dies_under_are_done_again(
    process: AnalyticsProcess, published: Published
) -> None:
    streams = {name: published.stream(name) for name in ("a", "b", "c")}
    for name in ("a", "c"):
        published.numbered(streams[name], 300, key="k")
    condition = DEAF.removeprefix("SELECT ")
    process.store(
        f"Replay.objects.create(workspace=workspace, source='a', source_id={streams['a']!r}, target='b', "
        f"target_id={streams['b']!r}, where={condition!r}, requested_by='somebody')\n"
        f"Erasure.objects.create(workspace=workspace, stream='c', stream_id={streams['c']!r}, key='k.1', "
        "state='failed', requested_by='somebody')\n"
    )
    process.start()
    until(
        lambda: process.ask("select 1 from streams_run where job = 'archive' and state = 'succeeded'"),
        within_s=200,
        what="everything is in the history",
    )
    until(lambda: process.busy(TO_ARROW, cpu_s=2) == 1, within_s=60, what="the replay is counted")
    # What is counted next time ends; this time it does not.
    process.change("update streams_replay set \"where\" = ''")
    process.change("update streams_erasure set state = 'queued'")
    until(
        lambda: process.ask("select 1 from streams_erasure where state <> 'queued'"),
        within_s=60,
        what="the erasure is begun",
    )
    os.kill(process.jvm(), signal.SIGKILL)
    until(
        lambda: (
            process.ask("select state from streams_replay union all select state from streams_erasure")
            == [("succeeded",)] * 2
        ),
        within_s=200,
        what="both are done",
    )
    assert process.ask("select messages, through from streams_erasure") == [(100, 300)]
    assert [row[3:] for row in published.stored(streams["b"])] == [
        row[3:] for row in published.stored(streams["a"])
    ]
    log = (process.data_dir / "log").read_text()
    assert "Replay 1 was cut off, because Spark ended; it is done again." in log


def test_what_the_history_brings_a_group_comes_once_however_often_the_process_is_killed(
    process: AnalyticsProcess, published: Published
) -> None:
    count, kept = 3000, 100
    stream = published.stream("a")
    published.numbered(stream, count)
    published.log.run(groups.group_publish(stream, "g", groups.Settings(max_ack_pending=40), delivered=count))
    generation = published.log.run(bringing.generation(stream, "g"))
    published.stream("a", max_messages=kept)
    published.log.run(trim.apply_limits(stream))
    process.store(
        f"Replay.objects.create(workspace=workspace, source='a', source_id={stream!r}, target='a', "
        f"target_id={stream!r}, group='g', generation={generation}, to_offset={count - kept}, "
        "requested_by='somebody')\n"
    )
    got: list[int] = []

    def takes(upto: int) -> bool:
        found = published.log.run(groups.fetch(stream, "g", limit=10)).deliveries
        published.log.run(groups.ack(stream, "g", "leases", [each.lease for each in found]))
        got.extend(entries.position(each.entry)[0] for each in found)
        return len(got) >= upto

    for upto in (200, 1200):
        process.start()
        until(partial(takes, upto), within_s=200, what="the group gets some")
        process.send(signal.SIGKILL, within_s=5)
    process.start()
    until(partial(takes, count - kept), within_s=200, what="the group gets all of them")
    until(
        lambda: (
            process.ask("select state, stored, duplicates from streams_replay")
            == [("succeeded", count - kept, 0)]
        ),
        what="it is done",
    )
    assert not takes(count)
    assert got == list(range(1, count - kept + 1)), "each once, in order"


def test_a_master_that_does_not_answer_is_told_at_once_and_waited_for(
    process: AnalyticsProcess, published: Published
) -> None:
    master = f"spark://127.0.0.1:{free_port()},localhost:{free_port()}"
    process.environ["OKMQ_SPARK_MASTER"] = master
    stream = published.stream("a")
    published.numbered(stream, 3)
    process.store(
        f"Replay.objects.create(workspace=workspace, source='a', source_id={stream!r}, target='a', "
        f"target_id={stream!r}, requested_by='somebody')\n"
        f"Erasure.objects.create(workspace=workspace, stream='a', stream_id={stream!r}, requested_by='somebody')\n"
        "Query.objects.create(workspace=workspace, sql='SELECT 1', limit=1, streams=[], asked_by='somebody')\n"
    )
    process.start()
    until(lambda: process.states() == ["lost"], within_s=60, what="the query is answered")
    until(
        lambda: process.ask("select 1 from streams_run where job = 'archive' and state = 'failed'"),
        within_s=60,
        what="the run has failed",
    )
    said = process.ask(
        "select error from streams_query union select error from streams_run where error <> ''"
    )
    assert said == [(f"The master of Spark, {master}, does not answer; runs wait until it does.",)]
    log = process.data_dir / "log"
    until(lambda: {"Replay 1 waits", "Erasure 1 waits"} <= set(re.findall(r"\w+ 1 waits", log.read_text())))
    assert "Traceback" not in log.read_text()
    assert not process.ask("select 1 from streams_replay where state <> 'counting'")
    assert not process.ask("select 1 from streams_erasure where state not in ('queued', 'running')")
    doctor = subprocess.run(
        [sys.executable, "manage.py", "okmq_doctor"],
        cwd=PROJECT,
        env=process.environ,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert f"its master {master} does not answer" in doctor.stdout
