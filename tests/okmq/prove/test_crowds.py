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
        ({"files": 53, "memory": 105}, []),
        ({"files": 54}, ["a line: there were 66 files and connections before, and are 70"]),
        ({"threads": 5}, ["a line: there were 9 threads before, and are 10"]),
    ]:
        after = {**before, "web-1": replace(before["web-1"], **change)}
        assert grown(before, after, what="a line", is_long=True) == told
    moved = {"web-1": replace(before["web-1"], files=40), "worker": replace(before["worker"], files=26)}
    assert grown(before, moved, what="a line", is_long=True) == []
    after = {**before, "worker": replace(before["worker"], memory=53)}
    assert len(grown(before, after, what="a line", is_long=True)) == 1
    assert grown(before, after, what="a line", is_long=False) == []
    after = {**before, "worker": replace(before["worker"], threads=9)}
    assert grown(before, after, what="a line", is_long=False) == []
    after = {**before, "worker": replace(before["worker"], threads=10)}
    assert len(grown(before, after, what="a line", is_long=False)) == 1


def test_what_stays_open_is_told() -> None:
    apart = Apart(load=Load(1, token=""))
    assert isinstance(apart.history, History)
    apart.left_open(100, 110, what="a crowd")
    assert apart.wrong == []
    apart.left_open(100, 120, what="a crowd")
    assert apart.wrong == ["a crowd: 100 files and connections were open before, 120 after"]
