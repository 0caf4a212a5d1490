"""A cluster of servers behind the face of one: each command goes to the node that has its key (see ``topology``).

Of redis-py's own cluster client only the slot of a key is taken: it sends a command again that may have been executed.
Here a command is sent again only where a node refused it because another one has the key.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from redis.exceptions import ConnectionError as StoreConnectionError
from redis.exceptions import RedisError

from streams.log.breaker import GuardedClient, GuardedWire
from streams.log.topology import HOME, SLOTS, Command, Topology, is_moved, placed, told


class Nodes:
    """A cluster for callers that wait; safe to share between threads, as redis-py's clients are.

    Args:
        url: of the cluster.
        connect: makes the client of one node.
    """

    def __init__(self, url: str, *, connect: Callable[[str], GuardedClient]) -> None:
        self._topology, self._connect = Topology(url), connect
        self._clients: dict[str, GuardedClient] = {}

    def execute_command(self, *command: Any) -> Any:
        """The reply to one command.

        Raises:
            RedisError: it was refused, or the connection broke and it is not known whether it was executed.
        """
        (reply,) = self.exchanged([command])
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def exchanged(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands; a refusal, or that a node is away, stands in the place of its reply.

        Raises:
            RedisError: no node of the cluster answers.
        """
        self._look()
        sent = [told(command) for command in commands]
        replies = self._sent(sent)
        again = [place for place, reply in enumerate(replies) if is_moved(reply)]
        if again:
            self._topology.doubt()
            self._look()
            for place, reply in zip(again, self._sent([sent[place] for place in again]), strict=True):
                replies[place] = reply
        return replies

    def node_of(self, key: str) -> str:
        """The address of the node that has a key; empty while it is not known."""
        return self._topology.owner(placed(key))

    def pubsub(self) -> Any:
        """A subscription at the node of the installation's keys."""
        self._look()
        return self._client(self._topology.node_of(HOME)).pubsub()

    def servers(self) -> list[str]:
        """An internal id for each node (see ``commands.Servers``)."""
        self._look()
        return self._topology.servers()

    def reachable(self, stream_ids: Sequence[str]) -> Sequence[str]:
        """The streams that ``commands.Reachable`` asks for."""
        self._look()
        for node, asked in self._topology.to_ask_again():
            self._part(node, [asked])
        return self._topology.reachable(stream_ids)

    def close(self) -> None:
        """Give the connections back."""
        for client in self._clients.values():
            client.close()

    def _sent(self, commands: Sequence[Command]) -> list[Any]:
        replies: list[Any] = [None] * len(commands)
        for node, places in self._topology.shared_out(commands).items():
            part = self._part(node, [commands[place] for place in places])
            for place, reply in zip(places, part, strict=True):
                replies[place] = reply
        return replies

    def _part(self, node: str, commands: Sequence[Command]) -> list[Any]:
        asked_at = time.monotonic()
        try:
            replies = self._client(node).exchanged(commands)
        except RedisError as error:
            replies = [error] * len(commands)
        self._topology.heard(node, replies, asked_at=asked_at)
        return replies

    def _client(self, node: str) -> GuardedClient:
        if not node:
            raise StoreConnectionError("no node of the cluster has the slot of this key")
        if node not in self._clients:
            self._clients[node] = self._connect(node)
        return self._clients[node]

    def _look(self) -> None:
        if not self._topology.is_due(now=time.monotonic()):
            return
        away: RedisError | None = None
        for node in self._topology.asked():
            try:
                if self._topology.learn(self._client(node).execute_command(*SLOTS), asked=node):
                    return
            except RedisError as error:
                away = error
        if away is not None:
            raise away


