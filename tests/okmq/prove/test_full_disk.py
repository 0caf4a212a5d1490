"""A disk that somebody else fills: refusals at once and with the reason, nothing lost, and it heals by itself."""

from pathlib import Path

import pytest

from okmq.prove.found import found_by
from okmq.prove.full_disk import can_be_mounted, on_a_full_disk

pytestmark = pytest.mark.running


@pytest.mark.timeout(600)
def test_a_full_disk_refuses_quickly_with_the_reason_and_heals(tmp_path: Path) -> None:
    assert can_be_mounted(), "a small disk of its own takes root"
    found = found_by([on_a_full_disk(tmp_path, seconds=3)], told="", took_s=0.0)
    assert found.sentences == []
    (full,) = found.struck
    assert not full.note.startswith("0 publishes"), full.note
    assert not (tmp_path / "data" / "okmq.sqlite3").exists()  # its disk is gone with it
