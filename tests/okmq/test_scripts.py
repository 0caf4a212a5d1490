"""What `make` relies on: a virtual environment made once, and one sentence when the machine lacks something."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from okmq.env import PROJECT

NAMES = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real scripts and locks that hold nothing."""
    folder = tmp_path / "project"
    (folder / "scripts").mkdir(parents=True)
    for name in ("bootstrap", "system-packages"):
        shutil.copy(PROJECT / "scripts" / name, folder / "scripts" / name)
    for name in ("requirements.lock", "requirements-dev.lock"):
        (folder / name).write_text("# nothing\n")
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that goes first on the PATH; what is put there hides the machine's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(project: Path, *words: str, path: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [project / "scripts" / words[0], *words[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path, "HOME": os.environ["HOME"]},
    )


def stripped(folder: Path) -> None:
    """Make it all that a machine has where nothing may be installed."""
    for name in ("sh", "sed", "head", "grep"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    program(folder, "id", "echo 1000")


@pytest.mark.install
def test_the_environment_is_made_once_and_again_when_the_lock_changes(project: Path) -> None:
    path = os.environ["PATH"]
    first = run(project, "bootstrap", "run", path=path)
    assert first.returncode == 0, first.stderr
    assert "Making .venv" in first.stdout
    assert run(project, "bootstrap", "run", path=path).stdout == ""
    (project / "requirements.lock").write_text("# changed\n")
    again = run(project, "bootstrap", "run", path=path).stdout
    assert "Installing the packages of requirements.lock" in again
    assert "Making .venv" not in again


@pytest.mark.install
@pytest.mark.parametrize("outcome", [0, 1])
def test_the_classes_of_spark_are_kept_once_where_they_can_be(project: Path, outcome: int) -> None:
    (project / "spark").mkdir()
    (project / "spark" / "prepare.py").write_text(f"print('prepared'); raise SystemExit({outcome})")
    first = run(project, "bootstrap", "run", path=os.environ["PATH"])
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "prepared")
    assert run(project, "bootstrap", "run", path=os.environ["PATH"]).stdout == ""


@pytest.mark.install
def test_what_the_tests_need_serves_the_product_too(project: Path) -> None:
    path = os.environ["PATH"]
    assert run(project, "bootstrap", "dev", path=path).returncode == 0
    assert run(project, "bootstrap", "run", path=path).stdout == ""


@pytest.mark.install
def test_a_lock_that_cannot_be_installed_leaves_no_mark_of_success(project: Path) -> None:
    path = os.environ["PATH"]
    (project / "requirements.lock").write_text("okmq-has-no-such-package==1 --hash=sha256:00\n")
    ended = run(project, "bootstrap", "run", path=path)
    assert ended.returncode == 1
    assert ended.stderr.strip().splitlines()[-1].startswith("The packages of requirements.lock could not be")
    assert run(project, "bootstrap", "run", path=path).returncode == 1


def test_a_python_that_is_too_old_is_one_sentence(project: Path, programs: Path) -> None:
    for name in NAMES:
        program(programs, name, "exit 1")
    ended = run(project, "bootstrap", "run", path=f"{programs}:{os.environ['PATH']}")
    assert ended.returncode == 1
    assert ended.stderr == (
        "OKMQ needs Python 3.11 or later; install it (Debian: apt-get install python3 python3-venv) "
        "or name one in PYTHON.\n"
    )


def test_a_python_without_venv_is_one_sentence_where_nothing_may_be_installed(
    project: Path, programs: Path
) -> None:
    for name in NAMES:
        program(programs, name, 'case "$2" in *ensurepip*) exit 1 ;; esac')
    program(programs, "id", "echo 1000")
    ended = run(project, "bootstrap", "run", path=f"{programs}:{os.environ['PATH']}")
    assert ended.returncode == 1
    assert ended.stderr == (
        f"Python at {programs}/python3 cannot make a virtual environment; "
        "install python3-venv (apt-get install python3-venv).\n"
    )


def test_what_the_tests_lack_is_one_sentence_where_nothing_may_be_installed(
    project: Path, programs: Path
) -> None:
    stripped(programs)
    program(programs, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    ended = run(project, "system-packages", path=str(programs))
    assert ended.returncode == 1
    assert ended.stderr == (
        "The tests need what this machine lacks; install it with: apt-get install "
        "chromium-headless-shell openjdk-17-jre-headless redis-server nodejs curl libfaketime postgresql gettext\n"
    )


def test_the_whole_chromium_does_where_no_smaller_one_can_be_had(project: Path, programs: Path) -> None:
    """Whatever else there is not."""
    stripped(programs)
    program(programs, "chromium", "true")
    ended = run(project, "system-packages", path=str(programs))
    assert ended.stderr.endswith(
        "apt-get install openjdk-17-jre-headless redis-server nodejs curl libfaketime postgresql gettext\n"
    )


def test_a_machine_that_has_everything_is_left_alone(project: Path) -> None:
    ended = run(project, "system-packages", path=os.environ["PATH"])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
