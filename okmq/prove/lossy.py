"""A message store behind a bad line: answers lost or late, connections reset or half-open, one byte at a time."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Literal

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, Held, grown, held
from okmq.prove.cuts import running_store
from okmq.prove.faults import PROCESS_S, Struck, Target
from okmq.prove.load import Load
from okmq.prove.machine import look

READ = 65_536
SETTLES_WITHIN_S = 15.0
LOST_EVERY = 20
"""Of so many answers of the store one is lost, and its connection with it: closed, or reset."""

LOST_AT_LEAST, LOOK_EVERY_S = 40, 0.5
"""A scene in which fewer were lost says little."""

WARM_UP, MEMORY_AFTER_S = 0.2, 300.0
"""So much of the time it works, with some of each manner, before it is looked what it has; in less than that memory is
only told."""

DEAD_EVERY = 400
"""While answers are lost, after so many a connection stays open and says nothing any more."""

LATE_S = (0.01, 0.3)
"""By so much an answer is late while they are."""

Manner = Literal["whole", "losing", "resetting", "late", "trickling"]
SHARES: dict[Manner, float] = {"losing": 0.4, "resetting": 0.2, "late": 0.2, "trickling": 0.2}
"""Of the time, one after the other."""

RESET = struct.pack("ii", 1, 0)
"""Nothing that waits is sent, and the other side is told that it was cut off (SO_LINGER)."""


@dataclass(kw_only=True)
class Was:
    """What became of answers and connections: lost, reset, silent with both sides open, late, and single bytes."""

    lost: int = 0
    reset: int = 0
    dead: int = 0
    late: int = 0
    alone: int = 0

    def since(self, before: "Was") -> "Was":
        return Was(
            lost=self.lost - before.lost,
            reset=self.reset - before.reset,
            dead=self.dead - before.dead,
            late=self.late - before.late,
            alone=self.alone - before.alone,
        )

    def __str__(self) -> str:
        return (
            f"{self.lost:,} answers were lost with their connections, {self.reset:,} connections reset, {self.dead:,} "
            f"half-open; {self.late:,} answers late by up to {LATE_S[1]:g} s, {self.alone:,} bytes sent one at a time"
        )


@dataclass(kw_only=True)
class Line:
    """What is between the product and its store, and how it carries answers.

    Attributes:
        real: the socket of the store.
        shown: the one that the product is told of; None: a port of the loopback, which ``url`` tells once it is open.
    """

    real: Path
    shown: Path | None = None
    manner: Manner = "whole"
    was: Was = field(default_factory=Was)
    port: int = 0
    _answers: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(8))
    _ends: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def open(self) -> Iterator[None]:
        """It carries, in a thread of its own, while the block runs."""
        listening = threading.Event()
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._carry(listening)))
        thread.start()
        listening.wait(10)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join()
            self._loop.close()

    @property
    def url(self) -> str:
        """Its address for the product."""
        return f"unix://{self.shown}" if self.shown else f"redis://127.0.0.1:{self.port}"

    def lead_to(self, real: Path) -> None:
        """Lead to another store from now on; connections to the one before end."""

        def switch() -> None:
            self.real = real
            for end in self._ends:
                end.close()

        self._loop.call_soon_threadsafe(switch)

    async def _carry(self, listening: threading.Event) -> None:
        if self.shown:
            server: asyncio.Server = await asyncio.start_unix_server(self._connection, str(self.shown))
        else:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await self._ended.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            store, to_store = await asyncio.open_unix_connection(str(self.real))
        except OSError:
            to_client.close()
            return
        self._ends |= {to_client, to_store}
        asking = asyncio.create_task(_pass_on(client, to_store))
        answering = asyncio.create_task(self._answer(store, to_client))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        for task in (asking, answering):
            task.cancel()
        for end in (to_client, to_store):
            self._ends.discard(end)
            end.close()

    async def _answer(self, store: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await store.read(READ):
                self._answers += 1
                if self.manner == "losing" and self._answers % DEAD_EVERY == 0:
                    self.was.dead += 1
                    await asyncio.Event().wait()
                if self.manner in {"losing", "resetting"} and self._answers % LOST_EVERY == 0:
                    self._cut_off(client)
                    return
                if self.manner == "late":
                    self.was.late += 1
                    await asyncio.sleep(self._chance.uniform(*LATE_S))
                step = 1 if self.manner == "trickling" else len(data)
                for at in range(0, len(data), step):
                    client.write(data[at : at + step])
                    await client.drain()
                self.was.alone += len(data) if self.manner == "trickling" else 0

    def _cut_off(self, client: asyncio.StreamWriter) -> None:
        if self.manner == "losing":
            self.was.lost += 1
            return
        self.was.reset += 1
        client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.transport.abort()


async def _pass_on(client: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await client.read(READ):
            store.write(data)
            await store.drain()


def on_a_bad_line(folder: Path, *, seconds: float) -> Apart:
    """Put the load on a product whose store is behind a bad line for a while.

    It loses answers until ``LOST_AT_LEAST`` are lost, and resets connections until half as many are, which takes longer
    on a busy machine; four times as long at most.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with running_store(folder / "store") as (url, _):
        line = Line(real=Path(url.removeprefix("unix://")))
        with line.open():
            more = {"OKMQ_WEB_WORKERS": "2", "OKMQ_REDIS_URL": line.url}
            with instance(folder, more=more) as product:
                return asyncio.run(_bad_time(product, line, seconds))


