"""A replay does not wait for Java that answers nothing: it hears who pauses it, or goes on with another."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.okmq.analytics.running import AnalyticsProcess
from tests.okmq.analytics.test_process import DEAF, TO_ARROW
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def process(published: Published, tmp_path: Path) -> Iterator[AnalyticsProcess]:
    running = AnalyticsProcess(tmp_path / "data", published.url)
    running.environ["OKMQ_HISTORY_EVERY"] = "3600"  # no other work but that of the beginning
    yield running
    running.end()


@pytest.mark.parametrize("is_paused", [True, False])
def test_it_stands_where_it_was_and_goes_on_once_java_is_another(
    process: AnalyticsProcess, published: Published, *, is_paused: bool
) -> None:
    source, target = published.stream("a"), published.stream("b")
    published.numbered(source, 300)
    process.store(
        f"Replay.objects.create(workspace=workspace, source='a', source_id={source!r}, target='b', "
        f"target_id={target!r}, rate=20, requested_by='somebody')\n"
    )
    process.start()
    until(
        lambda: process.ask("select 1 from streams_replay where stored >= 40"),
        within_s=200,
        what="some of it is published",
    )
    process.send(signal.SIGKILL, within_s=5)
    # What is left is read again, which takes Spark for ever now.
    condition = DEAF.removeprefix("SELECT ")
    process.change('update streams_replay set "where" = ?', condition)
    process.start()
    until(lambda: process.busy(TO_ARROW, cpu_s=2), within_s=200, what="Spark is at work on the rest")
    first = process.jvm()
    os.kill(first, signal.SIGSTOP)
    process.change("update streams_replay set \"where\" = ''")
    if is_paused:
        process.change("update streams_replay set state = 'paused'")
    until(lambda: not Path(f"/proc/{first}").exists(), within_s=120, what="Java is ended")
    log = (process.data_dir / "log").read_text()
    if is_paused:
        assert "Replay 1 hears nothing of Spark, so it is ended." in log
        assert "Spark has taken no call" not in log
        process.change("update streams_replay set state = 'running'")
    ((stored,),) = process.ask("select stored from streams_replay")
    until(
        lambda: process.ask("select state from streams_replay") == [("succeeded",)],
        within_s=200,
        what="the rest is published",
    )
    assert isinstance(stored, int)
    assert 40 <= stored < 300
    assert process.ask("select stored, duplicates from streams_replay") == [(300, 0)]
    assert [row[3:] for row in published.stored(target)] == [row[3:] for row in published.stored(source)]
