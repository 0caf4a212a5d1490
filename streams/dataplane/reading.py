"""Reading: from the committed offset with long poll, and browsing, which moves nothing."""

import asyncio
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from streams.dataplane.context import Context
from streams.dataplane.request import (
    Disconnected,
    Request,
    invalid,
    key_pattern,
    seconds,
    unix_ms,
    whole_number,
)
from streams.dataplane.response import Response
from streams.errors import refusal_of
from streams.log import entries, read
from streams.log.client import Op
from streams.log.config import TokenGrant
from streams.log.entries import LONGEST_ID, Entry
from streams.log.errors import LogError, StreamNotFound

MOST = 10_000
LONGEST_WAIT_S = 30.0

SEARCH_WITHIN_S = 5.0
"""How long one request looks through messages for those of a key or an id; the answer then names where to go on."""

_PARAMETERS = ("limit", "wait", "offset", "from", "before", "key", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What one read asks for; without any of the last five it reads on from the committed offset."""

    limit: int
    wait_s: float
    offset: int | None = None
    from_ms: int | None = None
    before: int | None = None
    key: re.Pattern[str] | None = None
    id: str | None = None

    @property
    def is_browse(self) -> bool:
        return any(part is not None for part in (self.offset, self.from_ms, self.before, self.key, self.id))


async def read_messages(context: Context, request: Request, name: str) -> Response:
    """``GET /streams/{name}/messages``."""
    grant = request.grant
    await context.directory.stream(grant, name, may="read")
    query = _parse(request)
    deadline = time.monotonic() + query.wait_s
    found = await _find(context, grant, name, query)
    if found.is_nothing_yet and time.monotonic() < deadline:
        found = await _wait(context, request, name, found, deadline)
    body = b"[" + b",".join(map(entries.to_json, found.entries)) + b"]"
    return Response(body, headers=_link(request, name, query, len(found.entries), found.stopped_at))


def _link(request: Request, name: str, query: Query, found: int, stopped_at: int | None) -> Mapping[str, str]:
    """Where a search that stopped goes on: from there, for what is still wanted."""
    if stopped_at is None:
        return {}
    given = request.query(*_PARAMETERS)
    on = "offset" if query.before is None else "before"
    following = {**given, on: str(stopped_at), "limit": str(query.limit - found)}
    return {"Link": f'</api/v1/streams/{name}/messages?{urlencode(following)}>; rel="next"'}


async def read_message(context: Context, request: Request, name: str, offset: str) -> Response:
    """``GET /streams/{name}/messages/{offset}``."""
    grant = request.grant
    request.query()
    wanted = whole_number("offset", offset, low=0)
    try:
        entry = await context.directory.with_stream(
            grant, name, lambda known: context.log.run(read.message(known.stream_id, wanted)), may="read"
        )
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(entries.to_json(entry))


def select(stream_id: str, query: Query, scan: read.Scan) -> Op[list[Entry]]:
    """The messages that a query asks for, ascending. Its parts combine with AND."""
    if not query.is_browse:
        return (yield from read.after_committed(stream_id, query.limit))
    at = yield from read.position(stream_id)
    scan.last = at.last
    start = query.offset or 0
    if query.from_ms is not None:
        start = max(start, (yield from read.offset_at(stream_id, query.from_ms)))
    wanted = _wanted(query)
    if query.id is not None:
        newest = yield from read.entry_of_id(stream_id, at, query.id)
        if newest is not None:
            return (yield from _with_id(stream_id, at, query, start, newest, scan))
    if query.before is not None:
        return (
            yield from read.backward(
                stream_id, at, query.before, query.limit, start=start, wanted=wanted, scan=scan
            )
        )
    return (yield from read.forward(stream_id, at, start, query.limit, wanted=wanted, scan=scan))


def _with_id(
    stream_id: str, at: read.Position, query: Query, start: int, newest: Entry, scan: read.Scan
) -> Op[list[Entry]]:
    """The messages of an id of which the newest is known: others were published before the id could be forgotten."""
    wanted = _wanted(query)
    offset, published_ms = entries.position(newest)
    stop = at.last + 1 if query.before is None else query.before
    remembered_ms = max(0, published_ms - at.dedup_window_ms + 1, at.ids_widened_ms + 1)
    older = yield from read.offset_at(stream_id, remembered_ms)
    older = min(older, stop, offset)
    if query.before is None:
        found = yield from read.forward(
            stream_id, at, start, query.limit, stop=older, wanted=wanted, scan=scan
        )
        if scan.stopped_at is not None:
            return found
    else:
        found = yield from read.backward(
            stream_id, at, older, query.limit, start=start, wanted=wanted, scan=scan
        )
    if start <= offset < stop and wanted is not None and wanted(newest):
        found = [*found, newest]
    return found[: query.limit] if query.before is None else found[-query.limit :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one look came to.

    Attributes:
        stream_id: of the stream that was looked at.
        entries: the messages.
        stopped_at: where a search for more has to go on.
        rest: what was asked for, where nothing was found: without what was looked at.
    """

    stream_id: str
    entries: list[Entry]
    stopped_at: int | None
    rest: Query

    @property
    def is_nothing_yet(self) -> bool:
        """Whether the look came to its end without any message."""
        return not self.entries and self.stopped_at is None


async def _find(context: Context, grant: TokenGrant, name: str, query: Query) -> Found:
    try:
        return await context.directory.with_stream(
            grant, name, lambda known: _selected(context, known.stream_id, query), may="read"
        )
    except LogError as error:
        raise refusal_of(error, stream=name) from None


async def _selected(context: Context, stream_id: str, query: Query) -> Found:
    is_search = query.key is not None or query.id is not None
    scan = read.Scan(time.monotonic() + SEARCH_WITHIN_S if is_search else math.inf)
    found = await context.log.run(select(stream_id, query, scan))
    return Found(
        stream_id=stream_id,
        entries=found,
        stopped_at=scan.stopped_at if len(found) < query.limit else None,
        rest=replace(query, offset=max(query.offset or 0, scan.last + 1)) if query.is_browse else query,
    )


async def _wait(context: Context, request: Request, name: str, found: Found, deadline: float) -> Found:
    """Look at what comes whenever the stream is woken, until it is asked for, the time is up or the client has gone."""
    stream_id = found.stream_id
    gone = asyncio.ensure_future(request.disconnected())
    try:
        with context.directory.parked.park(
            request.authorization, expires_ms=request.grant.expires_ms
        ) as parking:
            await context.directory.grant(request.authorization)  # may have gone just before it was parked
            while True:
                waiter = parking.waiter = await context.wakener.watch(
                    stream_id, within_s=max(0.0, deadline - time.monotonic())
                )
                try:
                    found = await _selected(context, stream_id, found.rest)
                    parking.check()
                    left = deadline - time.monotonic()
                    if not found.is_nothing_yet or left <= 0 or parking.is_over:
                        return found
                    await asyncio.wait({waiter, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    context.wakener.forget(stream_id, waiter)
                if gone.done():
                    raise Disconnected
    except StreamNotFound as error:
        # A stream made again under the name meanwhile is another one: this poll ends with the old one.
        raise refusal_of(error, stream=name) from None
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    finally:
        gone.cancel()


def _parse(request: Request) -> Query:
    given = request.query(*_PARAMETERS)
    browse = any(part in given for part in ("offset", "from", "before", "key", "id"))
    default_wait = 0.0 if browse else LONGEST_WAIT_S
    message_id = given.get("id")
    if message_id is not None and not 1 <= len(message_id) <= LONGEST_ID:
        raise invalid("id", f"Expected 1 to {LONGEST_ID} characters.")
    return Query(
        limit=whole_number("limit", given["limit"], low=1, high=MOST) if "limit" in given else 10,
        wait_s=seconds("wait", given["wait"], high=LONGEST_WAIT_S) if "wait" in given else default_wait,
        offset=whole_number("offset", given["offset"], low=0) if "offset" in given else None,
        from_ms=unix_ms("from", given["from"]) if "from" in given else None,
        before=whole_number("before", given["before"], low=0) if "before" in given else None,
        key=key_pattern("key", given["key"]) if "key" in given else None,
        id=message_id,
    )


def _wanted(query: Query) -> read.Wanted | None:
    if query.key is None and query.id is None:
        return None
    pattern, message_id = query.key, None if query.id is None else query.id.encode()

    def wanted(entry: Entry) -> bool:
        if message_id is not None and entry[1][1] != message_id:
            return False
        if pattern is None:
            return True
        key = entries.key(entry)
        return key is not None and pattern.fullmatch(key.decode()) is not None

    return wanted
