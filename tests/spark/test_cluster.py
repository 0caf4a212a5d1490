"""``OKMQ_SPARK_MASTER``: the jobs on a standalone master with a worker, all on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.history import History
from spark.jobs.settings import JobSettings
from spark.sentences import NO_EXECUTOR
from streams.log import config, trim
from tests.okmq.analytics.running import AnalyticsProcess
from tests.spark.cluster import Cluster, cluster
from tests.spark.jobs import PROJECT, environment, job_process
from tests.spark.published import Published, rows
from tests.waiting import until

pytestmark = pytest.mark.spark


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Cluster]:
    """A master that has a worker with one core."""
    with cluster(tmp_path) as running:
        yield running


@pytest.mark.timeout(600)
def test_a_cluster_archives_everything_once_counts_it_answers_and_publishes_it_again(
    spark: SparkSession,
    published: Published,
    settings_of_job: JobSettings,
    tmp_path: Path,
    standalone: Cluster,
) -> None:
    """A job as a person starts it, then the process that does runs, queries and replays, with a driver of its own."""
    data = tmp_path / "data"
    on_cluster = {"OKMQ_SPARK_MASTER": standalone.address, "OKMQ_SPARK_MEMORY": "512m"}
    process = AnalyticsProcess(data, published.url, OKMQ_SPARK_IDLE="600", **on_cluster)
    here = replace(published, workspace_id=process.workspace_id())
    first, second, target = here.stream("a"), here.stream("b"), here.stream("c", archive=False)
    process.know(first, second)
    here.numbered(first, 3000, key="k")
    here.numbered(second, 200)
    settings = replace(
        settings_of_job, memory="512m", history_url=str(data / "history"), spark_dir=data / "spark"
    )
    job = job_process("archive", settings, tmp_path / "log", master=standalone.address)
    try:
        assert job.wait(timeout=300) == 0, (tmp_path / "log").read_text()
    finally:
        job.kill()
        job.wait()
    found = History(spark, settings.history_url).messages()
    assert rows(found) == here.stored(first, second)
    assert here.log.run(config.archived_of([first, second])) == {first: 3000, second: 200}
    assert any((tmp_path / "work").iterdir())  # an executor of the worker did it, not the driver

    of_first = here.stored(first)
    here.log.run(trim.purge(first, below=2001))  # from here on the history alone has them
    here.numbered(second, 40, prefix="later")
    process.put(
        "SELECT stream, count(*), sum(bytes), count(DISTINCT key) FROM messages WHERE stream <> 'c' "
        "GROUP BY stream ORDER BY stream"
    )
    process.store(
        f"Replay.objects.create(workspace=workspace, source='a', source_id={first!r}, target='c', "
        f"target_id={target!r}, requested_by='somebody')\n"
    )
    process.start()
    try:
        until(lambda: process.states() == ["succeeded"], within_s=200, what="the query is answered")
        until(lambda: process.counted("day") == 3240, within_s=200, what="all is archived and counted")
        until(
            lambda: process.ask("select state from streams_replay") == [("succeeded",)],
            within_s=200,
            what="the replay is published",
        )
    finally:
        process.end()
    ((answer,),) = process.ask("select rows from streams_query")
    assert json.loads(str(answer)) == [
        ["a", 3000, sum(row[7] for row in of_first), 3],
        ["b", 240, sum(row[7] for row in here.stored(second)), 0],
    ]
    assert [row[3:] for row in here.stored(target)] == [row[3:] for row in of_first]
    assert process.ask("select job, error from streams_run where state = 'failed'") == []
    assert len(list((tmp_path / "work").iterdir())) == 2, "each driver had an executor of the worker"


DEAF = """
import os, sys, threading
from pathlib import Path
from py4j.protocol import Py4JError, Py4JJavaError
from spark import sentences, session, watching
from spark.session import SessionSettings
from tests.waiting import until

spark = session.build(SessionSettings(folder=Path(sys.argv[2]), master=sys.argv[1], memory="512m", host=sys.argv[3]))
spark.range(1).selectExpr("concat(repeat('a', 60), 'c') AS t").write.parquet(sys.argv[2] + "/long")
slow = spark.read.parquet(sys.argv[2] + "/long").where(r"t RLIKE '^(a|aa)+(b)\\\\2?$'")

