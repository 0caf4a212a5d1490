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
import json, os, signal, time
from okmq import env
from okmq.shared_spark import SharedSpark
from pyspark import SparkContext

spark = SharedSpark(env.load())
began = time.monotonic()
session = spark.session()
session.sparkContext._jsc.sc().stop()
told = {"dead": not spark.lives, "died": spark.died_under("a", since=began), "gone": SparkContext._gateway is None}
told["counted"] = spark.session().range(3).count()
began = time.monotonic()
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
told["again"] = [spark.died_under(what, since=began) for what in ("b", "b", "c", "b", "c")]
told["later"] = spark.died_under("d", since=time.monotonic())
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of it in a process of its own."""
    folder: Path = tmp_path_factory.mktemp("shared")
    environ = environment(
        OKMQ_DATA_DIR=str(folder),
        OKMQ_REDIS_URL="unix:///nowhere",
        OKMQ_SPARK_MASTER="local[1]",
        DJANGO_SETTINGS_MODULE="okmq.settings",
    )
    command = [sys.executable, "-c", SCRIPT]
    answer = subprocess.run(
        command, cwd=PROJECT, env=environ, stdout=subprocess.PIPE, check=True, timeout=300
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def test_where_spark_stops_in_a_jvm_that_lives_both_are_replaced(told: dict[str, Any]) -> None:
    assert (told["dead"], told["died"], told["gone"], told["counted"]) == (True, True, True, 3)


def test_what_spark_dies_under_is_worth_another_try_twice(told: dict[str, Any]) -> None:
    assert told["again"] == [True, True, True, False, True]
    assert told["later"] is False
