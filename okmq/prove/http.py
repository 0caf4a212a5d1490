"""A small HTTP/1.1 client for many coroutines: one kept connection each, and no second attempt behind one's back."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

DEADLINE_S = 15.0
"""No answer takes longer; a poll's own wait comes on top."""

LARGEST_HEAD = 64 * 1024


class NotSent(Exception):
    """Nobody listens: the request was not sent."""


class NoAnswer(Exception):
    """It was sent, and no answer came: nobody knows whether it was done."""


class TooLate(NoAnswer):
    """No answer by the deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers (names in lower case) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """Speaks to one server for one coroutine.

    Args:
        port: on the loopback.
        token: of the API.
    """

    def __init__(self, port: int, *, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes | None = None, *, wait_s: float = 0.0) -> Answer:
        """The answer to one request; ``wait_s`` is what it may wait for on purpose.

        Raises:
            NotSent, NoAnswer: there is none.
        """
        reader, writer = await self._connected()
        head = f"{method} /api/v1{path} HTTP/1.1\r\n{self._head}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        try:
            async with asyncio.timeout(DEADLINE_S + wait_s):
                writer.write(head.encode() + b"\r\n" + (body or b""))
                answer = await _answer(reader)
        except TimeoutError:
            self.close()
            raise TooLate(f"nothing within {DEADLINE_S + wait_s:g} s") from None
        except (OSError, EOFError, ValueError) as error:
            self.close()
            raise NoAnswer(str(error) or type(error).__name__) from None
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection") == "close":
            self.close()
        return answer

    def close(self) -> None:
        """Let the connection go."""
        streams, self._streams = self._streams, None
        if streams is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                streams[1].close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            try:
                async with asyncio.timeout(DEADLINE_S):
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=LARGEST_HEAD)
            except (OSError, TimeoutError) as error:
                raise NotSent(str(error)) from None
        return self._streams


async def _answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(status=int(first.split(" ", 2)[1]), headers=headers, body=body)
