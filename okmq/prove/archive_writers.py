"""Who writes into archived streams while the archive is killed at, and what each has had acknowledged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from okmq.prove.archived import message
from okmq.prove.callers import AGAIN_AFTER_S, Caller, outcome_of, receipts_of
from okmq.prove.history import Operation
from okmq.prove.load import Load

BATCH, PAUSE_S = 20, 0.15
AT_ONCE = 3
"""Streams that are written to at a time; whenever all is whole again a new one takes the place of the oldest."""


class Writer(Caller):
    """The only one who publishes into its stream: batch after batch, each until it is taken."""

    def __init__(self, load: Load, stream: str, *, life: int) -> None:
        super().__init__(load.scene, stream, "w")
        self.prefix = f"{stream}.{life}"
        self.last = 0
        self.deleted = False
        self.ends = asyncio.Event()

    async def _work(self) -> None:
        while not self.ends.is_set():
            numbers = range(self.last + 1, self.last + self._random.randint(1, BATCH) + 1)
            batch = [message(self.prefix, number) for number in numbers]
            taken = await self._taken(batch, numbers)
            while not taken:
                await asyncio.sleep(AGAIN_AFTER_S)
                taken = await self._taken(batch, numbers)
            self.last = numbers[-1]
            await asyncio.sleep(PAUSE_S)

    async def _taken(self, batch: list[dict[str, object]], numbers: range) -> bool:
        """Send a batch once; whether it was acknowledged."""
        began, answer = await self.ask("POST", "/messages", batch)
        done = Operation(began=began, ended=monotonic(), outcome=outcome_of(answer), stream=self.stream)
        self.scene.history.note(done)
        if answer is None or answer.status == 503:
            return False
        if answer.status >= 300:
            self.scene.surprised("publish", answer)
            return False
        offsets = [each.offset for each in receipts_of(answer.body)]
        if offsets != list(numbers):
            self.scene.surprises[f"{self.prefix}: {numbers} got other offsets"] += 1
        return True


class Writers:
    """Streams that come and go: some are written to, some rest, one is deleted and made again under its name."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._tasks: dict[Writer, asyncio.Task[None]] = {}
        self.all: list[Writer] = []

    @property
    def living(self) -> list[Writer]:
        """Those whose streams were not deleted."""
        return [each for each in self.all if not each.deleted]

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """They write inside of the block; at its end all that was sent is acknowledged."""
        try:
            for number in range(1, AT_ONCE + 1):
                await self._begin(f"s{number}")
            yield
            for writer in list(self._tasks):
                await self._end(writer)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def change(self) -> None:
        """The oldest is written to no more, and a new one is; every third time it is deleted and made again."""
        oldest = next(iter(self._tasks))
        await self._end(oldest)
        made = len(self.all) - AT_ONCE
        if made % 3 == 1:
            await self._load.ask("DELETE", f"/streams/{oldest.stream}")
            oldest.deleted = True
            await self._begin(oldest.stream)
        else:
            await self._begin(f"s{len(self.all) + 1}")

    async def _begin(self, stream: str) -> None:
        await self._load.ask("POST", "/streams/", {"name": stream})
        writer = Writer(self._load, stream, life=len(self.all))
        self.all.append(writer)
        self._tasks[writer] = asyncio.create_task(writer.run())

    async def _end(self, writer: Writer) -> None:
        writer.ends.set()
        await self._tasks.pop(writer)