def ask():
    spark.sparkContext.setJobGroup("deaf", "deaf", interruptOnCancel=True)
    try:
        slow.count()
    except Py4JError:
        print("cancelled", flush=True)

asking = threading.Thread(target=ask)
asking.start()
tracker = spark.sparkContext.statusTracker()
active = lambda: [info for each in tracker.getActiveStageIds() if (info := tracker.getStageInfo(each))]
until(lambda: any(info.numActiveTasks for info in active()), within_s=60, what="the task has begun")
print("begun", flush=True)
sys.stdin.readline()
watching.cancel("deaf")
asking.join()
print(spark.range(7).count())

def die(rows):
    executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(executor), 9)
    yield from rows

try:
    spark.range(1).mapInArrow(die, "id long").collect()
except Py4JJavaError as error:
    print(sentences.reason(error))
session.end()
"""


def test_a_task_that_hears_nothing_gives_its_core_back_and_a_lost_executor_is_told(
    tmp_path: Path, standalone: Cluster
) -> None:
    """From a driver at an address that is not the executor's own loopback."""
    command = [sys.executable, "-c", DEAF, standalone.address, str(tmp_path / "spark"), "127.0.0.2"]
    environ = environment(PYSPARK_SUBMIT_ARGS="--conf spark.task.maxFailures=1 pyspark-shell")
    asking = subprocess.Popen(
        command, cwd=PROJECT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "begun\n"
        before = cpu_s(standalone.executors())
        until(
            lambda: cpu_s(standalone.executors()) > before + 5,
            within_s=100,
            what="nothing else is left to do for it",
        )
        said, _ = asking.communicate("cancel it\n", timeout=100)
    finally:
        asking.kill()
        asking.wait()
    assert said.splitlines() == ["cancelled", "7", NO_EXECUTOR]


STRANDED = """
import os, sys, threading, time
from okmq import env
from okmq.analytics import shared_spark
from okmq.supervision.masters import MasterAway
from tests.waiting import until

shared_spark.STRANDED_S = 15.0
spark = shared_spark.SharedSpark(env.load())
print(spark.session().range(3).count(), flush=True)
sys.stdin.readline()

def work():
    tries = 0
    while True:
        tries, began = tries + 1, time.monotonic()
        try:
            with spark.in_use():
                print(spark.session().range(7).count(), flush=True)
            return
        except MasterAway:
            print("away", flush=True)
            return
        except Exception:
            print("stranded" if spark.was_stranded(since=began) else "died", flush=True)
            assert spark.died_under("work", since=began)

def work_is_done():
    working = threading.Thread(target=work)
    working.start()
    until(lambda: spark.end_if_stranded() or not working.is_alive(), within_s=200, what="the work is done")

work_is_done()
shared_spark.STRANDED_S = 600.0
sys.stdin.readline()
work_is_done()
spark.end()
"""


def test_a_cluster_that_was_started_anew_is_found_again_and_one_that_has_gone_is_told(
    tmp_path: Path, standalone: Cluster
) -> None:
    environ = environment(
        OKMQ_DATA_DIR=str(tmp_path / "data"),
        OKMQ_REDIS_URL="unix:///nowhere",
        OKMQ_SPARK_MASTER=standalone.address,
        OKMQ_SPARK_MEMORY="512m",
        DJANGO_SETTINGS_MODULE="okmq.settings",
    )
    command = [sys.executable, "-c", STRANDED]
    asking = subprocess.Popen(
        command, cwd=PROJECT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "3\n"
        assert asking.stdin is not None
        standalone.start_anew()
        asking.stdin.write("go on\n")
        asking.stdin.flush()
        assert [asking.stdout.readline() for _ in range(2)] == ["stranded\n", "7\n"]
        standalone.end()
        said, _ = asking.communicate("go on\n", timeout=250)
    finally:
        asking.kill()
        asking.wait()
    assert said.split() == ["stranded", "away"]


def cpu_s(pids: Iterable[int]) -> float:
    """Processor time that processes have used together."""
    used = 0
    for pid in pids:
        used += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return used / os.sysconf("SC_CLK_TCK")
