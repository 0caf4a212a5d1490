"""A message store behind a line that loses answers: resets, half-open connections, one byte at a time."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, Held, grown, held
from okmq.prove.cuts import running_store
from okmq.prove.faults import PROCESS_S, Struck, Target
from okmq.prove.load import Load
from okmq.prove.machine import look

READ = 65_536
SETTLES_WITHIN_S = 15.0
LOST_EVERY = 20
"""Of so many answers of the store one is lost, and its connection with it."""

LOST_AT_LEAST, LOOK_EVERY_S = 40, 0.5
"""A scene in which fewer were lost says little."""

WARM_UP, MEMORY_AFTER_S = 0.2, 300.0
"""So much of the time it works before it is looked what it has; in less than that memory is only told."""

DEAD_EVERY = 400
"""And after so many a connection stays open and says nothing any more."""


@dataclass(kw_only=True)
class Line:
    """What is between the product and its store; ``manner`` is ``whole``, ``losing`` or ``trickling``.

    Attributes:
        real, shown: the socket of the store, and the one that the product is told of.
        lost, dead: answers that were lost, connections that went silent.
    """

    real: Path
    shown: Path
    manner: str = "whole"
    lost: int = 0
    dead: int = 0
    _answers: int = 0
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

    def lead_to(self, real: Path) -> None:
        """Lead to another store from now on; connections to the one before end."""

        def switch() -> None:
            self.real = real
            for end in self._ends:
                end.close()

        self._loop.call_soon_threadsafe(switch)

    async def _carry(self, listening: threading.Event) -> None:
        server = await asyncio.start_unix_server(self._connection, str(self.shown))
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
                    self.dead += 1
                    await asyncio.Event().wait()
                if self.manner == "losing" and self._answers % LOST_EVERY == 0:
                    self.lost += 1
                    return
                if self.manner == "trickling":
                    for at in range(len(data)):
                        client.write(data[at : at + 1])
                        await client.drain()
                else:
                    client.write(data)
                    await client.drain()


async def _pass_on(client: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await client.read(READ):
            store.write(data)
            await store.drain()


def on_a_bad_line(folder: Path, *, seconds: float) -> Apart:
    """Put the load on a product whose store is behind a bad line for a while.

    It loses answers until ``LOST_AT_LEAST`` are lost, which takes longer on a busy machine, four times as long at most.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with running_store(folder / "store") as (url, _):
        line = Line(real=Path(url.removeprefix("unix://")), shown=folder / "line")
        more = {"OKMQ_WEB_WORKERS": "2", "OKMQ_REDIS_URL": f"unix://{line.shown}"}
        with line.open(), instance(folder, more=more) as product:
            return asyncio.run(_bad_time(product, line, seconds))


async def _bad_time(product: Instance, line: Line, seconds: float) -> Apart:
    load = Load(product.port, token=product.token)
    target = Target(instance=product, scene=load.scene)
    async with load.running():
        await target.publishes_again(monotonic())
        await asyncio.sleep(seconds * WARM_UP)
        before = held(product)
        began = monotonic()
        line.manner = "losing"
        await asyncio.sleep(seconds * 2 / 3)
        for _ in range(round(3 * seconds / LOOK_EVERY_S)):
            if line.lost >= LOST_AT_LEAST:
                break
            await asyncio.sleep(LOOK_EVERY_S)
        line.manner = "trickling"
        await asyncio.sleep(seconds / 3)
        line.manner = "whole"
        ended, since = monotonic(), look()
        back = await target.publishes_again(ended)
        # Before all of it is read for the checker: an answer of ten thousand messages takes its memory.
        after = await _settled(product, before, is_long=seconds >= MEMORY_AFTER_S)
    note = f"{line.lost} answers and {line.dead} connections were lost"
    struck = Struck(
        name="answers of the store lost, one byte at a time",
        began=began,
        back=back,
        recovery_s=back - ended,
        allowed_s=PROCESS_S,
        taken=load.scene.machine.taken(since),
        note=note,
    )
    apart = Apart(load=load, struck=[struck])
    if line.lost < LOST_AT_LEAST / 2:
        apart.wrong.append(f"only {line.lost} answers were lost: it does not count")
    apart.wrong += grown(before, after, what="a bad line", memory=seconds >= MEMORY_AFTER_S)
    return apart


async def _settled(product: Instance, before: Held, *, is_long: bool) -> Held:
    """What is held once connections that went silent are given up."""
    until = monotonic() + SETTLES_WITHIN_S
    while grown(before, after := held(product), what="", memory=is_long):
        if monotonic() > until:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return after
