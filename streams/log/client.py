"""The two drivers of operations, blocking and asynchronous.

An operation is a generator: it yields commands, is sent their replies and returns its result. A driver does not
retry a command that may have been executed: redis-py's default of ten silent retries stores a message twice.
"""

from collections.abc import Sequence
from typing import Any, cast

from redis.exceptions import ConnectionError as StoreConnectionError
from redis.exceptions import RedisError, ResponseError

from streams.log import damage, errors, keys, routing, scripts
from streams.log.blocking import exchanged
from streams.log.breaker import GuardedClient, GuardedWire
from streams.log.clock import SteadyClock
from streams.log.cluster import Nodes, Wires
from streams.log.commands import (
    Clocks,
    Command,
    Op,
    Pipeline,
    Reachable,
    Script,
    Scripts,
    Servers,
    Steady,
    T,
    one,
    small,
)
from streams.log.comparing import compared_ms
from streams.log.connecting import client_of, guarded_client, guarded_wire, wire_of
from streams.log.named import Refused, named
from streams.log.wire import Wire

__all__ = [
    "AsyncLog",
    "Clocks",
    "Command",
    "Log",
    "Op",
    "Pipeline",
    "Reachable",
    "Script",
    "Scripts",
    "Servers",
    "Steady",
    "T",
    "one",
    "small",
]


class Log:
    """Runs operations on blocking connections; safe to share between threads.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://`` of the durable server,
            or that of a cluster (see ``streams.addresses``).
        memory_url: of the server that holds the streams in memory; None where there is none.
        keeps_clock: whether a jump of the durable server's clock is noted for all; true of the worker's only.
    """

    def __init__(self, url: str, *, memory_url: str | None = None, keeps_clock: bool = False) -> None:
        self.clock = SteadyClock(corrects=keeps_clock)
        # redis-py does not type the raw command calls that are all this uses.
        self.client: Any = client_of(url)
        self._memory = None if memory_url is None else guarded_client(memory_url)

    def run(self, op: Op[T]) -> T:
        """Drive an operation to its result.

        Raises:
            LogError: what the operation was refused, or StoreUnavailable.
        """
        command: Command = ()
        try:
            command = next(op)
            while True:
                try:
                    reply = self._send(command)
                except errors.LogError as error:  # of a look at the clock
                    command = op.throw(error)
                except RedisError as error:
                    command = op.throw(named(error, command))
                else:
                    command = op.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)
        except damage.UNREADABLE as error:
            raise damage.found(command, error) from error
        except errors.StreamNotFound:
            stream_id = routing.memory_stream_of(command)
            if stream_id and self.run(one(_is_registered(stream_id))):
                raise errors.StreamLost(routing.LOST) from None
            raise

    def server_of(self, stream_id: str | None = None) -> str:
        """A word for the server that a stream is on, the same for all streams on it; without one, for that of the
        installation's keys. Of a stream of which that is not known it is one of its own.
        """
        return _server_of(self.client, stream_id)

    @property
    def memory_away_since_s(self) -> float | None:
        """Unix seconds since when the memory server gives no answer, as far as this process has asked it; None while
        it does, or where there is none.
        """
        return None if self._memory is None else self._memory.breaker.away_since_s

    def close(self) -> None:
        """Give the connections back."""
        self.client.close()
        if self._memory is not None:
            self._memory.close()

    def _send(self, command: Command) -> Any:
        if isinstance(command, Script):
            return self._script(command)
        if isinstance(command, Steady):
            fresh = self.clock.fresh_ms(latest=command.latest)
            return self.run(compared_ms(self.clock, command)) if fresh is None else fresh
        if isinstance(command, Clocks):
            return self._looked().reading()
        if isinstance(command, Scripts):
            parts = routing.parts(command.calls)
            return routing.merged(parts, [self._scripts(part) for part in parts])
        if isinstance(command, Pipeline):
            plain = routing.parts(command.commands, in_memory=command.in_memory)
            return routing.merged(plain, [self._pipeline(part, apart=command.apart) for part in plain])
        if isinstance(command, Servers):
            return self.client.servers() if isinstance(self.client, Nodes) else [keys.stream_id()]
        if isinstance(command, Reachable):
            return self._reachable(command.stream_ids)
        return self._server(routing.is_for_memory(command)).execute_command(*command)

    def _reachable(self, asked: Sequence[str]) -> Sequence[str]:
        durable, fleeting = routing.by_server(asked)
        if isinstance(self.client, Nodes):
            durable = self.client.reachable(durable)
        if fleeting and (self._memory is None or not self._memory.is_there()):
            fleeting = ()
        return routing.in_order(asked, durable, fleeting)

    def _server(self, in_memory: bool) -> Any:
        if not in_memory:
            return self.client
        if self._memory is None:
            raise StoreConnectionError(routing.NO_MEMORY)
        return self._memory

    def _scripts(self, part: routing.Part[Script]) -> list[Any]:
        try:
            told = self._looked().told()
            calls = [scripts.call(call, told) for call in part.commands]
            replies = _replies(self._server(part.in_memory), calls)
        except RedisError as error:
            return _away(part, error)
        for place, reply in enumerate(replies):
            if isinstance(reply, RedisError):
                replies[place] = self._settled(part.commands[place], reply)
        return replies

    def _pipeline(self, part: routing.Part[Sequence[Any]], *, apart: bool) -> list[Any]:
        replies = _replies(self._server(part.in_memory), part.commands)
        return _told(part.commands, replies, apart=apart)

    def _looked(self) -> SteadyClock:
        """The clock as somebody looked at it lately; where nobody answers as it was known."""
        if self.clock.is_to_look():
            try:
                self.run(compared_ms(self.clock, Steady()))
            except errors.LogError:
                if not self.clock.was_compared:
                    raise
        return self.clock

    def _script(self, call: Script) -> Any:
        server, command = self._server(routing.is_for_memory(call)), scripts.call(call, self._looked().told())
        try:
            return server.execute_command(*command)
        except ResponseError as error:
            if not scripts.is_unknown(error):
                raise
        # Refused before it ran: sending it again cannot double anything.
        return _after_loading(*_replies(server, [scripts.load(), command]))

    def _settled(self, call: Script, refusal: RedisError) -> Any:
        if scripts.is_unknown(refusal):
            try:
                return self._script(call)
            except RedisError as error:
                return named(error, call)
        return named(refusal, call)


