"""A data folder is for its owner only: who reads it reads every message, and signs in as anybody."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

DATABASE = "okmq.sqlite3"

OURS = frozenset(
    {
        *("admin_token", "secret_key", "static", "static.sources"),
        *("census", "history", "log", "run", "valkey", "valkey-memory"),
        *(f"{DATABASE}{end}" for end in ("", "-wal", "-shm", "-journal")),
    }
)
"""What lies in a data folder. One that holds anything else is somebody's, too."""

PUBLIC = frozenset({"static", "static.sources"})

_OTHERS = 0o077


def close_to_others(data_dir: Path) -> None:
    """Take others' rights from a folder that is ours alone, and from what is kept in it.

    The folder itself stays as it is where it belongs to somebody else, or where somebody else keeps things in it.
    """
    for path in open_to_others(data_dir):
        if path.stat().st_uid == os.geteuid() and (path != data_dir or _is_ours_alone(data_dir)):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)


def open_to_others(data_dir: Path) -> Iterator[Path]:
    """The folder, and what of ours in it, that others on this machine have rights on."""
    for path in (data_dir, *sorted(data_dir / name for name in OURS - PUBLIC)):
        if path.exists() and not path.is_symlink() and path.stat().st_mode & _OTHERS:
            yield path


def _is_ours_alone(data_dir: Path) -> bool:
    return not data_dir.stat().st_mode & stat.S_ISVTX and {path.name for path in data_dir.iterdir()} <= OURS
