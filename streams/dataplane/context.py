"""What the handlers of one process share."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from streams.dataplane.directory import Directory, Known
from streams.dataplane.durability import Durability
from streams.dataplane.request import Request
from streams.log import config, lineage, notes, open_polls, stats
from streams.log.client import AsyncLog, Steady, one
from streams.log.errors import NOTHING_DONE, LogError, StoreUnavailable
from streams.log.joined import Appender
from streams.log.notes import UNKNOWN, Note
from streams.log.wake import Wakener

TELL_EVERY_S = 0.2
EPOCH_EVERY_S = 1.0
POLLS_EVERY_S = 2.0

MOST_OWED = 1000
"""Notes that wait for the store; of more the oldest are forgotten."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Context:
    """One process's connections and memory; belongs to its event loop.

    Attributes:
        undo_s: for how long a removal that asks for it can be undone.
        purge_for_good: the scope that a removal needs which cannot.
        touched: internal ids of streams that have changed and that the worker is not yet told of.
        polls: open fetches of this process by internal stream id and group.
        appender: appends for all publishers of this process.
        owed: notes to be left when the store answers again.
        epoch: of the durable store (``lineage``), as it was looked at last; None before.
    """

    log: AsyncLog
    directory: Directory
    wakener: Wakener
    durability: Durability
    undo_s: int = 0
    purge_for_good: str = "manage"
    touched: set[str] = field(default_factory=set)
    owed: deque[Note] = field(default_factory=lambda: deque(maxlen=MOST_OWED))
    polls: Counter[tuple[str, str]] = field(default_factory=Counter)
    appender: Appender = field(init=False)
    epoch: int | None = None
    process: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self.appender = Appender(self.log)

    async def note(
        self,
        known: Known,
        request: Request,
        *,
        kind: str,
        after: Mapping[str, Any],
        group: str = "",
        messages: int = 0,
        size: int = 0,
        deed: str = "",
    ) -> None:
        """Leave a note of what was done, which the worker makes an event of."""
        note = _note(known, request, kind=kind, deed=deed, after=after)
        await self.log.run(notes.put(replace(note, group=group, messages=messages, bytes=size)))

    @asynccontextmanager
    async def on_record(
        self, known: Known, request: Request, *, kind: str, after: Mapping[str, Any], deed: str = ""
    ) -> AsyncIterator[None]:
        """Around taking messages away and the note of it; where the store's answer is lost a note says so later.

        Args:
            after: of that note: what was asked for. How much of it was done is not known.
        """
        try:
            yield
        except (StoreUnavailable, asyncio.CancelledError) as error:
            if not isinstance(error, NOTHING_DONE):
                self.owed.append(_note(known, request, kind=kind, deed=deed, after={**after, **UNKNOWN}))
            raise

    async def tell_worker(self) -> None:
        """Tell the worker, again and again, which streams changed and which tokens were used."""
        told_polls: dict[tuple[str, str], int] = {}
        told_at = epoch_at = 0.0
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            touched, self.touched = self.touched, set()
            polls = {poll: count for poll, count in self.polls.items() if count}
            used = self.directory.take_used()
            self.directory.parked.end_expired()
            try:
                # A process that has nothing to do for long would take a jump of the server's clock for the time.
                await self.log.run(one(Steady()))
                if time.monotonic() - epoch_at > EPOCH_EVERY_S:
                    store = await self.log.run(lineage.look())
                    self.epoch = store.epoch
                    epoch_at = 0.0 if store.is_replica else time.monotonic()
                if touched:
                    await self.log.run(stats.touch(sorted(touched)))
                while self.owed:
                    await self.log.run(notes.put(self.owed[0]))
                    self.owed.popleft()
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


def _note(known: Known, request: Request, *, kind: str, deed: str, after: Mapping[str, Any]) -> Note:
    return Note(
        kind=kind,
        workspace_id=request.grant.workspace_id,
        stream_id=known.stream_id,
        stream=known.name,
        token_id=request.grant.id,
        address=request.address,
        deed=deed,
        after=after,
    )
