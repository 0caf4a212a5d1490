"""The censuses that one process keeps: within a bound, and on the disk while it does not run."""

import importlib
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from streams.log.census import Census
from streams.log.looking import Held

MOST_MESSAGES = 20_000_000
"""Of all streams together, 260 MB and what the keys take; beyond that the one that was used least lately goes."""

SAVED_FROM = 100_000
"""A smaller one is made anew in a moment."""


class Censuses:
    """Of each stream the census, the one that was used last at the end.

    Args:
        folder: where they are kept over a restart.
    """

    def __init__(self, folder: Path | None = None, *, most: int = MOST_MESSAGES) -> None:
        self._folder, self._most = folder, most
        self._held: dict[str, Held] = {}
        self._saved: dict[str, int] = {}
        self._writer = 0
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in folder.glob("*.new"):
                left.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._held))

    def of(self, stream_id: str) -> Held:
        """Where the census of a stream is, or will be."""
        held = self._held.pop(stream_id, None) or self._load(stream_id)
        self._held[stream_id] = held
        while len(self._held) > 1 and sum(map(_size, self._held.values())) > self._most:
            self.forget(next(iter(self._held)))
        return held

    def last(self, stream_id: str) -> int:
        """Up to where the census of a stream reaches."""
        held = self._held.get(stream_id)
        return 0 if held is None or held.census is None else held.census.last

    def forget(self, stream_id: str) -> None:
        """Let go of a census, also on the disk."""
        self._held.pop(stream_id, None)
        self._saved.pop(stream_id, None)
        if self._folder is not None:
            with suppress(OSError):
                self._path(stream_id).unlink(missing_ok=True)

    def tidy(self, there: Collection[str]) -> None:
        """Let go of the files of streams that are no more."""
        if self._folder is not None:
            for path in self._folder.glob("*.npz"):
                if path.stem not in there:
                    self.forget(path.stem)

    def save(self, stream_id: str, *, grown: float = 0.0, beside: bool = False) -> None:
        """Write a census down, if it is worth it and grew by such a part since. A full disk is no reason to stop.

        Args:
            beside: let a copy of this process do it, one at a time: ten million messages take it a second.
        """
        census = self._held[stream_id].census
        if self._folder is None or census is None or len(census) < SAVED_FROM:
            return
        if census.last < self._saved.get(stream_id, 0) + max(1, int(len(census) * grown)):
            return
        if not beside:
            self.settle()
            self._write(stream_id, census)
        elif self._is_writing() or not self._fork_and_write(stream_id, census):
            return
        self._saved[stream_id] = census.last

    def settle(self) -> None:
        """Wait until nothing is being written beside."""
        if self._writer:
            with suppress(ChildProcessError):
                os.waitpid(self._writer, 0)
            self._writer = 0

    def _is_writing(self) -> bool:
        if self._writer:
            with suppress(ChildProcessError):
                if os.waitpid(self._writer, os.WNOHANG) == (0, 0):
                    return True
            self._writer = 0
        return False

    def _fork_and_write(self, stream_id: str, census: Census) -> bool:
        """As the store does with its own file: the copy sees this moment, whatever comes in the meantime."""
        try:
            self._writer = os.fork()
        except OSError:
            return False
        if self._writer:
            return True
        try:
            self._write(stream_id, census)
        finally:
            os._exit(0)

    def _write(self, stream_id: str, census: Census) -> None:
        fresh = self._path(stream_id).with_suffix(f".{os.getpid()}.new")
        entry = self._held[stream_id].last_entry
        try:
            with fresh.open("wb") as file:
                _numpy().savez(file, names=_bytes(census.names()), entry=_bytes(entry), **census.state())
            fresh.replace(self._path(stream_id))
        except OSError:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def _load(self, stream_id: str) -> Held:
        """What was written down; it is held against the stream before it is used."""
        if self._folder is None or not self._path(stream_id).exists():
            return Held()
        try:
            with _numpy().load(self._path(stream_id)) as saved:
                state = {name: saved[name] for name in saved.files}
            names, entry = state.pop("names").tobytes(), state.pop("entry").tobytes()
            census = Census.restored(state, names)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return Held()
        self._saved[stream_id] = census.last
        return Held(census=census, last_entry=entry)

    def _path(self, stream_id: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{stream_id}.npz"


def _size(held: Held) -> int:
    return 0 if held.census is None else len(held.census)


def _bytes(text: bytes) -> Any:
    return _numpy().frombuffer(text, "u1")


def _numpy() -> Any:
    return importlib.import_module("numpy")
