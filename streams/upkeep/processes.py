"""What the supervisor says of the processes: the file ``run/processes.json``. Django-free.

The supervisor (``okmq.up``) writes it at every change; the console and the worker read it. A process that was not
asked to run (history switched off, Java missing) is listed too, so that a page can say why it is not there.
"""

import json
import os
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from streams import durations

State = Literal["starting", "running", "restarting", "stopped", "off", "unavailable"]
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """One process as its supervisor sees it.

    ``state`` is ``running`` while the process lives (``starting`` until it was first seen to answer), ``restarting``
    between a death and the next start, ``stopped`` when it was ended on request, ``off`` when it was switched off,
    ``unavailable`` when something it needs is missing. ``since`` is when that state began, in seconds since the
    epoch. ``restarts`` counts from the supervisor's start. ``note`` is for people: why it last died, or what to
    install.
    """

    name: str
    pid: int | None
    state: State
    restarts: int
    since: float
    note: str

    @property
    def restarted_ms(self) -> int | None:
        """Since when it runs again (unix ms); None where it never died, or does not run."""
        again = self.restarts and self.state in {"starting", "running"}
        return int(self.since * 1000) if again else None

    def sentence(self, *, now: float | None = None) -> str:
        """Such as ``exited with signal 9, restarted 12 s ago``; empty where there is nothing to tell."""
        if self.restarted_ms is not None:
            age_s = round((time.time() if now is None else now) - self.since)
            return f"{self.note}, restarted {durations.written(age_s)} ago"
        return self.note


def write(path: Path, statuses: Sequence[ProcessStatus]) -> None:
    """Replace the file as a whole, so that a reader sees the old list or the new one, never half of one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps([asdict(status) for status in statuses], indent=1), "utf-8")
    fresh.replace(path)


def read(path: Path) -> list[ProcessStatus]:
    """The list last written; empty when there is no such file or it is not one that `write` made."""
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [_status(row) for row in rows]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def version(statuses: Sequence[ProcessStatus]) -> int:
    """A number that is another one when the list is, the same in every process."""
    return zlib.crc32(repr(list(statuses)).encode())


def _status(row: dict[str, object]) -> ProcessStatus:
    return ProcessStatus(
        name=str(row["name"]),
        pid=None if row["pid"] is None else int(str(row["pid"])),
        state=STATES[STATES.index(cast(State, row["state"]))],
        restarts=int(str(row["restarts"])),
        since=float(str(row["since"])),
        note=str(row["note"]),
    )
