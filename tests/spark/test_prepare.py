"""Spark's classes are kept for its next starts, and whatever is wrong with what is kept, Spark starts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from okmq.env import PROJECT
from spark import prepare
from spark.class_data import FILE, ClassData, installed

STARTED = """
import sys
from pathlib import Path
from spark import session
session.build(session.SessionSettings(folder=Path(sys.argv[1])))
print(Path("/proc", str(session.process().pid), "maps").read_text())
session.end()
"""


pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True, scope="module")
def prepared() -> None:
    """They are kept, as an installation keeps them; by another process, as this one has a Spark."""
    subprocess.run([sys.executable, "-m", "spark.prepare"], check=True, cwd=PROJECT)


def test_a_start_reads_the_classes_that_are_kept(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", STARTED, tmp_path], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert str(FILE.resolve()) in told.stdout  # the system tells where a file really is
    assert "cds" not in told.stderr


def test_what_is_kept_already_is_not_made_again() -> None:
    maker = installed()
    assert maker is not None
    assert ClassData().is_of(maker)
    before = FILE.stat()
    assert prepare.main() == 0
    assert FILE.stat() == before


def test_java_starts_without_what_is_not_for_it(tmp_path: Path) -> None:
    kept, made = ClassData(tmp_path / "classes.jsa"), tmp_path / "made"
    for content in (b"", b"nothing of Java's"):
        made.write_bytes(content)
        kept.take(made, "anybody")
        told = started(kept)
        assert "warning" not in told.stderr + told.stdout


def test_what_is_not_whole_is_not_given_to_java(tmp_path: Path) -> None:
    kept, whole = ClassData(tmp_path / "classes.jsa"), tmp_path / "whole"
    shutil.copyfile(FILE, whole)
    kept.take(whole, "anybody")
    assert "sharing" in started(kept).stderr
    os.truncate(kept.file, 5000)
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            ["java", f"-XX:SharedArchiveFile={kept.file}", "-version"],
            capture_output=True,
            check=True,
            cwd=tmp_path,
        )
    assert not kept.is_of("anybody")
    assert started(kept).returncode == 0


def started(kept: ClassData) -> "subprocess.CompletedProcess[str]":
    """Java, with what it is given of the file."""
    return subprocess.run(["java", *kept.options, "-version"], capture_output=True, text=True, check=True)


def test_it_is_for_one_java_and_one_pyspark(tmp_path: Path) -> None:
    kept, made = ClassData(tmp_path / "classes.jsa"), tmp_path / "made"
    for maker in ("one", "another"):
        assert not kept.is_of(maker)
        made.write_text(maker)
        kept.take(made, maker)
        assert kept.is_of(maker)
        assert kept.file.read_text() == maker
    kept.file.unlink()
    assert not kept.is_of("another")


def test_whose_it_is_follows_the_java_that_spark_will_start(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk 99' >&2\n")
    java.chmod(0o755)
    given = installed({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert given is not None
    assert given.startswith(f"{java}\nopenjdk 99\n")
    assert installed({"PATH": str(java.parent), "JDK_JAVA_OPTIONS": "-Xint"}) == given
    assert installed({"PATH": str(tmp_path)}) is None
    java.write_text("#!/bin/sh\nexit 1\n")
    assert installed({"PATH": str(java.parent)}) is None


def test_where_java_writes_nothing_what_was_there_stays(tmp_path: Path) -> None:
    kept = ClassData(tmp_path / "folder" / "classes.jsa")
    (tmp_path / "folder").write_text("no folder")
    with pytest.raises(OSError, match="folder"):
        prepare.prepare(kept, "anybody")
