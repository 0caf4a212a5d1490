"""The log says what failed in Spark, and nothing of the value that is at fault: it may be a body."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from okmq.analytics.causes import kinds
from okmq.analytics.process import note_crash
from streams.log.entries import NewMessage
from tests.okmq.analytics.running import AnalyticsProcess
from tests.okmq.analytics.test_reasons import BODY, CAST, SECRET
from tests.spark.published import Published
from tests.waiting import until

pytestmark = pytest.mark.spark

ZONE = "from_utc_timestamp(timestamp, body) > timestamp"
"""Java says what is no time zone, in words that Spark passes on."""


def test_an_error_of_java_is_logged_by_its_kind_alone(spark: SparkSession) -> None:
    of_body = spark.createDataFrame([(BODY.decode(),)], "body string").selectExpr("format_number(1.5, body)")
    with pytest.raises(Py4JJavaError) as raised:
        of_body.collect()
    assert SECRET in str(raised.value)
    said = kinds(raised.value)
    assert said.startswith("Py4JJavaError, SparkException, IllegalArgumentException (test_logged.py:")
    assert SECRET not in said


def test_a_thread_that_crashes_says_which_and_nothing_of_the_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threading, "excepthook", note_crash)

    def crash() -> None:
        raise ValueError(SECRET)

    thread = threading.Thread(target=crash, name="of the history")
    thread.start()
    thread.join()
    (said,) = caplog.messages
    assert said.startswith("The thread of the history crashed: ValueError (threading.py:")
    assert SECRET not in said


@pytest.mark.timeout(600)
def test_the_log_says_what_failed_and_no_body(published: Published, tmp_path: Path) -> None:
    process = AnalyticsProcess(tmp_path / "data", published.url)
    published = replace(published, workspace_id=process.workspace_id())
    stream_id = published.stream("a")
    published.publish(stream_id, [NewMessage(id="m1", body=BODY)])
    for where in (CAST, ZONE):
        process.put(f"SELECT 1 FROM messages WHERE {where}")
        process.store(
            f"Replay.objects.create(workspace=workspace, source='a', source_id={stream_id!r}, target='a', "
            f"target_id={stream_id!r}, where={where!r}, requested_by='somebody')\n"
        )
    failed = "select error from streams_query where state = 'failed'"
    failed += f" union all {failed.replace('query', 'replay')}"
    try:
        process.start()
        until(lambda: len(process.ask(failed)) == 4, within_s=200, what="all have failed")
        errors = [str(error) for (error,) in process.ask(failed)]
    finally:
        process.end()
    log = (process.data_dir / "log").read_text()
    assert SECRET in errors[0]
    assert SECRET not in log
    said = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    of_java = [each for each in said if each["logger"].endswith(".Executor")]
    assert {each["error"].rpartition(".")[2] for each in of_java} >= {"SparkNumberFormatException"}
    assert all(each["message"].startswith("Exception in task") for each in of_java)
