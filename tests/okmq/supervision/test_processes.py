"""The file that says what runs."""

from pathlib import Path

import pytest

from streams.upkeep import processes
from streams.upkeep.processes import ProcessStatus


def status(**changes: object) -> ProcessStatus:
    facts: dict[str, object] = {
        "name": "web",
        "pid": 12,
        "state": "running",
        "restarts": 0,
        "since": 1000.5,
        "note": "",
    }
    return ProcessStatus(**{**facts, **changes})  # type: ignore[arg-type]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    written = [status(), status(name="analytics", pid=None, state="unavailable", note="Install Java.")]
    processes.write(tmp_path / "run" / "processes.json", written)
    assert processes.read(tmp_path / "run" / "processes.json") == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "1",
        '{"a": 1}',
        "[1]",
        '[{"name": "web"}]',
        "null",
        '[{"name": "w", "pid": 1, "state": "lost"}]',
    ],
)
def test_a_broken_file_lists_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "processes.json").write_text(text)
    assert processes.read(tmp_path / "processes.json") == []


def test_a_missing_file_lists_nothing(tmp_path: Path) -> None:
    assert processes.read(tmp_path / "none") == []


def test_a_restart_is_told_with_its_age() -> None:
    said = status(restarts=2, note="exited with signal 9")
    assert said.sentence(now=1012.5) == "exited with signal 9, restarted 12 s ago"
    assert said.restarted_ms == 1_000_500


def test_a_death_that_was_not_followed_yet_is_told_as_it_is() -> None:
    said = status(state="restarting", restarts=1, note="exited with code 3")
    assert said.sentence(now=1012.5) == "exited with code 3"
    assert said.restarted_ms is None


def test_another_list_is_another_version() -> None:
    assert processes.version([status()]) == processes.version((status(),))
    assert processes.version([status()]) != processes.version([status(restarts=1)])
