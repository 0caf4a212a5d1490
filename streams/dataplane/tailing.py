"""Tailing: new messages as server-sent events, for as long as the client listens.

An event's ``id`` is the offset and its ``data`` the message, so a browser's EventSource resumes by itself with
``Last-Event-ID``. A comment line every 15 s keeps proxies from closing a quiet connection.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator

from streams.dataplane.context import Context
from streams.dataplane.request import Request, key_pattern, whole_number
from streams.dataplane.response import EventStream
from streams.errors import Refusal, refusal_of
from streams.log import entries, read
from streams.log.client import Op
from streams.log.entries import Entry
from streams.log.errors import LogError

COMMENT_EVERY_S = 15.0
LOOK_EVERY_S = 5.0
"""How often a quiet tail looks whether its stream is still there; its token ends it at once."""

PAGE = 500


async def tail(context: Context, request: Request, name: str) -> EventStream:
    """``GET /streams/{name}/tail``: after ``Last-Event-ID``, from ``offset``, or else from what comes next."""
    grant = request.grant
    given = request.query("offset", "key")
    start = whole_number("offset", given["offset"], low=0) if "offset" in given else None
    pattern = key_pattern("key", given["key"]) if "key" in given else None
    resumed = request.headers.get(b"last-event-id")
    if resumed:
        start = whole_number("Last-Event-ID", resumed.decode("latin-1"), low=0) + 1
    try:
        at, stream_id = await context.directory.with_stream(
            grant, name, lambda known: _position(context, known.stream_id), may="read"
        )
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    first = at.last + 1 if start is None else start
    return EventStream(_events(context, request, stream_id, first, pattern))


async def _position(context: Context, stream_id: str) -> tuple[read.Position, str]:
    return await context.log.run(read.position(stream_id)), stream_id


async def _events(
    context: Context, request: Request, stream_id: str, start: int, pattern: re.Pattern[str] | None
) -> AsyncIterator[bytes]:
    gone = asyncio.ensure_future(request.disconnected())
    commented = time.monotonic()
    parked = context.directory.parked.park(request.authorization, expires_ms=request.grant.expires_ms)
    try:
        with parked as parking:
            await context.directory.grant(request.authorization)  # may have gone just before it was parked
            while not gone.done() and not parking.is_over:
                waiter = parking.waiter = await context.wakener.watch(stream_id, within_s=LOOK_EVERY_S)
                try:
                    found, start = await context.log.run(_next_page(stream_id, start, pattern))
                    parking.check()
                    for entry in found:
                        yield _event(entry)
                    if found:
                        commented = time.monotonic()
                        continue
                    await asyncio.wait(
                        {waiter, gone}, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    context.wakener.forget(stream_id, waiter)
                if time.monotonic() - commented >= COMMENT_EVERY_S:
                    commented = time.monotonic()
                    yield b":\n\n"
    except (LogError, Refusal):
        return  # the stream, the token or the store is gone; who connects again is told so
    finally:
        gone.cancel()


def _event(entry: Entry) -> bytes:
    # A body comes as it was sent, line breaks and all; they stand between JSON's tokens, so it is the same message
    # after a client has joined the lines by its own.
    lines = entries.to_json(entry).splitlines()
    return b"id: %d\ndata: %b\n\n" % (entries.position(entry)[0], b"\ndata: ".join(lines))


def _next_page(stream_id: str, start: int, pattern: re.Pattern[str] | None) -> Op[tuple[list[Entry], int]]:
    """The next messages, and where to go on after them."""

    def wanted(entry: Entry) -> bool:
        key = entries.key(entry)
        return pattern is None or (key is not None and pattern.fullmatch(key.decode()) is not None)

    at = yield from read.position(stream_id)
    found = yield from read.forward(stream_id, at, start, PAGE, wanted=wanted if pattern else None)
    # The answer's size may have ended the page before its count did, so what follows its last message is yet to be
    # looked at. Only an empty page says that nothing up to the last offset is wanted.
    return found, entries.position(found[-1])[0] + 1 if found else max(start, at.last + 1)
