"""Room on the disk of the private store: before there is none, nothing new is taken.

A server that flushes every write ends when the disk is full, and nothing can be read or removed until somebody has
made room elsewhere. So a reserve is kept: below it the server is told that its memory is used up (``maxmemory``), which
it and the product know how to live with: publishes and fetches are refused with the reason, reads, acknowledgements,
deletes and purges go on and have the reserve to be written to. What they let go is still in the file: where that is
most of it, and a new one has room beside it, the file is rewritten.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from okmq.supervision import resp

MOST_RESERVED_BYTES = 256 * 1024 * 1024
RESERVED_SHARE = 0.1
WITH_ROOM_TO_SPARE = 1.25
"""Taken again when so many times the reserve is free, so that it does not change with every message."""

ANSWER_WITHIN_S = 0.5

CLOSED_BYTES = 1
"""As ``maxmemory`` says that the disk has no room; nobody else sets it so low."""


def reserve_of(disk_bytes: int) -> int:
    """What is kept free of a disk of so many bytes."""
    return min(MOST_RESERVED_BYTES, int(RESERVED_SHARE * disk_bytes))


@dataclass(kw_only=True)
class Room:
    """Looks after the disk of one private store.

    Attributes:
        folder: of the store.
        url: of the store, for its keeper.
        say: told of every change in a sentence.
        reserve_bytes: None for 256 MiB, or a tenth of a disk that is smaller.
    """

    folder: Path
    url: str
    say: Callable[[str], None]
    reserve_bytes: int | None = None
    _memory_before: str | None = None

    def look(self) -> None:
        """Look once; a server or a disk that does not answer is for the next time, and one that started anew again."""
        try:
            usage = shutil.disk_usage(self.folder)
            reserve = reserve_of(usage.total) if self.reserve_bytes is None else self.reserve_bytes
            if usage.free < reserve:
                self._close(f"{usage.free / 2**20:,.0f} MiB of the disk of {self.folder} are free")
                self._rewrite(room_bytes=usage.free)
            elif self._memory_before is not None and usage.free >= reserve * WITH_ROOM_TO_SPARE:
                self._open()
        except (resp.StoreError, OSError):
            pass

    def _close(self, why: str) -> None:
        if self._memory_before is None:
            self._memory_before = self._told("memory")["maxmemory"]
            self.say(f"{why}: nothing new is stored until there is more room.")
        resp.ask(self.url, "CONFIG", "SET", "maxmemory", str(CLOSED_BYTES), timeout_s=ANSWER_WITHIN_S)

    def _rewrite(self, *, room_bytes: int) -> None:
        held, file = int(self._told("memory")["used_memory"]), self._told("persistence")
        is_worth_it = held < min(int(file.get("aof_current_size", 0)) / 2, room_bytes)
        if is_worth_it and file.get("aof_rewrite_in_progress") == "0":
            resp.ask(self.url, "BGREWRITEAOF", timeout_s=ANSWER_WITHIN_S)

    def _told(self, section: str) -> dict[str, str]:
        return resp.facts(resp.ask(self.url, "INFO", section, timeout_s=ANSWER_WITHIN_S))

    def _open(self) -> None:
        assert self._memory_before is not None
        resp.ask(self.url, "CONFIG", "SET", "maxmemory", self._memory_before, timeout_s=ANSWER_WITHIN_S)
        self._memory_before = None
        self.say(f"The disk of {self.folder} has room again; what is published is stored.")