class AsyncLog:
    """Runs operations on one connection a server that all coroutines share; belongs to the loop that uses it.

    Args:
        url, memory_url, keeps_clock: as of ``Log``.
    """

    def __init__(self, url: str, *, memory_url: str | None = None, keeps_clock: bool = False) -> None:
        self.clock = SteadyClock(corrects=keeps_clock)
        self._wire = wire_of(url)
        self._memory = None if memory_url is None else guarded_wire(memory_url)

    async def run(self, op: Op[T]) -> T:
        """Drive an operation to its result; the errors are those of ``Log.run``."""
        command: Command = ()
        try:
            command = next(op)
            while True:
                try:
                    reply = await self._send(command)
                except errors.LogError as error:  # of a look at the clock
                    command = op.throw(error)
                except RedisError as error:
                    command = op.throw(named(error, command))
                else:
                    command = op.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)
        except damage.UNREADABLE as error:
            raise damage.found(command, error) from error
        except errors.StreamNotFound:
            stream_id = routing.memory_stream_of(command)
            if stream_id and await self.run(one(_is_registered(stream_id))):
                raise errors.StreamLost(routing.LOST) from None
            raise

    @property
    def keeps_apart(self) -> bool:
        """Whether streams may lie on different servers, so that no call can be for several."""
        return isinstance(self._wire, Wires)

    def server_of(self, stream_id: str | None = None) -> str:
        """As of ``Log``."""
        return _server_of(self._wire, stream_id)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()
        if self._memory is not None:
            await self._memory.close()

    async def _send(self, command: Command) -> Any:
        if isinstance(command, Script):
            return await self._script(command)
        if isinstance(command, Steady):
            fresh = self.clock.fresh_ms(latest=command.latest)
            return await self.run(compared_ms(self.clock, command)) if fresh is None else fresh
        if isinstance(command, Clocks):
            return (await self._looked()).reading()
        if isinstance(command, Scripts):
            parts = routing.parts(command.calls)
            return routing.merged(parts, [await self._scripts(part) for part in parts])
        if isinstance(command, Pipeline):
            plain = routing.parts(command.commands, in_memory=command.in_memory)
            return routing.merged(plain, [await self._pipeline(part, apart=command.apart) for part in plain])
        if isinstance(command, Servers):
            return await self._wire.servers() if isinstance(self._wire, Wires) else [keys.stream_id()]
        if isinstance(command, Reachable):
            return await self._reachable(command.stream_ids)
        return await self._server(routing.is_for_memory(command)).call(command)

    async def _reachable(self, asked: Sequence[str]) -> Sequence[str]:
        durable, fleeting = routing.by_server(asked)
        if isinstance(self._wire, Wires):
            durable = await self._wire.reachable(durable)
        if fleeting and (self._memory is None or not await self._memory.is_there()):
            fleeting = ()
        return routing.in_order(asked, durable, fleeting)

    def _server(self, in_memory: bool) -> Wire | Wires | GuardedWire:
        if not in_memory:
            return self._wire
        if self._memory is None:
            raise StoreConnectionError(routing.NO_MEMORY)
        return self._memory

    async def _scripts(self, part: routing.Part[Script]) -> list[Any]:
        try:
            told = (await self._looked()).told()
            calls = [scripts.call(call, told) for call in part.commands]
            replies = await self._server(part.in_memory).call_many(calls)
        except RedisError as error:
            return _away(part, error)
        for place, reply in enumerate(replies):
            if isinstance(reply, RedisError):
                replies[place] = await self._settled(part.commands[place], reply)
        return replies

    async def _pipeline(self, part: routing.Part[Sequence[Any]], *, apart: bool) -> list[Any]:
        replies = await self._server(part.in_memory).call_many(part.commands)
        return _told(part.commands, replies, apart=apart)

    async def _looked(self) -> SteadyClock:
        """As of ``Log``."""
        if self.clock.is_to_look():
            try:
                await self.run(compared_ms(self.clock, Steady()))
            except errors.LogError:
                if not self.clock.was_compared:
                    raise
        return self.clock

    async def _script(self, call: Script) -> Any:
        server = self._server(routing.is_for_memory(call))
        command = scripts.call(call, (await self._looked()).told())
        try:
            return await server.call(command)
        except ResponseError as error:
            if not scripts.is_unknown(error):
                raise
        loaded, reply = await server.call_many([scripts.load(), command])
        return _after_loading(loaded, reply)

    async def _settled(self, call: Script, refusal: RedisError) -> Any:
        if scripts.is_unknown(refusal):
            try:
                return await self._script(call)
            except RedisError as error:
                return named(error, call)
        return named(refusal, call)


