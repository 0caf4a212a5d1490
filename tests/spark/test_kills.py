"""The archive under kills at moments of its batches; ``python -m tests.spark.kills`` does it hundreds of times."""

from pathlib import Path

import pytest

from okmq.prove.archived import KINDS
from okmq.prove.checking import COUNTS
from okmq.prove.found import ENOUGH_IN_FLIGHT, found_by
from okmq.prove.load import GROUPS, STREAMS
from okmq.prove.spark_kills import SPARK, under_kills_of_spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

KILLS = 6


def test_kills_while_the_archive_copies_lose_and_double_nothing(tmp_path: Path) -> None:
    apart = under_kills_of_spark(tmp_path, kills=KILLS, say=print)
    assert apart.found == {kind: [] for kind in KINDS}
    assert (apart.load.scene.late, apart.load.scene.surprises, apart.wrong) == ([], {}, [])
    assert len(apart.struck) == KILLS
    assert {
        each.name.removeprefix("SIGKILL of ").removesuffix(" while it archives") for each in apart.struck
    } == {
        "the driver",
        "Spark",
        "a reader of Spark",
        "valkey",
    }
    assert apart.messages > 1000
    assert apart.streams > 3  # one came while the others were killed


def test_spark_is_killed_under_load_with_groups_and_the_others_go_on(tmp_path: Path) -> None:
    apart = under_kills_of_spark(tmp_path, kills=KILLS // 2, mostly=SPARK, groups=True, say=print)
    found = found_by([apart], told="", took_s=0.0)
    assert (found.sentences, found.counts) == ([], dict.fromkeys(COUNTS, 0))
    names = [each.name for each in apart.struck]
    assert names.count("SIGKILL of Spark while it archives") == KILLS // 2
    assert len(names) == KILLS // 2 + 1  # and one of another kind
    assert found.in_flight >= ENOUGH_IN_FLIGHT
    for stream in STREAMS:
        groups = apart.history.remains[stream].groups
        assert [(each.name, each.lag, each.pending) for each in groups] == [
            (name, 0, 0) for name in sorted(GROUPS)
        ]
