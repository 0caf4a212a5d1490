"""A crowd that comes back at once, polls that are reset, a page that reads nothing: all served, nothing left open."""

from dataclasses import replace

import pytest

from okmq.prove.apart import Apart, Holds, grown
from okmq.prove.crowds import Crowd
from okmq.prove.history import History
from okmq.prove.load import Load

pytestmark = pytest.mark.running

SMALL = Crowd(browsers=60, pollers=60, turns=2, resets=200, hangs_s=4)


def test_threads_connections_and_memory_that_grow_are_told() -> None:
    before = {
        "web-1": Holds(files=50, threads=4, memory=100),
        "worker": Holds(files=16, threads=5, memory=50),
    }
    for change, told in [
        ({}, []),
        ({"files": 56, "threads": 8, "memory": 105}, []),
        ({"files": 57}, ["a line: web-1 had 50 files and connections before and has 57"]),
        ({"threads": 9}, ["a line: web-1 had 4 threads before and has 9"]),
    ]:
        after = {**before, "web-1": replace(before["web-1"], **change)}
        assert grown(before, after, what="a line", memory=True) == told
    after = {**before, "worker": replace(before["worker"], memory=53)}
    assert len(grown(before, after, what="a line", memory=True)) == 1
    assert grown(before, after, what="a line", memory=False) == []


def test_what_stays_open_is_told() -> None:
    apart = Apart(load=Load(1, token=""))
    assert isinstance(apart.history, History)
    apart.left_open(100, 110, what="a crowd")
    assert apart.wrong == []
    apart.left_open(100, 120, what="a crowd")
    assert apart.wrong == ["a crowd: 100 files and connections were open before, 120 after"]
