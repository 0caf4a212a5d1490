"""The processes of one data folder, found in ``/proc`` by the mark that the supervisor puts in their environment.

Recorded process ids go stale and are used again; the mark is inherited by grandchildren (Spark's JVM and its Python
workers leave their process group) and names the data folder, so it finds what an unclean end left behind and nothing
else. Where there is no ``/proc`` (macOS) nothing is found, and the supervisor has its own children only.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "OKMQ_INSTANCE"
PROC = Path("/proc")


def marked(data_dir: Path, *, session: int | None = None) -> list[int]:
    """The ids of the living processes (zombies left out) that a supervisor of this data folder started.

    With ``session``, only those of the session that this child began: itself and what it started, whatever became
    of their process groups.
    """
    wanted = f"{MARK}={data_dir}".encode()
    return [pid for pid in _ids() if wanted in _environment(pid) and _lives(pid, session=session)]


def kill(pids: list[int], *, signum: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        try:
            os.kill(pid, signum)
        except (ProcessLookupError, PermissionError):
            continue  # gone since it was listed, or another user's with our mark: not ours to end


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped (SIGSTOP, a debugger) and does nothing until it is continued."""
    return _stat(pid)[:1] in (["T"], ["t"])


def _ids() -> Iterator[int]:
    if not PROC.is_dir():
        return
    own = os.getpid()
    for entry in os.scandir(PROC):
        if entry.name.isdigit() and int(entry.name) != own:
            yield int(entry.name)


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _lives(pid: int, *, session: int | None) -> bool:
    fields = _stat(pid)
    return len(fields) > 3 and fields[0] != "Z" and session in (None, int(fields[3]))


def _stat(pid: int) -> list[str]:
    """State, parent, group, session and what follows them; empty where there is no such process."""
    try:
        # The name in parentheses may hold anything: they follow the last of them.
        return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []
