"""Flushes of a process (``fsync``, ``fdatasync``) in the hand of another: a slow disk, and one that loses its power.

Linux asks a listener before it carries out what a seccomp filter names (seccomp_unotify(2)). So nothing has to be
compiled or mounted, and every other call of the process runs as fast as ever. A child that rewrites its file is under
the filter, too.

    python -m okmq.prove.flushes SOCKET COMMAND…    runs the command under the filter; the listener goes to the socket
"""

import array
import ctypes
import fcntl
import heapq
import os
import platform
import select
import socket
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER, FLAG_NEW_LISTENER = 1, 8
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT = 0
RECEIVE, SEND = 0xC0502100, 0xC0182101
"""The listener's two calls: ``struct seccomp_notif`` has 80 bytes, ``struct seccomp_notif_resp`` 24."""

GO_ON = 1
ASKED = "=QII IIQ Q"
"""Of a flush: its number; the thread and flags; the call, its architecture and place; the file."""

SECCOMP = {"x86_64": 317, "aarch64": 277}
FLUSHES = {"x86_64": (74, 75), "aarch64": (82, 83)}
"""The numbers of the calls: seccomp; fsync and fdatasync."""

TAKEN_WITHIN_S = 30.0
LOOK_EVERY_MS = 100.0


def can_be_asked() -> bool:
    """Whether this machine can do it: Linux, on a processor whose calls are known here."""
    return sys.platform == "linux" and platform.machine() in SECCOMP


class Flushes(ABC):
    """The flushes of one process and its children, while it runs."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    @contextmanager
    def open(self, socket_path: Path) -> Iterator[list[str]]:
        """Listen, in a thread of its own, while the block runs; what has to stand before the command of the process."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(socket_path))
        server.listen()
        server.settimeout(TAKEN_WITHIN_S)
        thread = threading.Thread(target=self._serve, args=(server,), daemon=True)
        thread.start()
        try:
            yield [sys.executable, "-m", "okmq.prove.flushes", str(socket_path)]
        finally:
            self._ended.set()
            thread.join()
            server.close()

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = server.accept()
            with connection:
                _, fds, _, _ = socket.recv_fds(connection, 1, 1)
            try:
                self._listen(fds[0])
            finally:
                os.close(fds[0])

    def _listen(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while not self._is_over():
            for _, what in poll.poll(self._wait_ms()):
                if what & select.POLLIN:
                    with suppress(OSError):  # who asked has ended meanwhile
                        asked = bytearray(80)
                        fcntl.ioctl(listener, RECEIVE, asked)
                        self._asked(listener, asked)
                else:  # nobody is left under the filter
                    self._ended.wait()
                    return
            self._answer(listener)

    def _is_over(self) -> bool:
        return self._ended.is_set()

    def _wait_ms(self) -> float:
        return LOOK_EVERY_MS

    @abstractmethod
    def _asked(self, listener: int, asked: bytearray) -> None:
        """A flush is asked for.

        Raises:
            OSError: who asked has ended meanwhile.
        """

    @abstractmethod
    def _answer(self, listener: int) -> None:
        """Answer what is due."""


class SlowDisk(Flushes):
    """Every flush waits; those of several threads side by side.

    Attributes:
        flush_s: what a flush takes longer from now on.
        flushed: how many there were.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flush_s = 0.0
        self.flushed = 0
        self._due: list[tuple[float, int]] = []

    def _is_over(self) -> bool:
        return self._ended.is_set() and not self._due

    def _wait_ms(self) -> float:
        return (
            min(LOOK_EVERY_MS, max(0.0, self._due[0][0] - monotonic()) * 1000) if self._due else LOOK_EVERY_MS
        )

    def _asked(self, listener: int, asked: bytearray) -> None:
        self.flushed += 1
        heapq.heappush(self._due, (monotonic() + self.flush_s, struct.unpack_from("=Q", asked)[0]))

    def _answer(self, listener: int) -> None:
        while self._due and (self._ended.is_set() or self._due[0][0] <= monotonic()):
            _send(listener, heapq.heappop(self._due)[1], GO_ON)


class PowerSwitch(Flushes):
    """Knows what of each file is on the disk: it carries out every flush itself, and none when the power is off.

    Args:
        folder: whose files are meant; what they hold now is on the disk.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._is_on = True
        self._flushing = threading.Lock()
        self._on_disk = {_identity(there): there.st_size for _, there in self._files()}

    def off(self) -> None:
        """From now on nothing gets to the disk; who asks waits until its process is killed."""
        with self._flushing:
            self._is_on = False

    def forget(self) -> int:
        """Take away what of the files is not on the disk, after the process was killed; how many bytes that was.

        That a file is there, and its name, are not forgotten: a flush of its folder is taken as done.
        """
        forgotten = 0
        for path, there in self._files():
            on_disk = self._on_disk.get(_identity(there), 0)
            if on_disk < there.st_size:
                os.truncate(path, on_disk)
                forgotten += there.st_size - on_disk
        return forgotten

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        return [(path, path.stat()) for path in self._folder.rglob("*") if path.is_file()]

    def _asked(self, listener: int, asked: bytearray) -> None:
        number, thread, *_, file = struct.unpack_from(ASKED, asked)
        with self._flushing:
            if not self._is_on:
                return
            opened = os.open(f"/proc/{thread}/fd/{file}", os.O_RDONLY)
            try:
                there = os.fstat(opened)
                os.fsync(opened)
            finally:
                os.close(opened)
            self._on_disk[_identity(there)] = there.st_size
            _send(listener, number, 0)

    def _answer(self, listener: int) -> None:
        """It is answered at once, or never."""


def _identity(there: os.stat_result) -> tuple[int, int]:
    return there.st_dev, there.st_ino


def _send(listener: int, number: int, flags: int) -> None:
    """Have the kernel go on with the call, or the call return 0."""
    with suppress(OSError):
        fcntl.ioctl(listener, SEND, bytearray(struct.pack("=QqiI", number, 0, 0, flags)))


def _listener() -> int:
    """Put this process and what it becomes under the filter; the file that is asked."""
    libc = ctypes.CDLL(None, use_errno=True)
    fsync, fdatasync = FLUSHES[platform.machine()]
    steps = [
        (LOAD_WORD, 0, 0, NUMBER_AT),
        (JUMP_EQUAL, 2, 0, fsync),
        (JUMP_EQUAL, 1, 0, fdatasync),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ASK),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    made = libc.syscall(SECCOMP[platform.machine()], SET_MODE_FILTER, FLAG_NEW_LISTENER, program)
    if made < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(made)


def main() -> None:
    """The process that becomes the command."""
    path, *command = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as told:
        told.connect(path)
        listener = _listener()
        told.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
