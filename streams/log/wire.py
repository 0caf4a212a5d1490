"""One connection to the store for many coroutines: their commands go out together, replies come back in order.

What redis-py's asynchronous client does for each command (take a connection from a pool, two timeouts, pack in
Python, a stream reader) costs more than the command. Here a command is packed in C, joins what the same turn of the
event loop sends, and is a future until its reply. A slow command would hold up the others, so none is sent here that
blocks; the store has one thread anyway.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import hiredis
from redis.asyncio.connection import parse_url
from redis.exceptions import ConnectionError as StoreConnectionError
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError
from redis.exceptions import TimeoutError as StoreTimeoutError

Command = Sequence[Any]

LOOKS = 8
"""How often a connection is looked at within the time that an answer may take: at most one part of it later it is
given up."""


class Wire:
    """Sends commands; belongs to one event loop. The connection is made when it is needed, and again when it breaks.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        connect_timeout_s: for the connection and its greeting.
        answer_timeout_s: a connection on which an answer is overdue is given up, with all that wait on it.
    """

    def __init__(self, url: str, *, connect_timeout_s: float, answer_timeout_s: float) -> None:
        self._options: dict[str, Any] = dict(parse_url(url))
        self._is_tls = url.startswith("rediss://")
        self._connect_timeout_s, self._answer_timeout_s = connect_timeout_s, answer_timeout_s
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None

    async def call(self, command: Command) -> Any:
        """The reply to one command.

        Raises:
            RedisError: the server's refusal, or the connection broke and it is not known whether it was executed.
        """
        (reply,) = await self._send(hiredis.pack_command(tuple(command)), 1)
        if isinstance(reply, RedisError):
            raise reply
        return reply

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to several commands sent together; a refusal stands in the place of its reply.

        Raises:
            RedisError: the connection broke and it is not known which were executed.
        """
        packed = b"".join([hiredis.pack_command(tuple(command)) for command in commands])
        return await self._send(packed, len(commands)) if commands else []

    async def _send(self, packed: bytes, number: int) -> list[Any]:
        link = self._link
        if link is None or link.closed:
            link = await self._connected()
        return await link.send(packed, number)

    async def close(self) -> None:
        """Close the connection, and one that is being made."""
        if self._connecting is not None:
            # Waited for: it may have been made in this very turn, and is then handed over only in the next one.
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._link is not None:
            self._link.abort("closed")
        await asyncio.sleep(0)  # the event loop closes the socket in its next turn

    async def _connected(self) -> "_Link":
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._settle)
        return await asyncio.shield(self._connecting)

    def _settle(self, task: "asyncio.Task[_Link]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._link = task.result()

    async def _connect(self) -> "_Link":
        loop, options = asyncio.get_running_loop(), self._options
        link = _Link(self._answer_timeout_s)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                if path := options.get("path"):
                    await loop.create_unix_connection(lambda: link, path)
                else:
                    host, port = options.get("host", "localhost"), options.get("port", 6379)
                    await loop.create_connection(lambda: link, host, port, ssl=self._tls())
                for command in self._greeting():
                    (reply,) = await link.send(hiredis.pack_command(command), 1)
                    if isinstance(reply, RedisError):
                        raise reply
        except BaseException as error:
            link.abort("not connected")
            if isinstance(error, TimeoutError):
                raise StoreTimeoutError("no connection in time") from None
            if isinstance(error, OSError):
                raise StoreConnectionError(str(error)) from None
            raise
        return link

    def _tls(self) -> ssl.SSLContext | None:
        options = self._options
        if not self._is_tls:
            return None
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if options.get("ssl_cert_reqs") == "none":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate := options.get("ssl_certfile"):
            context.load_cert_chain(certificate, options.get("ssl_keyfile"))
        return context

    def _greeting(self) -> list[tuple[Any, ...]]:
        commands: list[tuple[Any, ...]] = []
        if password := self._options.get("password"):
            user = self._options.get("username")
            commands.append(("AUTH", user, password) if user else ("AUTH", password))
        if db := self._options.get("db"):
            commands.append(("SELECT", db))
        return commands


class _Link(asyncio.Protocol):
    def __init__(self, answer_timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=cast(Any, _refusal))
        self._waiting: deque[tuple[asyncio.Future[list[Any]], int]] = deque()
        self._replies: list[Any] = []
        self._out: list[bytes] = []
        self._look_every_s = answer_timeout_s / LOOKS
        self._answered = self._answered_before = 0
        self._looks_in_vain = 0
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False

    def send(self, packed: bytes, number: int) -> "asyncio.Future[list[Any]]":
        """Queue so many packed commands; their replies.

        Raises:
            ConnectionError: nothing was sent.
        """
        if self.closed:
            raise StoreConnectionError("the connection was lost")
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packed)
        future = self._loop.create_future()
        self._waiting.append((future, number))
        return future

    def abort(self, reason: str, *, kind: type[RedisError] = StoreConnectionError) -> None:
        """Give the connection up."""
        self.connection_lost(kind(reason))
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._loop.call_later(self._look_every_s, self._watch)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._next_reply()) is not False:
            if not self._waiting:
                self.abort("a reply that nobody asked for")
                return
            self._replies.append(reply)
            future, number = self._waiting[0]
            if len(self._replies) == number:
                self._waiting.popleft()
                self._answered += 1
                replies, self._replies = self._replies, []
                if not future.done():  # whoever asked may have been cancelled; the replies are passed over
                    future.set_result(replies)

    def _next_reply(self) -> Any:
        try:
            return self._reader.gets()
        except hiredis.ProtocolError as error:
            self.abort(f"this is no Redis: {error}")
            return False

    def connection_lost(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        kind = type(error) if isinstance(error, RedisError) else StoreConnectionError
        for future, _ in self._waiting:
            if not future.done():
                future.set_exception(kind(str(error or "the connection was lost")))
        self._waiting.clear()

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self.closed:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _watch(self) -> None:
        in_vain = self._waiting and self._answered == self._answered_before
        self._looks_in_vain = self._looks_in_vain + 1 if in_vain else 0
        self._answered_before = self._answered
        # What is waited for at the first of these looks may have been asked just before.
        if self._looks_in_vain > LOOKS:
            self.abort("no answer in time", kind=StoreTimeoutError)
            return
        self._timer = self._loop.call_later(self._look_every_s, self._watch)


def _refusal(text: str) -> RedisError:
    if text.startswith("OOM "):
        return OutOfMemoryError(text.removeprefix("OOM "))
    return ResponseError(text.removeprefix("ERR "))  # which servers put before an error of one word
