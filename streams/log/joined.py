"""Publications that meet in one turn of the event loop, appended by one call.

An append of one message is mostly what every call costs: the stream's counters read and written, the ids looked up, the
wake-up. Publishers who wait for their answers ask together, so one call serves several; each is answered as if it
had been alone.
"""

import asyncio
from collections.abc import Sequence

from streams.log.append import BATCH_LIMIT, NOTHING_EXPECTED, Appended, Expectation, append
from streams.log.client import AsyncLog
from streams.log.entries import NewMessage
from streams.log.errors import LogError, StoreUnavailable

LARGEST_BYTES = 1024 * 1024
"""Bodies of one call that several share; what has more goes alone."""


class Appender:
    """Appends for many coroutines; belongs to one event loop."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._open: dict[str, _Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def append(
        self,
        stream_id: str,
        messages: Sequence[NewMessage],
        *,
        expect: Expectation = NOTHING_EXPECTED,
        refuses_when_full: bool = False,
    ) -> list[Appended]:
        """Append a batch as ``streams.log.append.append`` does, with its answers and its errors.

        Two kinds are sent by themselves: what expects something of the stream, and what goes into a stream that
        refuses messages when it is full, since of one call a later message may make room for an earlier one.

        Args:
            refuses_when_full: whether the stream is set to ``discard: new``.
        """
        if refuses_when_full or expect is not NOTHING_EXPECTED:
            return await self._log.run(append(stream_id, messages, expect=expect))
        size = sum([len(message.body) for message in messages])
        batch = self._open.get(stream_id)
        if batch is None or not batch.has_room(len(messages), size):
            batch = self._open[stream_id] = _Batch()
            # The task begins in the next turn, when everybody of this one has joined.
            task = asyncio.create_task(self._send(stream_id, batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        appended = await batch.join(messages, size)
        if appended is None:
            return await self._log.run(append(stream_id, messages))
        return appended

    async def _send(self, stream_id: str, batch: "_Batch") -> None:
        if self._open.get(stream_id) is batch:
            del self._open[stream_id]
        try:
            appended = await self._log.run(append(stream_id, batch.messages))
        except Exception as error:
            batch.refuse(error)
        else:
            batch.settle(appended)


class _Batch:
    """Messages of several publications in order, and who waits for which of them."""

    def __init__(self) -> None:
        self.messages: list[NewMessage] = []
        self._size = 0
        self._waiting: list[tuple[asyncio.Future[list[Appended] | None], int]] = []

    def has_room(self, count: int, size: int) -> bool:
        return len(self.messages) + count <= BATCH_LIMIT and self._size + size <= LARGEST_BYTES

    def join(self, messages: Sequence[NewMessage], size: int) -> "asyncio.Future[list[Appended] | None]":
        """Own messages' places; None when they have to be sent again by themselves."""
        self.messages += messages
        self._size += size
        # A future each: whoever is cancelled cancels what they wait for.
        future: asyncio.Future[list[Appended] | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, len(messages)))
        return future

    def settle(self, appended: list[Appended]) -> None:
        at = 0
        for future, count in self._waiting:
            if not future.done():
                future.set_result(appended[at : at + count])
            at += count

    def refuse(self, error: Exception) -> None:
        """Nothing was stored, so each may try alone, unless nobody knows: then nobody may send anything again."""
        alone = [future for future, _ in self._waiting if not future.done()]
        for future in alone:
            if isinstance(error, StoreUnavailable):
                future.set_exception(type(error)(*error.args))
            elif isinstance(error, LogError) and len(self._waiting) > 1:
                future.set_result(None)
            else:
                future.set_exception(error)