def _replies(client: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    is_ours = isinstance(client, Nodes | GuardedClient)
    return client.exchanged(commands) if is_ours else exchanged(client, commands)


def _server_of(store: Any, stream_id: str | None) -> str:
    if stream_id is not None and keys.in_memory(stream_id):
        return "memory"
    if not isinstance(store, Nodes | Wires):
        return "durable"
    key = keys.REGISTRY if stream_id is None else keys.meta(stream_id)
    return store.node_of(key) or key


def _told(commands: Sequence[Sequence[Any]], replies: list[Any], *, apart: bool) -> list[Any]:
    """The replies to plain commands, named in their places where they are refusals; or the first refusal is raised."""
    for place, reply in enumerate(replies):
        if isinstance(reply, RedisError):
            if not apart:
                raise Refused(reply, tuple(commands[place]))
            replies[place] = named(reply, tuple(commands[place]))
    return replies


def _away(part: routing.Part[Script], error: RedisError) -> list[errors.LogError]:
    """Replies of a server that cannot be asked: without the memory server the durable streams go on."""
    if not part.in_memory:
        raise error
    return [named(error)] * len(part.commands)


def _is_registered(stream_id: str) -> tuple[Any, ...]:
    return ("HEXISTS", keys.REGISTRY, stream_id)


def _after_loading(loaded: Any, reply: Any) -> Any:
    if isinstance(loaded, RedisError) and not scripts.is_known_already(loaded):
        raise loaded
    if isinstance(reply, RedisError):
        raise reply
    return reply
