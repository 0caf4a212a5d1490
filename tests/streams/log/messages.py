"""Short ways to say what the tests of the log say often."""

from streams.log import append, entries, read
from streams.log.append import Appended
from streams.log.client import Log, Op
from streams.log.entries import Entry, Message, NewMessage


def message(n: int, *, body: bytes = b"1", key: str | None = None, ttl_s: int | None = None) -> NewMessage:
    return NewMessage(id=f"id-{n}", body=body, key=key, ttl_s=ttl_s)


def fill(log: Log, stream: str, count: int, *, first: int = 1, body: bytes = b"1") -> list[Appended]:
    """Append ``count`` messages with the ids id-<first>, …"""
    stored = []
    for start in range(first, first + count, 1000):
        batch = [message(n, body=body) for n in range(start, min(start + 1000, first + count))]
        stored += log.run(append.append(stream, batch))
    return stored


def browse(log: Log, stream: str, start: int = 1, limit: int = 10_000) -> list[Message]:
    def op() -> Op[list[Entry]]:
        at = yield from read.position(stream)
        return (yield from read.forward(stream, at, start, limit))

    return [entries.parse(entry) for entry in log.run(op())]


def offsets(log: Log, stream: str, start: int = 1) -> list[int]:
    return [message.offset for message in browse(log, stream, start)]
