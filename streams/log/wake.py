"""Waking those who wait for messages: one subscription a process, one channel a stream that is waited on."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from streams.log import keys, routing
from streams.log.errors import StoreUnavailable

LINGER_S = 30.0
"""How long a channel stays subscribed after its last waiter, so that the next poll finds it."""

RECONNECT_S = 0.2

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Channel:
    subscribed: asyncio.Future[None]
    waiters: set[asyncio.Future[None]] = field(default_factory=set)
    idle_since: float = 0.0


class Wakener:
    """Futures that are done when a stream gets messages or is deleted.

    A waiter is only told to look again; it must look once more after ``watch`` returned and before it waits, and
    nothing is missed between. After a lost connection everybody is told to look again. Belongs to one event loop.

    Args:
        url, memory_url: as of ``Log``.
        on_changed: called with ``stream`` or ``token`` when configuration has changed, and with both after a
            lost connection, when changes may have been missed.
    """

    def __init__(self, url: str, *, memory_url: str | None = None, on_changed: Callable[[str], None]) -> None:
        self._durable = _Ear(url, on_changed=on_changed)
        self._memory = None if memory_url is None else _Ear(memory_url)

    def start(self) -> None:
        """Begin to listen."""
        self._durable.start()

    async def stop(self) -> None:
        """End; everybody who waits is told to look again."""
        await self._durable.stop()
        if self._memory is not None:
            await self._memory.stop()

    async def watch(self, stream_id: str, *, within_s: float) -> asyncio.Future[None]:
        """A future that is done as soon as there is a reason to look at the stream again; ``forget`` it after use.

        Args:
            within_s: how long to wait for a server that is away; then the future is done only once it is back.
        """
        ear = self._of(stream_id)
        ear.start()
        return await ear.watch(keys.wake(stream_id), within_s=within_s)

    def forget(self, stream_id: str, waiter: asyncio.Future[None]) -> None:
        """Take a future back."""
        self._of(stream_id).forget(keys.wake(stream_id), waiter)

    def waiting(self, stream_id: str) -> int:
        """How many wait on a stream in this process."""
        return self._of(stream_id).waiting(keys.wake(stream_id))

    def _of(self, stream_id: str) -> "_Ear":
        if not keys.in_memory(stream_id):
            return self._durable
        if self._memory is None:
            raise StoreUnavailable(routing.NO_MEMORY)
        return self._memory


class _Ear:
    """One subscription at one server. With ``on_changed`` it hears of configuration, too."""

    def __init__(self, url: str, *, on_changed: Callable[[str], None] | None = None) -> None:
        self._client = redis.asyncio.Redis.from_url(url, socket_connect_timeout=2.0, protocol=2)
        self._on_changed = on_changed
        self._channels: dict[str, _Channel] = {}
        self._pubsub: redis.asyncio.client.PubSub | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._complained = False

    def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._unsubscribe_idle())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._wake_all()
        await self._client.aclose()

    async def watch(self, name: str, *, within_s: float) -> asyncio.Future[None]:
        channel = self._channels.get(name)
        loop = asyncio.get_running_loop()
        if channel is None:
            channel = self._channels[name] = _Channel(loop.create_future())
            await self._subscribe(name)
        waiter: asyncio.Future[None] = loop.create_future()
        channel.waiters.add(waiter)
        if not channel.subscribed.done():
            try:
                await asyncio.wait({channel.subscribed}, timeout=within_s)
            except asyncio.CancelledError:
                self.forget(name, waiter)
                raise
        return waiter

    def forget(self, name: str, waiter: asyncio.Future[None]) -> None:
        channel = self._channels.get(name)
        if channel is not None:
            channel.waiters.discard(waiter)
            if not channel.waiters:
                channel.idle_since = time.monotonic()

    def waiting(self, name: str) -> int:
        channel = self._channels.get(name)
        return len(channel.waiters) if channel else 0

    async def _subscribe(self, name: str) -> None:
        # Without a connection the channel is subscribed with all others as soon as there is one.
        if self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._pubsub.subscribe(name)

    async def _listen(self) -> None:
        while True:
            try:
                async with self._client.pubsub() as pubsub:
                    # A subscription of nothing would end at once, so there is always this channel.
                    await pubsub.subscribe(keys.CHANGED, *self._channels)
                    self._pubsub = pubsub
                    self._complained = False
                    self._changed("stream")
                    self._changed("token")
                    self._wake_all()
                    async for message in pubsub.listen():
                        self._heard(message)
            except (RedisError, OSError) as error:
                if not self._complained:
                    log.warning("Wake-ups are interrupted: %s", error)
                self._complained = True  # once an outage: it is tried again five times a second
            finally:
                self._pubsub = None
            await asyncio.sleep(RECONNECT_S)

    def _changed(self, kind: str) -> None:
        if self._on_changed is not None:
            self._on_changed(kind)

    def _heard(self, message: dict[str, Any]) -> None:
        name = message["channel"].decode()
        if message["type"] == "message" and name == keys.CHANGED:
            self._changed(message["data"].decode())
            return
        channel = self._channels.get(name)
        if channel is None:
            return
        if message["type"] == "subscribe" and not channel.subscribed.done():
            channel.subscribed.set_result(None)
        elif message["type"] == "message":
            _wake(channel)

    def _wake_all(self) -> None:
        for channel in self._channels.values():
            _wake(channel)

    async def _unsubscribe_idle(self) -> None:
        while True:
            await asyncio.sleep(LINGER_S / 3)
            before = time.monotonic() - LINGER_S
            idle = [
                name
                for name, channel in self._channels.items()
                if not channel.waiters and channel.subscribed.done() and channel.idle_since < before
            ]
            for name in idle:
                del self._channels[name]
            if idle and self._pubsub is not None:
                with contextlib.suppress(RedisError, OSError):
                    await self._pubsub.unsubscribe(*idle)


def _wake(channel: _Channel) -> None:
    for waiter in channel.waiters:
        if not waiter.done():
            waiter.set_result(None)
