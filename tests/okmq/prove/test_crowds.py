"""A crowd that comes back at once, polls that are reset, a page that reads nothing: all served, nothing left open."""

from pathlib import Path

import pytest

from okmq.prove.apart import Apart
from okmq.prove.checking import check
from okmq.prove.crowds import Crowd, under_crowds
from okmq.prove.history import History
from okmq.prove.load import Load

pytestmark = pytest.mark.running

SMALL = Crowd(browsers=60, pollers=60, turns=2, resets=200, hangs_s=4)


@pytest.mark.timeout(600)
def test_a_crowd_is_served_and_leaves_nothing_open(tmp_path: Path) -> None:
    apart = under_crowds(tmp_path, crowd=SMALL)
    verdict = check(apart.history)
    assert verdict.holds, verdict.found
    assert (apart.load.scene.late, apart.load.scene.surprises, apart.wrong) == ([], {}, [])
    assert [each.name.split()[0] for each in apart.struck] == ["60", "60", "200", "a"]


def test_what_stays_open_is_told() -> None:
    apart = Apart(load=Load(1, token=""))
    assert isinstance(apart.history, History)
    apart.left_open(100, 110, what="a crowd")
    assert apart.wrong == []
    apart.left_open(100, 120, what="a crowd")
    assert apart.wrong == ["a crowd: 100 files and connections were open before, 120 after"]
