"""The power goes while a store works: what was flushed is there, what was not is gone, and no answer promised more."""

import os
import signal
from pathlib import Path

import pytest

from okmq.prove.checking import check
from okmq.prove.cuts import running_store
from okmq.prove.flushes import PowerSwitch
from okmq.prove.found import found_by
from okmq.prove.power import FILES, on_power_cuts, on_power_cuts_in_the_window, pid_of
from streams.log.commands import one

pytestmark = pytest.mark.running


@pytest.mark.parametrize(("fsync", "is_there"), [("always", b"1"), ("no", None)])
def test_only_what_was_flushed_is_there(tmp_path: Path, fsync: str, is_there: bytes | None) -> None:
    place = tmp_path / "s"
    switch = PowerSwitch(place / FILES)
    with (
        switch.open(tmp_path / "flushes") as through,
        running_store(place, fsync=fsync, through=through) as (_, log),
    ):
        log.run(one(("SET", "okmq:a", "1")))
        pid = pid_of(log)
        switch.off()
        os.kill(pid, signal.SIGKILL)
    assert (switch.forget() > 0) is (is_there is None)
    with running_store(place, fsync=fsync) as (_, log):
        assert log.run(one(("GET", "okmq:a"))) == is_there


@pytest.mark.timeout(600)
def test_what_was_flushed_is_there_after_the_power_went(tmp_path: Path) -> None:
    apart = on_power_cuts(tmp_path, cuts=2)
    found = found_by([apart], told="", took_s=0.0)
    assert found.sentences == []
    assert len(apart.struck) == 2
    assert found.in_flight > 0


@pytest.mark.timeout(600)
def test_a_flush_a_second_promises_no_more_than_it_keeps(tmp_path: Path) -> None:
    apart = on_power_cuts_in_the_window(tmp_path, cuts=2)
    verdict = check(apart.history)
    assert verdict.holds, verdict.found
    assert (apart.wrong, apart.load.scene.surprises) == ([], {})
    assert verdict.lost_in_window > 0
    assert all(" messages lost, acknowledged as `window`" in each.note for each in apart.struck)
