"""The power goes while a store works: what was flushed is there, what was not is gone, and no answer promised more."""

import os
import signal
from pathlib import Path

import pytest

from okmq.prove.cuts import running_store
from okmq.prove.flushes import PowerSwitch
from okmq.prove.power import FILES, pid_of
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
