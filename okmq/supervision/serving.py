"""Which web processes take requests: each leaves a file with its process id as its name in ``run/serving``.

They share one socket, so an answer on the port says only that one of them serves, not which.
"""

import contextlib
import os
from pathlib import Path


def begin(run_dir: Path) -> None:
    """Say that this process takes requests from now on."""
    note = _note(run_dir, os.getpid())
    with contextlib.suppress(OSError):  # a full disk: it serves all the same
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch(mode=0o600)


def end(run_dir: Path) -> None:
    """Say that this process takes no more."""
    with contextlib.suppress(OSError):
        _note(run_dir, os.getpid()).unlink(missing_ok=True)


def serves(run_dir: Path, pid: int | None) -> bool:
    """Whether the process of this id takes requests."""
    return pid is not None and _note(run_dir, pid).exists()


def forget_all(run_dir: Path) -> None:
    """Take away what processes that were killed left behind; their ids may be given again."""
    for note in (run_dir / "serving").glob("*"):
        note.unlink(missing_ok=True)


def _note(run_dir: Path, pid: int) -> Path:
    return run_dir / "serving" / str(pid)
