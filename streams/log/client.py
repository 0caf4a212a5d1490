"""The two drivers of operations, blocking and asynchronous.

An operation is a generator: it yields commands, is sent their replies and returns its result. A driver does not
retry a command that may have been executed: redis-py's default of ten silent retries stores a message twice.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.retry import Retry

from streams.log import errors, scripts
from streams.log.wire import Wire

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Script:
    """One call of a script: its name, its keys, its arguments."""

    name: str
    keys: Sequence[str]
    args: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Plain commands sent together, each ``(name, argument, …)``; the reply is their list of replies."""

    commands: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Scripts:
    """Several script calls sent together; a reply is the script's, or the LogError that it raised."""

    calls: Sequence[Script]


Command = Script | Scripts | Pipeline | tuple[Any, ...]
Op = Generator[Command, Any, T]


def one(command: Command) -> Op[Any]:
    """The operation that sends one command and returns its reply."""
    return (yield command)


class Log:
    """Runs operations on blocking connections; safe to share between threads.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
    """

    def __init__(self, url: str) -> None:
        # redis-py does not type the raw command calls that are all this uses.
        self.client: Any = redis.Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=ANSWER_TIMEOUT_S,
            protocol=2,
        )
        self.client.response_callbacks.clear()  # replies are parsed by the operations, from raw bytes

    def run(self, op: Op[T]) -> T:
        """Drive an operation to its result.

        Raises:
            LogError: what the operation was refused, or StoreUnavailable.
        """
        try:
            command = next(op)
            while True:
                try:
                    reply = self._send(command)
                except RedisError as error:
                    command = op.throw(named(error))
                else:
                    command = op.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    def close(self) -> None:
        """Give the connections back."""
        self.client.close()

    def _send(self, command: Command) -> Any:
        if isinstance(command, Script):
            return self._script(command)
        if isinstance(command, Scripts):
            pipe = self.client.pipeline(transaction=False)
            for call in command.calls:
                pipe.execute_command("EVALSHA", scripts.load(call.name).sha, *_arguments(call))
            replies = pipe.execute(raise_on_error=False)
            return [self._settled(call, reply) for call, reply in zip(command.calls, replies, strict=True)]
        if isinstance(command, Pipeline):
            pipe = self.client.pipeline(transaction=False)
            for each in command.commands:
                pipe.execute_command(*each)
            return pipe.execute()
        return self.client.execute_command(*command)

    def _script(self, call: Script) -> Any:
        source, arguments = scripts.load(call.name), _arguments(call)
        try:
            return self.client.execute_command("EVALSHA", source.sha, *arguments)
        except NoScriptError:  # refused before it ran: sending it again cannot double anything
            return self.client.execute_command("EVAL", source.text, *arguments)

    def _settled(self, call: Script, reply: Any) -> Any:
        if isinstance(reply, NoScriptError):
            try:
                return self._script(call)
            except RedisError as error:
                return named(error)
        return named(reply) if isinstance(reply, RedisError) else reply


class AsyncLog:
    """Runs operations on one connection that all coroutines share; belongs to the event loop that uses it."""

    def __init__(self, url: str) -> None:
        self._wire = Wire(url, connect_timeout_s=CONNECT_TIMEOUT_S, answer_timeout_s=ANSWER_TIMEOUT_S)

    async def run(self, op: Op[T]) -> T:
        """Drive an operation to its result; the errors are those of ``Log.run``."""
        try:
            command = next(op)
            while True:
                try:
                    reply = await self._send(command)
                except RedisError as error:
                    command = op.throw(named(error))
                else:
                    command = op.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    async def close(self) -> None:
        """Close the connection."""
        await self._wire.close()

    async def _send(self, command: Command) -> Any:
        if isinstance(command, Script):
            return await self._script(command)
        if isinstance(command, Scripts):
            calls = [("EVALSHA", scripts.load(call.name).sha, *_arguments(call)) for call in command.calls]
            replies = await self._wire.call_many(calls)
            return [
                await self._settled(call, reply) for call, reply in zip(command.calls, replies, strict=True)
            ]
        if isinstance(command, Pipeline):
            replies = await self._wire.call_many(command.commands)
            for reply in replies:
                if isinstance(reply, RedisError):
                    raise reply
            return replies
        return await self._wire.call(command)

    async def _script(self, call: Script) -> Any:
        source, arguments = scripts.load(call.name), _arguments(call)
        try:
            return await self._wire.call(("EVALSHA", source.sha, *arguments))
        except NoScriptError:
            return await self._wire.call(("EVAL", source.text, *arguments))

    async def _settled(self, call: Script, reply: Any) -> Any:
        if isinstance(reply, NoScriptError):
            try:
                return await self._script(call)
            except RedisError as error:
                return named(error)
        return named(reply) if isinstance(reply, RedisError) else reply


def _arguments(call: Script) -> tuple[Any, ...]:
    return (len(call.keys), *call.keys, *call.args)


def named(error: RedisError) -> errors.LogError:
    """The log's own error for what the server or the connection said."""
    if not isinstance(error, ResponseError):
        return errors.StoreUnavailable(str(error) or type(error).__name__)
    code, _, rest = str(error).partition(" ")
    match code:
        case "OKMQ_NO_STREAM":
            return errors.StreamNotFound()
        case "OKMQ_NO_GROUP":
            return errors.GroupNotFound()
        case "OKMQ_LEASE_LOST":
            return errors.LeaseLost(rest)
        case "OKMQ_SEALED":
            return errors.StreamSealed()
        case "OKMQ_DENIED":
            return errors.OperationDenied(rest)
        case "OKMQ_TOO_LARGE":
            index, size, limit = map(int, rest.split())
            return errors.MessageTooLarge(index, size, limit)
        case "OKMQ_FULL":
            limit_name, allowed = rest.split()
            return errors.StreamFull(limit_name, int(allowed))
        case "OKMQ_RANGE":
            return errors.OffsetOutOfRange(int(rest))
        case "OKMQ_WRONG_LAST" | "OKMQ_WRONG_ID":
            last, _, last_id = rest.partition(" ")
            kind = "last_offset" if code == "OKMQ_WRONG_LAST" else "last_id"
            return errors.WrongExpectation(kind, last_offset=int(last), last_id=last_id)
        case "OKMQ_WRONG_KEY":
            held, _, key = rest.partition(" ")
            return errors.WrongExpectation("last_key_offset", key=key, key_offset=int(held))
        case _:
            # LOADING, OOM, MISCONF, BUSY, READONLY, CLUSTERDOWN …: the server is there and refuses for now.
            return errors.StoreUnavailable(str(error))
