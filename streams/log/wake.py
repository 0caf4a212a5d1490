"""Waking those who wait for messages: one subscription a process, one channel a stream that is waited on."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from streams import addresses
from streams.log import keys, routing
from streams.log.connecting import wires
from streams.log.errors import StoreUnavailable

LINGER_S = 30.0
"""How long a channel stays subscribed after its last waiter, so that the next poll finds it."""

RECONNECT_S = 0.2

SUBSCRIBE_AGAIN_S = 0.5
"""A subscription that is not confirmed by then is asked for again."""

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
        self._nodes = wires(url) if addresses.is_cluster(url) else None
        # In a cluster every node tells all others what is said, so one is enough: that of the names and tokens.
        self._durable = _Ear(url if self._nodes is None else self._nodes.home, on_changed=on_changed)
        self._memory = None if memory_url is None else _Ear(memory_url)

    def start(self) -> None:
        """Begin to listen."""
        self._durable.start()

    async def stop(self) -> None:
        """End; everybody who waits is told to look again."""
        await self._durable.stop()
        if self._memory is not None:
            await self._memory.stop()
        if self._nodes is not None:
            await self._nodes.close()

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
    """One subscription at one server, or at the one that is said for each connection. With ``on_changed`` it hears of
    configuration, too.
    """

    def __init__(
        self, where: str | Callable[[], Awaitable[str]], *, on_changed: Callable[[str], None] | None = None
    ) -> None:
        self._where = where
        self._clients: dict[str, redis.asyncio.Redis] = {}
        self._on_changed = on_changed
        self._channels: dict[str, _Channel] = {}
        self._connection: Any = None
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
        for client in self._clients.values():
            await client.aclose()

    async def watch(self, name: str, *, within_s: float) -> asyncio.Future[None]:
        channel = self._channels.get(name)
        loop = asyncio.get_running_loop()
        if channel is None:
            channel = self._channels[name] = _Channel(loop.create_future())
        waiter: asyncio.Future[None] = loop.create_future()
        channel.waiters.add(waiter)
        deadline = time.monotonic() + within_s
        try:
            while not channel.subscribed.done() and (left := deadline - time.monotonic()) > 0:
                # Asked on a connection that was being made or lost, it may never be answered.
                await self._subscribe(name)
                await asyncio.wait({channel.subscribed}, timeout=min(left, SUBSCRIBE_AGAIN_S))
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

    async def _subscribe(self, *names: str, verb: str = "SUBSCRIBE") -> None:
        # Without a connection the channels are subscribed with all others as soon as there is one.
        connection = self._connection
        if connection is not None and connection.is_connected:
            with contextlib.suppress(RedisError, OSError):
                await connection.send_command(verb, *names, check_health=False)

    async def _listen(self) -> None:
        while True:
            # A connection of the client library's, without its PubSub: that one makes a lost connection again in
            # whichever task comes first, under the others, and they fail or are never heard.
            connection: Any = None
            try:
                connection = await self._made()
                await connection.connect()
                # A subscription of nothing would be none, so there is always this channel.
                asked = set(self._channels)
                await connection.send_command("SUBSCRIBE", keys.CHANGED, *asked, check_health=False)
                self._connection = connection
                late = self._channels.keys() - asked
                if late:  # they came while the connection was made
                    await self._subscribe(*late)
                self._complained = False
                while True:
                    self._heard(*await connection.read_response())
            except (RedisError, OSError) as error:
                if not self._complained:
                    log.warning("Wake-ups are interrupted: %s", error)
                self._complained = True  # once an outage: it is tried again five times a second
            finally:
                self._connection = None
                if connection is not None:
                    await connection.disconnect(nowait=True)
            await asyncio.sleep(RECONNECT_S)

    async def _made(self) -> Any:
        """A connection of the client library's that is not made yet."""
        url = self._where if isinstance(self._where, str) else await self._where()
        if url not in self._clients:
            # It waits for as long as nothing is said.
            self._clients[url] = redis.asyncio.Redis.from_url(
                url, socket_connect_timeout=2.0, socket_timeout=None, protocol=2
            )
        return self._clients[url].connection_pool.make_connection()

    def _changed(self, kind: str) -> None:
        if self._on_changed is not None:
            self._on_changed(kind)

    def _heard(self, kind: bytes, channel_name: bytes, data: Any) -> None:
        name = channel_name.decode()
        if name == keys.CHANGED:
            if kind == b"message":
                self._changed(data.decode())
            else:  # subscribed, with all others that were asked for: what was said meanwhile was missed
                self._changed("stream")
                self._changed("token")
                self._wake_all()
            return
        channel = self._channels.get(name)
        if channel is None:
            return
        if kind == b"subscribe" and not channel.subscribed.done():
            channel.subscribed.set_result(None)
        elif kind == b"message":
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
            if idle:
                await self._subscribe(*idle, verb="UNSUBSCRIBE")


def _wake(channel: _Channel) -> None:
    for waiter in channel.waiters:
        if not waiter.done():
            waiter.set_result(None)
