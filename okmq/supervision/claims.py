"""What an instance has for itself alone: its data folder and its port. Both are checked before anything starts."""

import errno
import fcntl
import os
import signal
import socket
import threading
import time
from pathlib import Path

from okmq.supervision import proctable
from okmq.supervision.owned import close_to_others
from okmq.supervision.supervisor import StartError

LEFTOVERS_END_WITHIN_S = 5.0
QUEUE = 2048


def take_folder(data_dir: Path) -> int:
    """Take the data folder for this process; the lock lasts as long as the file descriptor that is returned.

    Others on this machine have no rights on it from then on.

    Raises:
        StartError: another instance has it, or it cannot be written.
    """
    path = data_dir / "run" / "okmq.lock"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        close_to_others(data_dir)
    except OSError as error:
        raise StartError(
            f"The data folder {data_dir} cannot be used: {error.strerror} ({error.filename})."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 32).decode().strip() or "unknown"
        os.close(lock)
        raise StartError(
            f"The data folder {data_dir} is in use by another OKMQ (process {holder}); "
            "end that one, or set OKMQ_DATA_DIR to another folder."
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def end_leftovers(data_dir: Path, *, within_s: float = LEFTOVERS_END_WITHIN_S) -> None:
    """End what an instance that was killed left running on this folder, which is ours now: gently, then not."""
    pause = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGKILL):
        proctable.kill(proctable.marked(data_dir), signum=signum)
        until = time.monotonic() + within_s
        while proctable.marked(data_dir) and time.monotonic() < until:
            pause.wait(0.02)
    left = proctable.marked(data_dir)
    if left:
        raise StartError(
            f"Processes of an earlier OKMQ on {data_dir} do not end: {', '.join(map(str, left))}."
        )


def take_port(host: str, *, port: int) -> socket.socket:
    """Listen on the port; the web processes inherit the socket, so it stays ours while one of them is replaced.

    Raises:
        StartError: the port is taken, or the host is not one of this machine's names.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        raise StartError(f"OKMQ_HOST={host!r} is not a name or an address of this machine.") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it. Uvicorn takes a socket that it is given for a unix socket and does not
        # set it: the second half of each answer then waited 40 ms for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(address)
        listener.listen(QUEUE)
    except OSError as error:
        listener.close()
        raise StartError(_why_no_port(error, host=host, port=port)) from None
    return listener


def _why_no_port(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken by another program; end it, or set OKMQ_PORT to a free port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"OKMQ_HOST={host!r} is not a name or an address of this machine."
    return f"Port {port} on {host} cannot be used ({error.strerror}); set OKMQ_PORT to another one."
