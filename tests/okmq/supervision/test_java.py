"""Which Java counts."""

from pathlib import Path

import pytest

from okmq.supervision import java


def fake_java(home: Path, *, says: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("says", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("no idea", None),
    ],
)
def test_the_release_is_read_from_what_it_says(tmp_path: Path, says: str, release: int | None) -> None:
    assert java.version(fake_java(tmp_path, says=says)) == release


def test_the_system_has_one_that_will_do() -> None:
    """`scripts/system-packages` sees to it."""
    assert java.home({"PATH": "/usr/bin:/bin"}) is not None


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path, says='openjdk version "21"')
    assert java.home({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}) == tmp_path


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", says='java version "1.8.0_392"')
    newer = fake_java(tmp_path / "new", says='openjdk version "17"')
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(newer.parent)}
    assert java.home(environ) == tmp_path / "new"


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert java.home({"PATH": str(tmp_path)}) is None
