"""Publishing and reading over HTTP, by clients that cost little themselves: one kept connection each, no library."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bench.measure import Measured, measure

BODY = json.dumps({"origin": "JFK", "carrier": "B6", "flight": 1545, "delay": -4, "note": "x" * 40})


@dataclass(frozen=True, kw_only=True)
class Target:
    """A product on this machine, and a token of every scope."""

    port: int
    token: str


class Connection:
    """One HTTP/1.1 connection that is used again and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, head: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    async def call(self, method: str, path: str, *, body: str = "") -> tuple[int, bytes]:
        """Send one request; the status and the body of its answer."""
        content = body.encode()
        length = f"Content-Length: {len(content)}\r\nContent-Type: application/json\r\n" if content else ""
        self._writer.write(f"{method} /api/v1{path} HTTP/1.1\r\n{self._head}{length}\r\n".encode() + content)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        start = head.index(b"content-length:") + 15
        return status, await self._reader.readexactly(int(head[start : head.index(b"\r\n", start)]))

    async def expect(self, wanted: int, method: str, path: str, *, body: str = "") -> bytes:
        """`call`, and insist on the status."""
        status, answer = await self.call(method, path, body=body)
        if status != wanted:
            raise RuntimeError(f"{method} {path} answered {status}: {answer[:300]!r}")
        return answer

    async def close(self) -> None:
        """Let go of the connection."""
        self._writer.close()
        await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def connections(target: Target, *, count: int) -> AsyncIterator[list[Connection]]:
    """This many connections to the product on this machine."""
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {target.token}\r\n"
    opened = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=32 * 1024 * 1024)
            opened.append(Connection(reader, writer, head=head))
        yield opened
    finally:
        for connection in opened:
            await connection.close()


async def publishing(target: Target, *, batch: int, clients: int, seconds: float) -> Measured:
    """Publish new messages into a stream of its own, and check that each of them has its offset."""
    stream = f"bench-{secrets.token_hex(4)}"
    async with connections(target, count=clients) as opened:
        await opened[0].expect(201, "POST", "/streams/", body=json.dumps({"name": stream, "archive": False}))

        async def publish(client: int, done: int) -> int:
            messages = (f'{{"id":"{client}-{done}-{n}","body":{BODY}}}' for n in range(batch))
            await opened[client].expect(
                201, "POST", f"/streams/{stream}/messages", body=f"[{','.join(messages)}]"
            )
            return batch

        measured = await measure(publish, name="publish", batch=batch, clients=clients, seconds=seconds)
        told = json.loads(await opened[0].expect(200, "GET", f"/streams/{stream}"))
        if told["offset"] != measured.messages or told["messages"] != measured.messages:
            raise RuntimeError(f"{measured.messages} messages were sent, the stream tells of {told}")
        await opened[0].expect(204, "DELETE", f"/streams/{stream}")
    return measured


async def reading(target: Target, *, batch: int, clients: int, seconds: float) -> Measured:
    """Read a stream from its start, batch by batch, again and again."""
    stream = f"bench-{secrets.token_hex(4)}"
    stored = 100 * batch
    async with connections(target, count=clients) as opened:
        await opened[0].expect(201, "POST", "/streams/", body=json.dumps({"name": stream, "archive": False}))
        for start in range(0, stored, 1000):
            messages = (f'{{"id":"{n}","body":{BODY}}}' for n in range(start, start + 1000))
            await opened[0].expect(201, "POST", f"/streams/{stream}/messages", body=f"[{','.join(messages)}]")

        async def read(client: int, done: int) -> int:
            offset = (done + client * 7) * batch % stored + 1
            path = f"/streams/{stream}/messages?offset={offset}&limit={batch}"
            await opened[client].expect(200, "GET", path)
            return batch

        measured = await measure(read, name="read", batch=batch, clients=clients, seconds=seconds)
        await opened[0].expect(204, "DELETE", f"/streams/{stream}")
    return measured
