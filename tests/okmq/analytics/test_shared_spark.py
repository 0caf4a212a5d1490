"""Spark as the analytics process shares it: what becomes of it when it stops or dies under work."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.jobs import PROJECT, environment

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, signal, threading, time
from pathlib import Path
from okmq import env
from okmq.analytics.causes import readable
from okmq.analytics.shared_spark import SharedSpark
from pyspark import SparkContext
from spark import watching
from spark.session import answers, has_nobody
from tests.waiting import until

spark = SharedSpark(env.load())
began = time.monotonic()
session = spark.session()
session.sparkContext._jsc.sc().stop()
told = {"dead": not spark.lives, "died": spark.died_under("a", since=began), "gone": SparkContext._gateway is None}
told["counted"] = spark.session().range(3).count()
began = time.monotonic()
spark.note_pressure()
try:
    spark.session().sql("SELECT size(collect_list(repeat('x', 10000))) FROM range(10000000)").collect()
except Exception as error:
    told["filled"] = [spark.failed_for_a_query(error, since=began), spark.has_died(since=began), spark.lives]
    began = time.monotonic()
    told["full"] = [spark.failed_for_a_query(error, since=began), spark.has_died(since=began), spark.lives]
    told["other"] = spark.failed_for_a_query(ValueError("no memory"), since=began)
told["counted again"] = spark.session().range(4).count()
pid = SparkContext._gateway.proc.pid
began = time.monotonic()
told["heard"] = [answers(60), spark.lives]
os.kill(pid, signal.SIGSTOP)
spark.end_if_deaf()
told["deaf"] = [Path(f"/proc/{pid}").exists(), spark.has_died(since=began), answers(1)]
held = spark.session()
spark.end_if_deaf()
told["again alive"] = spark.lives
began, pid = time.monotonic(), SparkContext._gateway.proc.pid
os.kill(pid, signal.SIGSTOP)
spark.see_the_end(
    held, group="g", what="It", is_at_work=lambda: True, is_over=lambda: False, stop=threading.Event()
)
told["guarded"] = [Path(f"/proc/{pid}").exists(), spark.was_broken_off(since=began)]
told["after the guard"] = spark.session().range(2).count()
pid = SparkContext._gateway.proc.pid
os.kill(pid, signal.SIGSTOP)
spark.used_at = float("-inf")
spark.release_if_idle()
told["released"] = [Path(f"/proc/{pid}").exists(), spark.session().range(5).count()]
began, held = time.monotonic(), spark.session()
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
try:
    held.range(3).count()
except Exception as error:
    told["asked"] = readable(error)
told["again"] = [spark.died_under(what, since=began) for what in ("b", "b", "c", "b", "c")]
told["later"] = spark.died_under("d", since=time.monotonic())

def starting():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return next((int(pid) for pid in children if b"SparkSubmit" in Path("/proc", pid, "cmdline").read_bytes()), None)

def kill_the_next():
    os.kill(until(starting, what="a JVM is being started"), signal.SIGKILL)

began = time.monotonic()
threading.Thread(target=kill_the_next, daemon=True).start()
try:
    spark.session()
except Exception as error:
    told["said"] = readable(error)
told["unborn"] = [spark.died_under("e", since=began), spark.died_under("e", since=time.monotonic())]
built, looks = threading.Event(), []

def look():
    while not built.is_set():
        looks.append((spark.lives, spark.has_died(since=time.monotonic()), watching.progress("a"), has_nobody()))

looking = threading.Thread(target=look)
looking.start()
told["born"] = spark.session().range(3).count()
built.set()
looking.join()
told["looked"] = [looks[-1], sum(any(look[1:]) for look in looks)]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of it in a process of its own."""
    folder: Path = tmp_path_factory.mktemp("shared") / 'of [us] "all" {here}'
    folder.mkdir()
    environ = environment(
        OKMQ_DATA_DIR=str(folder),
        OKMQ_REDIS_URL="unix:///nowhere",
        OKMQ_SPARK_MASTER="local[1]",
        DJANGO_SETTINGS_MODULE="okmq.settings",
    )
    command = [sys.executable, "-c", SCRIPT]
    answer = subprocess.run(
        command, cwd=PROJECT, env=environ, stdout=subprocess.PIPE, check=True, timeout=380
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def test_where_spark_stops_in_a_jvm_that_lives_both_are_replaced(told: dict[str, Any]) -> None:
    assert (told["dead"], told["died"], told["gone"], told["counted"]) == (True, True, True, 3)


def test_a_run_without_memory_is_done_again_with_the_same_spark_only_where_a_query_held_it(
    told: dict[str, Any],
) -> None:
    assert told["filled"] == [True, False, True]
    assert told["full"] == [False, True, False]
    assert (told["other"], told["counted again"]) == (False, 4)


def test_java_that_takes_no_calls_is_ended(told: dict[str, Any]) -> None:
    assert told["heard"] == [True, True]
    assert told["deaf"] == [False, True, True]
    assert told["again alive"] is True


def test_java_that_answers_nothing_is_ended_while_work_is_to_end(told: dict[str, Any]) -> None:
    assert told["guarded"] == [False, True]
    assert told["after the guard"] == 2


def test_java_that_answers_nothing_is_let_go_of_as_any_other(told: dict[str, Any]) -> None:
    assert told["released"] == [False, 5]


def test_what_spark_dies_under_is_worth_another_try_twice(told: dict[str, Any]) -> None:
    assert told["again"] == [True, True, True, False, True]
    assert told["later"] is False


def test_who_asks_a_spark_that_is_gone_is_told_so(told: dict[str, Any]) -> None:
    assert told["asked"] == "Spark ended by itself while this ran, perhaps for want of memory."


def test_spark_that_dies_while_it_is_being_started_has_died_under_it_too(told: dict[str, Any]) -> None:
    assert told["said"].startswith("Java ended while it was starting Spark")
    assert told["unborn"] == [True, False]
    assert told["born"] == 3


def test_spark_can_be_looked_at_while_it_is_being_built(told: dict[str, Any]) -> None:
    assert told["looked"] == [[True, False, 0.0, False], 0]
