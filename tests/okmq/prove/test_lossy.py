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
    assert (bad.load.scene.late, bad.load.scene.surprises) == (0, {})
    lost = int(bad.struck.note.split()[0])
    assert lost > 20, bad.struck.note
    assert bad.files_after <= bad.files_before * 1.05 + 8  # a connection may just be made again
