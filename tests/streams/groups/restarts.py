"""Killing a process of a running product, and seeing it come back."""

import os
import signal

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
