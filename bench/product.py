"""The product to measure: started as ``make run`` starts it, alone in a folder, one web worker, without Spark."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from okmq import env as environment
from streams.log import config
from streams.log.client import Log
from streams.upkeep import processes

READY_WITHIN_S = 60.0


class Broken(Exception):
    """Something did not start or did not do its part; the message says what, with the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """A running product: its port, its store's address, a token with every scope."""

    data_dir: Path
    port: int
    token: str
    redis_url: str

    def pid(self, name: str) -> int:
        """The process id of ``web``, ``valkey`` or ``worker``."""
        found = {
            status.name: status.pid for status in processes.read(self.data_dir / "run" / "processes.json")
        }
        pid = found[name]
        assert pid is not None
        return pid

    def stream(self) -> tuple[str, str]:
        """Make a stream of no particular settings; its name and internal id."""
        (made,) = self.streams(1)
        return made

    def streams(self, number: int) -> list[tuple[str, str]]:
        """Make so many in one call."""
        run = secrets.token_hex(4)
        names = [f"bench-{run}-{n:04d}" for n in range(number)]
        self.ask("POST", "/streams/", [{"name": name} for name in names])
        log = Log(self.redis_url)
        try:
            known = {held.name: held.stream_id for held in log.run(config.streams())}
        finally:
            log.close()
        return [(name, known[name]) for name in names]

    def last_offset(self, name: str) -> int:
        """The last offset that a stream assigned."""
        return int(self.ask("GET", f"/streams/{name}")["offset"])

    def drop(self, name: str) -> None:
        """Delete a stream with what a round has put into it."""
        self.ask("DELETE", f"/streams/{name}")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a call of the API; ``path`` stands behind ``/api/v1``."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            data = response.read()
        return json.loads(data) if data else None


def free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def child(
    command: list[str], *, environ: dict[str, str], output: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with the block."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=environment.PROJECT, env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file
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
        Broken: it ended, or took longer than a minute.
    """
    deadline, pause = time.monotonic() + READY_WITHIN_S, Event()
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
def product(folder: Path) -> Iterator[Product]:
    """Start it, and end it with the block."""
    data_dir, port, token = folder / "data", free_port(), f"bench_{secrets.token_hex(16)}"
    environ = {
        **clean_environ(),
        "OKMQ_DATA_DIR": str(data_dir),
        "OKMQ_PORT": str(port),
        "OKMQ_ADMIN_TOKEN": token,
        "OKMQ_ADMIN_PASSWORD": secrets.token_hex(8),
    }
    output = folder / "okmq.output"
    with child([sys.executable, "-m", "okmq.up"], environ=environ, output=output) as process:
        wait_for_port(port, process=process, output=output, path="/readyz")
        redis_url = environment.load(environ, dotenv=None).redis_url
        yield Product(data_dir=data_dir, port=port, token=token, redis_url=redis_url)
