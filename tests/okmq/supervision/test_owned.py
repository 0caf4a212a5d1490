"""What others may not read is closed to them; a folder with other things in it is left as it is."""

from pathlib import Path

import pytest

from okmq.supervision.owned import close_to_others, open_to_others


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "static").mkdir(mode=0o755)
    for name in ("okmq.sqlite3", "okmq.sqlite3-wal"):
        (folder / name).touch(mode=0o644)
    return folder


def test_a_folder_of_ours_alone_is_closed_with_what_is_in_it(data_dir: Path) -> None:
    assert len(list(open_to_others(data_dir))) == 3
    close_to_others(data_dir)
    assert list(open_to_others(data_dir)) == []
    assert (data_dir / "static").stat().st_mode & 0o055


def test_a_folder_that_others_keep_things_in_stays_open_and_ours_in_it_is_closed(data_dir: Path) -> None:
    (data_dir / "another").touch()
    close_to_others(data_dir)
    assert list(open_to_others(data_dir)) == [data_dir]


def test_a_folder_for_everybody_stays_so(data_dir: Path) -> None:
    data_dir.chmod(0o1777)
    close_to_others(data_dir)
    assert list(open_to_others(data_dir)) == [data_dir]
