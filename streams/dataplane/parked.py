"""Polls that are parked, by their token: ended when it is revoked or has expired, without a timer or a look-up each.

When the process is to end, all of them are over: each answers with what there is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from streams.errors import Refusal
from streams.log.errors import LogError

RETRY_S = 0.5


class Parking:
    """One poll, which must end once its token is no longer good; ``is_over``: it is to answer with what there is.

    Its ``waiter``, if it waits, is then done.
    """

    __slots__ = ("_refusal", "expires_ms", "is_over", "waiter")

    def __init__(self, expires_ms: int | None, *, is_over: bool) -> None:
        self.expires_ms = expires_ms
        self.is_over = is_over
        self.waiter: asyncio.Future[None] | None = None
        self._refusal: Refusal | None = None

    def check(self) -> None:
        """Raises Refusal ``unauthorized`` when the poll must end."""
        if self._refusal is not None:
            raise self._refusal

    def end(self, refusal: Refusal) -> None:
        """Have the poll look at once, and see that it must end."""
        self._refusal = refusal
        self._wake()

    def finish(self) -> None:
        """Have the poll look at once, and answer."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class ParkedPolls:
    """The open polls of one process; belongs to its event loop.

    Args:
        look_up: raises Refusal when the token in an ``Authorization`` header opens nothing any more.
    """

    def __init__(self, look_up: Callable[[bytes], Awaitable[object]]) -> None:
        self._look_up = look_up
        self._by_token: dict[bytes, set[Parking]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = self._are_over = False

    @contextmanager
    def park(self, header: bytes, *, expires_ms: int | None) -> Iterator[Parking]:
        """Keep a poll's place for as long as it is open."""
        parking = Parking(expires_ms, is_over=self._are_over)
        self._by_token.setdefault(header, set()).add(parking)
        try:
            yield parking
        finally:
            parked = self._by_token.get(header, set())
            parked.discard(parking)
            if not parked:
                self._by_token.pop(header, None)

    def tokens_changed(self) -> None:
        """Look each token up once; called when some token has changed."""
        self._again = True
        if self._by_token and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look_all_up())

    def end_expired(self) -> None:
        """End the polls of tokens whose time is over; called a few times a second."""
        now_ms = time.time() * 1000
        for header, parked in list(self._by_token.items()):
            expires_ms = next((parking.expires_ms for parking in parked), None)
            if expires_ms is not None and expires_ms <= now_ms:
                self._end(header, "This token has expired.")

    def finish(self) -> None:
        """Have all polls answer now, and none wait any more: the process is to end. Each of its connections says so."""
        if self._are_over:
            return
        self._are_over = True
        for parked in self._by_token.values():
            for parking in parked:
                parking.finish()

    def close(self) -> None:
        """Look nothing up any more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look_all_up(self) -> None:
        while self._again:
            self._again = False
            for header in list(self._by_token):
                try:
                    await self._look_up(header)
                except Refusal as refusal:
                    self._end(header, refusal.message)
                except LogError:
                    self._again = True
            if self._again:
                await asyncio.sleep(RETRY_S)

    def _end(self, header: bytes, sentence: str) -> None:
        for parking in self._by_token.pop(header, set()):
            parking.end(Refusal("unauthorized", sentence))
