"""A moment of a rewrite of the append-only file is met, also where that takes milliseconds, or it says so."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from okmq.prove import rewrites
from okmq.prove.cuts import running_store
from okmq.supervision import rights
from streams.log.client import Log
from streams.log.commands import one
from tests.waiting import until

pytestmark = pytest.mark.running


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Log]:
    place = tmp_path / "s"
    with running_store(place) as (url, _), closing(Log(rights.keeper_url(url, place))) as log:
        yield log


@pytest.mark.parametrize("values", [1, 300])
def test_a_moment_of_a_rewrite_is_met(keeper: Log, values: int) -> None:
    chance = random.Random(8)
    for number in range(values):
        keeper.run(one(("SET", f"okmq:{number}", "x" * 100_000)))
    assert not rewrites.is_under_way(keeper)
    for _ in range(5):
        assert rewrites.midway(keeper, chance)
        until(lambda: not rewrites.is_under_way(keeper))


def test_where_there_is_none_it_says_so(tmp_path: Path) -> None:
    with running_store(tmp_path / "s") as (_, log):  # who may not ask for one
        assert not rewrites.midway(log, random.Random(8))
