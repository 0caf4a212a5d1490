"""The product to measure: started as ``make run`` starts it, alone in a folder, one web worker, without Spark."""

import json
import os
import secrets
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

from okmq.instance import READY_WITHIN_S, Broken, Instance, instance
from streams.log import config
from streams.log.client import Log


@dataclass(frozen=True, kw_only=True)
class Product(Instance):
    """A running product, and what measuring asks of it."""

    def web_anew(self) -> None:
        """Have the web process begin again, so that what it holds is of what follows alone.

        Raises:
            Broken: it was not back within a minute.
        """
        before = self.pid("web")
        os.kill(before, signal.SIGTERM)
        deadline, pause = time.monotonic() + READY_WITHIN_S, Event()
        while time.monotonic() < deadline:
            pause.wait(0.1)
            try:
                if self.pid("web") != before and self.ask("GET", "/account"):
                    return
            except (AssertionError, OSError):  # none yet, or it does not listen yet
                continue
        raise Broken("The web process was not started again.")

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

    def ask(self, method: str, path: str, body: Any = None, *, within_s: float = 30.0) -> Any:
        """The answer to a call of the API; ``path`` stands behind ``/api/v1``."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=within_s) as response:
            data = response.read()
        return json.loads(data) if data else None


@contextmanager
def product(folder: Path) -> Iterator[Product]:
    """Start it, and end it with the block."""
    with instance(folder) as started:
        yield Product(**asdict(started))
