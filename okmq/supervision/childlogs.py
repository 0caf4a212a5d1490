"""The children's logs: one file each under ``log/``, bounded in size, and watched for errors.

A child writes to its file itself (appending), so a supervisor that is busy or gone never holds it up. A file over the
limit is copied to ``<name>.log.1`` and emptied; lines written in that instant are the price.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LARGEST_BYTES = 8 * 1024 * 1024
# An error's line is shown; a flood of them is not read to its end.
MOST_READ_BYTES = 256 * 1024
# What is said again and again is shown once in this time; the file has all of it.
QUIET_S = 60.0


@dataclass(kw_only=True)
class ChildLog:
    """One log file and how far it was read; reading starts at its present end."""

    path: Path
    largest_bytes: int = LARGEST_BYTES
    _position: int = 0
    _told: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._position = self._size()

    def errors(self) -> Iterator[str]:
        """What was logged at the level ERROR or above since the last call, one sentence each, a repeated one once."""
        size = self._size()
        start = self._position if self._position <= size else 0
        if size == start:
            return
        start = max(start, size - MOST_READ_BYTES)
        with self.path.open("rb") as file:
            file.seek(start)
            text = file.read(size - start)
        whole = text.rfind(b"\n") + 1  # the rest of a line that is being written is read the next time
        self._position = start + whole
        for line in text[:whole].splitlines():
            message = _error_in(line)
            if message and self._is_news(message):
                yield message

    def _is_news(self, message: str) -> bool:
        now = time.monotonic()
        self._told = {said: at for said, at in self._told.items() if now - at < QUIET_S}
        if message in self._told:
            return False
        self._told[message] = now
        return True

    def rotate(self) -> bool:
        """Start the file anew when it is over the limit; whether it was."""
        if self._size() <= self.largest_bytes:
            return False
        shutil.copyfile(self.path, self.path.with_name(f"{self.path.name}.1"))
        os.truncate(self.path, 0)
        self._position = 0
        return True

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def _error_in(line: bytes) -> str | None:
    """The message of a line at the level error, ours in JSON (`streams.logs`) or in plain words, as
    uvicorn's before it has loaded us."""
    if line.startswith((b"ERROR:", b"CRITICAL:")):
        return line.partition(b":")[2].strip().decode("utf-8", "replace")[:300]
    if b'"error"' not in line and b'"critical"' not in line:
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or row.get("level") not in {"error", "critical"}:
        return None
    return str(row.get("message") or "an error")[:300]
