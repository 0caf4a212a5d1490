"""Publications that meet in one turn of the event loop, appended together.

An append of one message is mostly what every call costs: the stream's counters read and written, the ids looked up, the
wake-up. Publishers who wait for their answers ask together, so one call serves several of one stream; each is answered
as if it had been alone. Single messages into different streams without limits share a call, too; what else goes into
different streams shares one task, one write and one wait for the replies.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.log import keys
from streams.log.append import (
    BATCH_LIMIT,
    NOTHING_EXPECTED,
    Appended,
    Batch,
    Expectation,
    append,
    append_each,
)
from streams.log.client import AsyncLog
from streams.log.entries import NewMessage
from streams.log.errors import LogError, StoreUnavailable

LARGEST_BYTES = 1024 * 1024
"""Bodies of one call that several share; what has more goes alone."""
MOST_TOGETHER, LARGEST_TOGETHER_BYTES = 100, 64 * 1024
"""Messages and bytes of bodies of different streams that wait for one another: some milliseconds of the store."""


class Appender:
    """Appends for many coroutines; belongs to one event loop."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._open: dict[str, _Joined] = {}
        self._turn: list[_Joined] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def append(
        self,
        stream_id: str,
        messages: Sequence[NewMessage],
        *,
        expect: Expectation = NOTHING_EXPECTED,
        refuses_when_full: bool = False,
        is_unbounded: bool = False,
    ) -> list[Appended]:
        """Append a batch as ``streams.log.append.append`` does, with its answers and its errors.

        Two kinds are sent by themselves: what expects something of the stream, and what goes into a stream that
        refuses messages when it is full, since of one call a later message may make room for an earlier one.

        Args:
            refuses_when_full: whether the stream is set to ``discard: new``.
            is_unbounded: whether it has no limits, as far as is known.
        """
        if refuses_when_full or expect is not NOTHING_EXPECTED:
            return await self._log.run(append(stream_id, messages, expect=expect))
        size = sum([len(message.body) for message in messages])
        batch = self._open.get(stream_id)
        if batch is None or not batch.has_room(len(messages), size):
            batch = self._open[stream_id] = _Joined(stream_id, is_unbounded and not self._log.keeps_apart)
            self._leave(batch)
        appended = await batch.join(messages, size)
        if appended is None:
            return await self._log.run(append(stream_id, messages))
        return appended

    def _leave(self, batch: "_Joined") -> None:
        if keys.in_memory(batch.stream_id):
            # By itself: its server may be away, and a call of its may have to be sent again.
            self._begin(self._send(batch))
            return
        self._turn.append(batch)
        if len(self._turn) == 1:
            self._begin(self._send_turn())

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        # The task begins in the next turn, when everybody of this one has joined.
        task = asyncio.create_task(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _close(self, batch: "_Joined") -> None:
        """Nobody joins it any more."""
        if self._open.get(batch.stream_id) is batch:
            del self._open[batch.stream_id]

    async def _send_turn(self) -> None:
        turn, self._turn = self._turn, []
        for batch in turn:
            self._close(batch)
        first, *others = _shares(turn) if not self._log.keeps_apart else self._shares_by_server(turn)
        for share in others:
            self._begin(self._send_together(share))
        await self._send_together(first)

    def _shares_by_server(self, turn: "Sequence[_Joined]") -> "Iterator[Sequence[_Joined]]":
        """Nobody waits for a node that has nothing of theirs."""
        by_server: dict[str, list[_Joined]] = {}
        for batch in turn:
            by_server.setdefault(self._log.server_of(batch.stream_id), []).append(batch)
        for part in by_server.values():
            yield from _shares(part)

    async def _send_together(self, share: "Sequence[_Joined]") -> None:
        try:
            outcomes = await self._log.run(append_each(share))
        except Exception as error:
            for batch in share:
                batch.refuse(error)
            return
        for batch, outcome in zip(share, outcomes, strict=True):
            if isinstance(outcome, LogError):
                batch.refuse(outcome)
            else:
                batch.settle(outcome)

    async def _send(self, batch: "_Joined") -> None:
        self._close(batch)
        try:
            appended = await self._log.run(append(batch.stream_id, batch.messages))
        except Exception as error:
            batch.refuse(error)
        else:
            batch.settle(appended)


def _shares(turn: "Sequence[_Joined]") -> "Iterator[Sequence[_Joined]]":
    """The batches of a turn in their order, by calls that wait together."""
    share: list[_Joined] = []
    count = size = 0
    for batch in turn:
        count, size = count + len(batch.messages), size + batch.size
        if share and (count > MOST_TOGETHER or size > LARGEST_TOGETHER_BYTES):
            yield share
            share, count, size = [], len(batch.messages), batch.size
        share.append(batch)
    yield share


@dataclass(slots=True)
class _Joined(Batch):
    """Messages of several publications in order, the bytes of their bodies, and who waits for which of them."""

    size: int = 0
    waiting: list[tuple[asyncio.Future[list[Appended] | None], int]] = field(default_factory=list)

    def has_room(self, count: int, size: int) -> bool:
        return len(self.messages) + count <= BATCH_LIMIT and self.size + size <= LARGEST_BYTES

    def join(self, messages: Sequence[NewMessage], size: int) -> "asyncio.Future[list[Appended] | None]":
        """Own messages' places; None when they have to be sent again by themselves."""
        self.messages += messages
        self.size += size
        # A future each: whoever is cancelled cancels what they wait for.
        future: asyncio.Future[list[Appended] | None] = asyncio.get_running_loop().create_future()
        self.waiting.append((future, len(messages)))
        return future

    def settle(self, appended: list[Appended]) -> None:
        at = 0
        for future, count in self.waiting:
            if not future.done():
                future.set_result(appended[at : at + count])
            at += count

    def refuse(self, error: Exception) -> None:
        """Nothing was stored, so each may try alone, unless nobody knows: then nobody may send anything again."""
        alone = [future for future, _ in self.waiting if not future.done()]
        for future in alone:
            if isinstance(error, StoreUnavailable):
                future.set_exception(type(error)(*error.args))
            elif isinstance(error, LogError) and len(self.waiting) > 1:
                future.set_result(None)
            else:
                future.set_exception(error)
