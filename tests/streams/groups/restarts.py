"""Killing a process of a running product, and seeing it come back."""

import http.client
import os
import signal
from pathlib import Path

from tests.product import Product
from tests.waiting import until


def kill_and_wait(product: Product, name: str) -> None:
    """SIGKILL to one process; returns when the supervisor has it back and requests are answered."""
    killed = product.pid(name)
    os.kill(killed, signal.SIGKILL)
    until(lambda: _is_back(product, name, killed), within_s=40, what=f"{name} is back")


def _is_back(product: Product, name: str, killed: int) -> bool:
    status = product.processes()[name]
    return status.state == "running" and status.pid not in (None, killed) and product.answers()


def connection_to(product: Product, name: str) -> http.client.HTTPConnection | None:
    """A connection that this one of several web processes has taken; None when another one took it."""
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=30)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    own_port = f":{connection.sock.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = (row[9] for row in rows if row[2].endswith(own_port))
    if any(_target(file) == f"socket:[{inode}]" for file in Path(f"/proc/{product.pid(name)}/fd").iterdir()):
        return connection
    connection.close()
    return None


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except FileNotFoundError:
        return ""
