"""Real message stores for tests: the product's own Valkey and Debian's Redis, each in a folder of its own."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from okmq.supervision import resp
from okmq.supervision.children import Child, Plan
from okmq.supervision.valkey import ValkeyServer
from streams.log.client import Log
from streams.log.commands import one
from tests.waiting import until

FLAVOURS = ("valkey", pytest.param("redis7", marks=pytest.mark.long))


@dataclass(frozen=True, kw_only=True)
class Store:
    """A running server: its address, that for its keeper, and its process.

    Where it is not ``guarded`` tests look at everything and break what they like, at the address of the product.
    """

    url: str
    keeper_url: str
    child: Child
    guarded: bool = False

    def start(self) -> None:
        """Run it (again) and wait until it answers."""
        self.child.start()
        until(self._answers, within_s=20, what=f"{self.url} answers")
        if not self.guarded:
            keeper = Log(self.keeper_url)
            keeper.run(one(("ACL", "SETUSER", "default", "~*", "&*", "+@all")))
            keeper.close()

    def kill(self) -> None:
        """End it as a crash would."""
        self.child.kill()
        self.child.gone(within_s=10)

    def stop(self) -> None:
        """End it as the supervisor does."""
        self.child.terminate()
        self.child.gone(within_s=10)

    def _answers(self) -> bool:
        assert self.child.lives(), self.child.last_words()
        try:
            resp.ping(self.url)
        except resp.StoreError:
            return False
        return True


@contextmanager
def store(
    folder: Path,
    *,
    flavour: str = "valkey",
    fsync: str | None = "always",
    guarded: bool = False,
    socket: Path | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
) -> Iterator[Store]:
    """A private server with the product's configuration (in memory where ``fsync`` is None), and more ``options``.

    ``redis7`` runs Debian's redis-server with it.
    """
    server = ValkeyServer(folder=folder, socket=socket or folder / "s", fsync=fsync)
    command = server.prepare()
    if flavour == "redis7":
        command[0] = debian_redis()
    plan = Plan(
        name=flavour, command=(*command, *options), environ={**os.environ, **environ}, log=folder / "log"
    )
    running = Store(url=server.url, keeper_url=server.keeper_url, child=Child(plan=plan), guarded=guarded)
    running.start()
    try:
        yield running
    finally:
        if running.child.lives():
            running.stop()


@contextmanager
def hanging(running: Store) -> Iterator[None]:
    """It is there and answers nothing, as long as this lasts."""
    assert running.child.pid is not None
    os.kill(running.child.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(running.child.pid, signal.SIGCONT)


def debian_redis() -> str:
    """The system's redis-server (``scripts/system-packages`` installs it)."""
    found = shutil.which("redis-server")
    assert found, "redis-server is missing: run scripts/system-packages"
    return found
