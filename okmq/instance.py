"""A product of one's own for a while: in a folder, on a port and with a token that nobody else has.

What measures (``bench``) and what proves (``okmq.prove``) start it as ``make run`` does, and end it with their block.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from okmq import env as environment
from okmq.supervision import rights
from streams.upkeep import processes

READY_WITHIN_S = 60.0


class Broken(Exception):
    """Something did not start or did not do its part; the message says what, with the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A running product: its folder, its port, a token with every scope, admin's password, where its store is."""

    data_dir: Path
    port: int
    token: str
    password: str
    redis_url: str

    @property
    def keeper_url(self) -> str:
        """Where its store is for whom everything is allowed (``okmq.supervision.rights``)."""
        return rights.keeper_url(self.redis_url, self.data_dir / "valkey")

    def status(self, name: str) -> processes.ProcessStatus:
        """What the supervisor says of ``web``, ``valkey`` or ``worker``."""
        told = {status.name: status for status in processes.read(self.data_dir / "run" / "processes.json")}
        return told[name]

    def pid(self, name: str) -> int:
        """The process id of one that runs."""
        pid = self.status(name).pid
        assert pid is not None
        return pid


def busy() -> float:
    """How many processes want each core of the machine, at least 1: everything takes so many times as long."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def child(
    command: list[str], *, environ: Mapping[str, str], output: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with the block. Ctrl-C on the terminal is not for it: whoever started it ends it."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=environment.PROJECT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_port(
    port: int, *, process: "subprocess.Popen[bytes]", output: Path, path: str | None = None
) -> None:
    """Return when something accepts connections there, and answers a GET of ``path`` with 200 if one is given.

    Raises:
        Broken: it ended, or took longer than a minute of a core.
    """
    deadline, pause = time.monotonic() + READY_WITHIN_S * busy(), Event()
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if path is None:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            else:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1).close()
            return
        except (OSError, urllib.error.URLError):
            pause.wait(0.05)
    raise Broken(f"{process.args!r} did not start:\n{output.read_text()[-2000:]}")


def clean_environ() -> dict[str, str]:
    """This process's environment without the machine's own OKMQ settings, those of ``.env`` silenced."""
    known = {*os.environ, *environment.read_dotenv(environment.PROJECT / ".env")}
    ours = {name: "" for name in known if name.startswith("OKMQ_")}
    return {**os.environ, **ours, "OKMQ_HISTORY": "off", "OKMQ_FSYNC": "always"}


@contextmanager
def instance(folder: Path, *, more: Mapping[str, str] | None = None) -> Iterator[Instance]:
    """Start one on ``folder / "data"``, empty or as an earlier one left it, and end it with the block."""
    data_dir, port, token = folder / "data", free_port(), f"own_{secrets.token_hex(16)}"
    password = secrets.token_hex(8)
    environ = {
        **clean_environ(),
        **(more or {}),
        "OKMQ_DATA_DIR": str(data_dir),
        "OKMQ_PORT": str(port),
        "OKMQ_ADMIN_TOKEN": token,
        "OKMQ_ADMIN_PASSWORD": password,
    }
    output = folder / "okmq.output"
    with child([sys.executable, "-m", "okmq.up"], environ=environ, output=output) as process:
        wait_for_port(port, process=process, output=output, path="/readyz")
        redis_url = environment.load(environ, dotenv=None).redis_url
        yield Instance(data_dir=data_dir, port=port, token=token, password=password, redis_url=redis_url)
