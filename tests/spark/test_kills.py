"""The archive under kills at moments of its batches; ``python -m tests.spark.kills`` does it hundreds of times."""

from pathlib import Path

import pytest

from okmq.prove.archived import KINDS
from okmq.prove.spark_kills import under_kills_of_spark

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