async def _bad_time(product: Instance, line: Line, seconds: float) -> Apart:
    load = Load(product.port, token=product.token)
    target = Target(instance=product, scene=load.scene)
    is_long = seconds >= MEMORY_AFTER_S
    async with load.running():
        await target.publishes_again(monotonic())
        # What a process makes when it meets a fault for the first time, and keeps, is no growth.
        await _every_manner(line, seconds * WARM_UP)
        await target.publishes_again(monotonic())
        before, was = held(product), replace(line.was)
        began = monotonic()
        await _every_manner(line, seconds, least={"losing": LOST_AT_LEAST, "resetting": LOST_AT_LEAST // 2})
        ended, since = monotonic(), look()
        back = await target.publishes_again(ended)
        # Before all of it is read for the checker: an answer of ten thousand messages takes its memory.
        after = await _settled(product, before, is_long=is_long)
    came = line.was.since(was)
    struck = Struck(
        name="a bad line to the store",
        began=began,
        back=back,
        recovery_s=back - ended,
        allowed_s=PROCESS_S,
        taken=load.scene.machine.taken(since),
        note=f"{came}; {_told(before, after)}",
    )
    apart = Apart(load=load, struck=[struck])
    if came.lost < LOST_AT_LEAST / 2 or came.reset < LOST_AT_LEAST / 4 or not came.late or not came.alone:
        apart.wrong.append(f"{came}: it does not count")
    if is_long and not came.dead:
        apart.wrong.append("no connection was half-open: it does not count")
    apart.wrong += grown(before, after, what="a bad line", is_long=is_long)
    return apart


def _told(before: Held, after: Held) -> str:
    files, was = (sum(each.files for each in some.values()) for some in (after, before))
    threads, were = (sum(each.threads for each in some.values()) for some in (after, before))
    return f"{was} files and connections before and {files} after, {were} and {threads} threads"


async def _every_manner(line: Line, seconds: float, *, least: Mapping[Manner, int] | None = None) -> None:
    """One after the other, and in the end whole again; so many answers are lost or connections reset at least."""
    for manner, share in SHARES.items():
        line.manner, was = manner, replace(line.was)
        await asyncio.sleep(seconds * share)
        for _ in range(round(3 * seconds / LOOK_EVERY_S)):
            came = line.was.since(was)
            if (came.reset if manner == "resetting" else came.lost) >= (least or {}).get(manner, 0):
                break
            await asyncio.sleep(LOOK_EVERY_S)
    line.manner = "whole"


async def _settled(product: Instance, before: Held, *, is_long: bool) -> Held:
    """What is held once connections that went silent are given up."""
    until = monotonic() + SETTLES_WITHIN_S
    while grown(before, after := held(product), what="", is_long=is_long):
        if monotonic() > until:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return after
