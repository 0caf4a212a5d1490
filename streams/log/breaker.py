"""A circuit breaker before a server: that it gives no answer is found out once, and known to all callers from then on.

While it is open a call fails at once, with nothing sent. At most one call at a time, and one a second, asks whether the
server is back; that takes no longer than ``ASKED_WITHIN_S`` either. A server that refuses connections says so without
being waited for: it opens nothing, and is back with the first call that it takes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as StoreTimeoutError

from streams.log.blocking import exchanged
from streams.log.wire import Command, Wire

ASKED_WITHIN_S = 1.0
"""A server that has not answered the simplest question by then is taken for away."""

ASKED_EVERY_S = 1.0

AWAY = "the server has not answered in time, and is asked again every second"


class Breaker:
    """What is known of whether a server answers; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since_s: float | None = None
        self._is_open = False
        self._ask_from = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it is known to give no answer."""
        return self._is_open

    @property
    def away_since_s(self) -> float | None:
        """Unix seconds of the first call in vain since it answered last; None while it answers."""
        return self._since_s

    def is_due(self) -> bool:
        """Whether to ask an open one again now, which is then taken for being done."""
        now = time.monotonic()
        with self._lock:
            if now < self._ask_from:
                return False
            self._ask_from = now + ASKED_WITHIN_S + ASKED_EVERY_S
            return True

    def answered(self) -> None:
        """It gave an answer, be it a refusal."""
        if self._since_s is None:
            return
        with self._lock:
            self._since_s, self._is_open = None, False

    def failed(self, error: RedisError) -> None:
        """A call ended so."""
        if isinstance(error, ResponseError):
            self.answered()
            return
        with self._lock:
            if self._since_s is None:
                self._since_s = time.time()
            if isinstance(error, StoreTimeoutError):
                self._is_open, self._ask_from = True, time.monotonic() + ASKED_EVERY_S


@cache
def breaker_of(url: str) -> Breaker:
    """The one of a server, in this process: what one connection finds out holds for all others to it."""
    return Breaker()


class GuardedClient:
    """A client of one server for callers that wait, behind a breaker; safe to share between threads.

    Args:
        client: of redis-py.
        asking: one of the same server that waits ``ASKED_WITHIN_S`` at most.
        breaker: that of the server.
    """

    def __init__(self, client: Any, *, asking: Any, breaker: Breaker) -> None:
        self._client, self._asking = client, asking
        self.breaker = breaker

    def execute_command(self, *command: Any) -> Any:
        """The reply to one command.

        Raises:
            RedisError: it was refused, the connection broke and it is not known whether it was executed, or the server
                is known to be away and nothing was sent.
        """
        return self._guarded(lambda: self._client.execute_command(*command))

    def exchanged(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands that go out together, as of ``blocking.exchanged``."""
        replies: list[Any] = self._guarded(lambda: exchanged(self._client, commands))
        return replies

    def is_there(self) -> bool:
        """Whether the server answers, found out within ``ASKED_WITHIN_S``."""
        return (not self.breaker.is_open or self.breaker.is_due()) and self._asked()

    def pubsub(self) -> Any:
        """A subscription."""
        return self._client.pubsub()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
        self._asking.close()

    def _guarded(self, call: Callable[[], Any]) -> Any:
        if self.breaker.is_open and not (self.breaker.is_due() and self._asked()):
            raise StoreTimeoutError(AWAY)
        try:
            reply = call()
        except RedisError as error:
            self.breaker.failed(error)
            raise
        self.breaker.answered()
        return reply

    def _asked(self) -> bool:
        try:
            self._asking.execute_command("PING")
        except ResponseError:
            pass
        except RedisError as error:
            self.breaker.failed(error)
            return False
        self.breaker.answered()
        return True


class GuardedWire:
    """The connection of all coroutines to one server, behind a breaker; belongs to one event loop, as ``Wire`` does.

    Args:
        breaker: that of the server.
    """

    def __init__(self, wire: Wire, *, breaker: Breaker) -> None:
        self._wire = wire
        self._asking: asyncio.Task[bool] | None = None
        self.breaker = breaker

    async def call(self, command: Command) -> Any:
        """The reply to one command; the errors are those of ``GuardedClient.execute_command``."""
        return await self._guarded(self._wire.call, command)

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands sent together, as of ``Wire.call_many``."""
        replies: list[Any] = await self._guarded(self._wire.call_many, commands)
        return replies

    async def is_there(self) -> bool:
        """Whether the server answers, found out within ``ASKED_WITHIN_S``; while it is away, what is known."""
        if self.breaker.is_open:
            if self.breaker.is_due():
                self._ask()
            return False
        return await asyncio.shield(self._ask())

    async def close(self) -> None:
        """Close the connection."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self._wire.close()

    async def _guarded(self, call: Callable[[Any], Awaitable[Any]], asked: Any) -> Any:
        if self.breaker.is_open and not (self.breaker.is_due() and await asyncio.shield(self._ask())):
            raise StoreTimeoutError(AWAY)
        try:
            reply = await call(asked)
        except RedisError as error:
            self.breaker.failed(error)
            raise
        self.breaker.answered()
        return reply

    def _ask(self) -> "asyncio.Task[bool]":
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._asked())
        return self._asking

    async def _asked(self) -> bool:
        try:
            async with asyncio.timeout(ASKED_WITHIN_S):
                with suppress(ResponseError):
                    await self._wire.call(("PING",))
        except TimeoutError:
            self.breaker.failed(StoreTimeoutError(AWAY))
            return False
        except RedisError as error:
            self.breaker.failed(error)
            return False
        self.breaker.answered()
        return True
