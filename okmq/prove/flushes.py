"""A disk that takes its time: every flush of a process (``fsync``, ``fdatasync``) waits for as long as it is told.

Linux asks a listener before it carries out what a seccomp filter names (seccomp_unotify(2)). So nothing has to be
compiled or mounted, and every other call of the process runs as fast as ever. A child that rewrites its file waits,
too.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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
SECCOMP = {"x86_64": 317, "aarch64": 277}
FLUSHES = {"x86_64": (74, 75), "aarch64": (82, 83)}
"""The numbers of the calls: seccomp; fsync and fdatasync."""

TAKEN_WITHIN_S = 30.0


def can_be_slow() -> bool:
    """Whether this machine can do it: Linux, on a processor whose calls are known here."""
    return sys.platform == "linux" and platform.machine() in SECCOMP


@dataclass
class SlowDisk:
    """``flush_s``: what a flush takes longer from now on; ``flushed``: how many there were."""

    flush_s: float = 0.0
    flushed: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

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
                self._delay(fds[0])
            finally:
                os.close(fds[0])

    def _delay(self, listener: int) -> None:
        """Let every flush go on when its time has come; those of several threads wait side by side."""
        due: list[tuple[float, int]] = []
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while not self._ended.is_set() or due:
            wait_ms = 100.0 if not due else max(0.0, due[0][0] - monotonic()) * 1000
            for _, what in poll.poll(min(wait_ms, 100.0)):
                if what & select.POLLIN:
                    self._take(listener, due)
                else:  # nobody is left under the filter
                    self._ended.wait()
                    return
            while due and (self._ended.is_set() or due[0][0] <= monotonic()):
                _let_go(listener, heapq.heappop(due)[1])

    def _take(self, listener: int, due: list[tuple[float, int]]) -> None:
        asked = bytearray(80)
        with suppress(OSError):  # who asked has ended meanwhile
            fcntl.ioctl(listener, RECEIVE, asked)
            self.flushed += 1
            heapq.heappush(due, (monotonic() + self.flush_s, struct.unpack_from("=Q", asked)[0]))


def _let_go(listener: int, asked: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(listener, SEND, bytearray(struct.pack("=QqiI", asked, 0, 0, GO_ON)))


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
