"""A disk that takes its time for every flush: the delay is real, and under it nothing is lost and every call ends."""

from pathlib import Path
from time import monotonic

import pytest

from okmq.prove.cuts import running_store
from okmq.prove.flushes import SlowDisk
from streams.log.commands import one

pytestmark = pytest.mark.running


def test_a_flush_takes_as_long_as_it_is_told(tmp_path: Path) -> None:
    disk = SlowDisk()
    with (
        disk.open(tmp_path / "flushes") as through,
        running_store(tmp_path / "s", through=through) as (_, log),
    ):
        for flush_s in (0.3, 0.0, 0.6):
            disk.flush_s = flush_s
            before, began = disk.flushed, monotonic()
            log.run(one(("SET", "okmq:a", "1")))
            assert disk.flushed == before + 1
            assert monotonic() - began >= flush_s
            assert log.run(one(("GET", "okmq:a"))) == b"1"
            assert disk.flushed == before + 1
