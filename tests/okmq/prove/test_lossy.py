"""Answers of the store that are lost on their way: nothing is doubled, every call ends, nothing is left open."""

from pathlib import Path

import pytest

from okmq.prove.checking import check
from okmq.prove.lossy import on_a_bad_line

pytestmark = pytest.mark.running


@pytest.mark.timeout(600)
def test_lost_answers_double_nothing_and_every_call_ends(tmp_path: Path) -> None:
    bad = on_a_bad_line(tmp_path, seconds=15)
    verdict = check(bad.history)
    assert verdict.holds, verdict.found
    assert (bad.load.scene.late, bad.load.scene.surprises) == ([], {})
    (struck,) = bad.struck
    assert int(struck.note.split()[0]) > 20, struck.note
    assert bad.wrong == []
