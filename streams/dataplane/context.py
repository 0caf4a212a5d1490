"""What the handlers of one process share."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from streams.dataplane.directory import Directory, Known
from streams.dataplane.durability import Durability
from streams.dataplane.fetching import Fetching
from streams.dataplane.request import Request
from streams.log import config, lineage, notes, open_polls, stats
from streams.log.client import AsyncLog, Op, Steady, T, one
from streams.log.errors import LogError, is_nothing_done
from streams.log.joined import Appender
from streams.log.notes import Begun, Note
from streams.log.wake import Wakener

TELL_EVERY_S = 0.2
EPOCH_EVERY_S = 1.0
POLLS_EVERY_S = 2.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Deed:
    """Something that is being done to messages.

    Attributes:
        note: of what was asked for.
        begun: the sign of it in the store; "" once it is over.
    """

    log: AsyncLog
    note: Note
    begun: Begun

    async def run(self, operation: Op[T]) -> T:
        """Carry out an operation that belongs to it."""
        return await self.log.run(notes.meanwhile(self.begun, operation))

    async def done(self, *, after: Mapping[str, Any], messages: int = 0, size: int = 0) -> None:
        """Leave the note of what was done."""
        note = replace(self.note, after=after, messages=messages, bytes=size)
        await self.log.run(notes.put(note, begun=self.begun))
        self.begun = ""

    async def withdraw(self) -> None:
        """Nothing was done, unless it was noted; without the store the worker tells what was asked for."""
        if self.begun:
            with contextlib.suppress(LogError):
                await self.log.run(notes.end(self.begun))


@dataclass(slots=True)
class Context:
    """One process's connections and memory; belongs to its event loop.

    Attributes:
        undo_s: for how long a removal that asks for it can be undone.
        purge_for_good: the scope that a removal needs which cannot.
        touched: internal ids of streams that have changed and that the worker is not yet told of.
        polls: open fetches of this process by internal stream id and group.
        fetching: from which groups somebody fetches.
        appender: appends for all publishers of this process.
        epoch: of the durable store (``lineage``), as it was looked at last; None before.
    """

    log: AsyncLog
    directory: Directory
    wakener: Wakener
    durability: Durability
    undo_s: int = 0
    purge_for_good: str = "manage"
    touched: set[str] = field(default_factory=set)
    polls: Counter[tuple[str, str]] = field(default_factory=Counter)
    fetching: Fetching = field(default_factory=Fetching)
    appender: Appender = field(init=False)
    epoch: int | None = None
    process: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self.appender = Appender(self.log)

    @asynccontextmanager
    async def on_record(
        self,
        known: Known,
        request: Request,
        *,
        kind: str,
        asked: Mapping[str, Any],
        group: str = "",
        together: str = "",
    ) -> AsyncIterator[Deed]:
        """Around doing something to messages and the note of it, which the worker makes an event of.

        Where the block does not end, or the store's answer to it is lost, the event tells what was asked for.

        Args:
            asked: ``after`` of that event.
            together: the same word for deeds of which one event is made.
        """
        note = Note(
            kind=kind,
            workspace_id=request.grant.workspace_id,
            stream_id=known.stream_id,
            stream=known.name,
            token_id=request.grant.id,
            address=request.address,
            group=group,
            deed=together,
            after=asked,
        )
        doing = Deed(self.log, note, begun=await self.log.run(notes.begin(note)))
        try:
            yield doing
        except LogError as error:
            if is_nothing_done(error):
                await doing.withdraw()
            raise
        else:
            await doing.withdraw()

    async def look_at_line(self) -> bool:
        """Note where the store stands in its line of servers; whether that is settled: a replica may be promoted.

        Raises:
            LogError: the store does not answer.
        """
        found = await self.log.run(lineage.look())
        self.epoch = found.epoch
        return not found.is_replica

    async def tell_worker(self) -> None:
        """Tell the worker, again and again, which streams changed and which tokens were used."""
        told_polls: dict[tuple[str, str], int] = {}
        told_at = epoch_at = 0.0
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            touched, self.touched = self.touched, set()
            polls = {poll: count for poll, count in self.polls.items() if count}
            touched |= self.fetching.changed(polls)
            used = self.directory.take_used()
            self.directory.parked.end_expired()
            try:
                # A process that has nothing to do for long would take a jump of the server's clock for the time.
                await self.log.run(one(Steady()))
                if time.monotonic() - epoch_at > EPOCH_EVERY_S:
                    epoch_at = time.monotonic() if await self.look_at_line() else 0.0
                if touched:
                    await self.log.run(stats.touch(sorted(touched)))
                if polls != told_polls or (polls and time.monotonic() - told_at > POLLS_EVERY_S):
                    await self.log.run(open_polls.told(self.process, polls))
                    told_polls, told_at = polls, time.monotonic()
                if used:
                    await self.log.run(config.tokens_used(used))
            except LogError as error:
                self.touched |= touched
                epoch_at = 0.0  # when it answers again it may be another one
                log.warning("The worker cannot be told what changed: %s", error)

    async def close(self) -> None:
        """Give everything back."""
        await self.wakener.stop()
        self.directory.parked.close()
        with contextlib.suppress(LogError):
            await self.log.close()