class Wires:
    """A cluster for coroutines, one connection a node; belongs to one event loop, as ``wire.Wire`` does.

    Args:
        url: of the cluster.
        connect: makes the connection to one node.
    """

    def __init__(self, url: str, *, connect: Callable[[str], GuardedWire]) -> None:
        self._topology, self._connect = Topology(url), connect
        self._wires: dict[str, GuardedWire] = {}
        self._looking: asyncio.Task[None] | None = None
        self._asking: dict[str, asyncio.Task[list[Any]]] = {}

    async def call(self, command: Command) -> Any:
        """The reply to one command; the errors are those of ``Nodes.execute_command``."""
        (reply,) = await self.call_many([command])
        if isinstance(reply, RedisError):
            raise reply
        return reply

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands, as of ``Nodes.exchanged``; the nodes are asked side by side."""
        await self._look()
        sent = [told(command) for command in commands]
        replies = await self._sent(sent)
        again = [place for place, reply in enumerate(replies) if is_moved(reply)]
        if again:
            self._topology.doubt()
            await self._look(wait=True)
            for place, reply in zip(again, await self._sent([sent[place] for place in again]), strict=True):
                replies[place] = reply
        return replies

    def node_of(self, key: str) -> str:
        """The address of the node that has a key; empty while it is not known."""
        return self._topology.owner(placed(key))

    async def home(self) -> str:
        """The address of the node of the installation's keys.

        Raises:
            RedisError: it is not known.
        """
        self._topology.doubt()
        await self._look(wait=True)
        return self._topology.node_of(HOME)

    async def servers(self) -> list[str]:
        """An internal id for each node (see ``commands.Servers``)."""
        await self._look()
        return self._topology.servers()

    async def reachable(self, stream_ids: Sequence[str]) -> Sequence[str]:
        """The streams that ``commands.Reachable`` asks for."""
        await self._look()
        for node, asked in self._topology.to_ask_again():
            if node not in self._asking:  # which may take long: it is known the next time
                self._asking[node] = asyncio.create_task(self._part(node, [asked]))
                self._asking[node].add_done_callback(partial(self._asked, node))
        return self._topology.reachable(stream_ids)

    async def close(self) -> None:
        """Close the connections."""
        pending = [*self._asking.values(), *([self._looking] if self._looking else [])]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
        for wire in self._wires.values():
            await wire.close()

    def _asked(self, node: str, _: "asyncio.Task[list[Any]]") -> None:
        del self._asking[node]

    async def _sent(self, commands: Sequence[Command]) -> list[Any]:
        shares = self._topology.shared_out(commands)
        parts = await asyncio.gather(
            *(self._part(node, [commands[place] for place in places]) for node, places in shares.items())
        )
        replies: list[Any] = [None] * len(commands)
        for places, part in zip(shares.values(), parts, strict=True):
            for place, reply in zip(places, part, strict=True):
                replies[place] = reply
        return replies

    async def _part(self, node: str, commands: Sequence[Command]) -> list[Any]:
        asked_at = time.monotonic()
        try:
            replies = await self._wire(node).call_many(commands)
        except RedisError as error:
            replies = [error] * len(commands)
        self._topology.heard(node, replies, asked_at=asked_at)
        return replies

    def _wire(self, node: str) -> GuardedWire:
        if not node:
            raise StoreConnectionError("no node of the cluster has the slot of this key")
        if node not in self._wires:
            self._wires[node] = self._connect(node)
        return self._wires[node]

    async def _look(self, *, wait: bool = False) -> None:
        """Ask for the slots where that is due; while those of before are known, only ``wait`` waits for the answer."""
        if self._looking is None and self._topology.is_due(now=time.monotonic()):
            self._looking = asyncio.create_task(self._ask())
            self._looking.add_done_callback(_heard)
        if self._looking is not None and (wait or not self._topology.is_known):
            # One that asks is enough, and whoever goes away takes nobody along.
            await asyncio.shield(self._looking)

    async def _ask(self) -> None:
        away: RedisError | None = None
        try:
            for node in self._topology.asked():
                try:
                    if self._topology.learn(await self._wire(node).call(SLOTS), asked=node):
                        return
                except RedisError as error:
                    away = error
        finally:
            self._looking = None
        if away is not None:
            raise away


def _heard(asking: "asyncio.Task[None]") -> None:
    """Nobody may wait for it: that it failed is not to be told a second time."""
    if not asking.cancelled():
        asking.exception()
