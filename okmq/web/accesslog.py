"""The access log: one JSON line for every request and every socket's upgrade, of both planes.

Requests only note what they were; lines are made and written a few times a second, in a thread, so that a slow disk
holds nobody up. What does not fit is dropped, and a line says how much. A file over the limit becomes
``<name>.1``; several processes may write to one file.
"""

import asyncio
import fcntl
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from streams.exchange import Exchange

WRITE_EVERY_S = 0.25
MOST_HELD = 50_000
LARGEST_BYTES = 64 * 1024 * 1024
LONGEST_PATH = 1_000
LONGEST_AGENT = 200
LOGGER = "okmq.access"

_SECRET = re.compile(r"okmq_[A-Za-z0-9_-]{8,}")


class Line(msgspec.Struct, gc=False):
    """A line's fields, in their order. ``token`` is a token's id, never its secret; the query is left out."""

    time: str
    level: str
    logger: str
    request_id: str
    method: str
    route: str
    path: str
    status: int
    duration_ms: float
    bytes_in: int
    bytes_out: int
    workspace: str
    token: int | None
    user: str
    address: str
    user_agent: str


class Dropped(msgspec.Struct, gc=False):
    """What stands in for lines that could not be written."""

    time: str
    level: str
    logger: str
    message: str
    dropped: int


class AccessLog:
    """Takes exchanges and writes them; belongs to one event loop.

    Args:
        path: the file; None is standard output.
        largest_bytes: a larger file is put aside.
        most_held: lines that may wait to be written.
    """

    def __init__(
        self, path: Path | None, *, largest_bytes: int = LARGEST_BYTES, most_held: int = MOST_HELD
    ) -> None:
        self._path, self._largest_bytes, self._most_held = path, largest_bytes, most_held
        self._held: list[Exchange] = []
        self._dropped = 0
        self._writing: asyncio.Task[None] | None = None

    def note(self, exchange: Exchange) -> None:
        """Keep an exchange that has ended until the next write."""
        if len(self._held) < self._most_held:
            self._held.append(exchange)
        else:
            self._dropped += 1

    def start(self) -> None:
        """Write from now on, in the running event loop."""
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writing = asyncio.create_task(self._write_again_and_again())

    async def stop(self) -> None:
        """Write what is left."""
        if self._writing is not None:
            self._writing.cancel()
        await asyncio.to_thread(self.write)

    def write(self) -> None:
        """Write what is held; what a disk refuses is counted as dropped."""
        held, self._held = self._held, []
        dropped, self._dropped = self._dropped, 0
        if not held and not dropped:
            return
        try:
            self._append(text_of(held, dropped=dropped))
        except OSError:
            self._dropped += dropped + len(held)

    async def _write_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            if self._held or self._dropped:
                await asyncio.to_thread(self.write)

    def _append(self, text: bytes) -> None:
        if self._path is None:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            return
        # Opened anew each time, so that a file that was put aside is let go of.
        with self._path.open("ab", buffering=0) as file:
            file.write(text)
            if file.tell() > self._largest_bytes:
                self._put_aside(file.fileno())

    def _put_aside(self, descriptor: int) -> None:
        """Rename the file unless another process just has."""
        assert self._path is not None
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            is_ours = os.fstat(descriptor).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            return
        if is_ours:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def text_of(exchanges: Sequence[Exchange], *, dropped: int = 0) -> bytes:
    """The lines of exchanges, each with its end of line."""
    to_unix_s = time.time() - time.perf_counter()
    lines: list[Line | Dropped] = [_line(exchange, exchange.began_s + to_unix_s) for exchange in exchanges]
    if dropped:
        sentence = f"{dropped} requests are missing here: they came faster than they could be written."
        lines.append(Dropped(_moment(time.time()), "warning", LOGGER, sentence, dropped))
    return _encode_lines(lines)


_encode_lines = msgspec.json.Encoder().encode_lines


def _line(exchange: Exchange, unix_s: float) -> Line:
    return Line(
        _moment(unix_s),
        "info",
        LOGGER,
        exchange.request_id.decode(),
        exchange.method,
        exchange.route,
        _shown(exchange.path[:LONGEST_PATH]),
        exchange.status,
        round(exchange.seconds * 1000, 3),
        exchange.bytes_in,
        exchange.bytes_out,
        exchange.workspace,
        exchange.token,
        exchange.user,
        exchange.address,
        _shown(exchange.agent[:LONGEST_AGENT]),
    )


def _shown(sent: bytes) -> str:
    """What a client sent, in plain ASCII and without what looks like a token of ours; JSON escapes the rest."""
    text = sent.decode("ascii", "backslashreplace")
    return _SECRET.sub("okmq_***", text) if "okmq_" in text else text


def _moment(unix_s: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    second, part = divmod(unix_s, 1)
    return f"{_second(int(second))}.{int(part * 1000):03d}Z"


@lru_cache(maxsize=64)
def _second(unix_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix_s))
