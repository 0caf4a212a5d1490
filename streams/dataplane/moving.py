"""Committing a position, deleting messages."""

import secrets
import time
from collections.abc import Mapping

import msgspec

from streams import bearer
from streams.dataplane.bodies import read_fields
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import Request, invalid, key_pattern, whole_number
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import commit as committing
from streams.log import entries, read, removals, trim
from streams.log.client import Op
from streams.log.config import TokenGrant
from streams.log.entries import Entry
from streams.log.errors import LogError, MessageNotFound, RemovalOver, StreamNotFound
from streams.log.trim import Removed

NOTED = 1000
"""Messages of a purge by key that go before they are noted: whatever ends it, who took the rest is on record."""


async def commit(context: Context, request: Request, name: str) -> Response:
    """``POST /streams/{name}/commit``."""
    grant = request.grant
    await context.directory.stream(grant, name, may="consume")
    request.query()
    offset = (await read_fields(request, "offset")).whole("offset", low=0)

    async def act(known: Known) -> int:
        previous = await context.log.run(committing.commit(known.stream_id, offset))
        context.touched.add(known.stream_id)
        return previous

    try:
        previous = await context.directory.with_stream(grant, name, act, may="consume")
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(b'{"offset":%d,"previous":%d}' % (offset, previous))


async def delete_message(context: Context, request: Request, name: str, offset: str) -> Response:
    """``DELETE /streams/{name}/messages/{offset}``."""
    grant = request.grant
    await context.directory.stream(grant, name, may="manage")
    keep_ms = _keep_ms(context, grant, request.query("undo"))
    wanted = whole_number("offset", offset, low=0)
    await _check_empty(request)
    number: int | None = None

    async def act(known: Known) -> Removed:
        nonlocal number
        await context.log.run(read.message(known.stream_id, wanted))
        asked = {"offsets": [wanted], "count": 0}
        async with context.on_record(known, request, kind="message.deleted", asked=asked) as deed:
            if keep_ms:
                facts = {"kind": "message.deleted", "token_id": grant.id}
                operation = removals.delete(known.stream_id, [wanted], keep_ms=keep_ms, facts=facts)
                removed, number = await deed.run(operation)
            else:
                removed = await deed.run(trim.delete(known.stream_id, [wanted]))
            if not removed.messages:
                raise MessageNotFound
            context.touched.add(known.stream_id)
            told = {"offsets": [wanted], "count": 1} | _told(number, removed)
            await deed.done(after=told, messages=1, size=removed.bytes)
        return removed

    try:
        removed = await context.directory.with_stream(grant, name, act, may="manage")
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return _deleted(number, removed)


async def purge(context: Context, request: Request, name: str) -> Response:
    """``DELETE /streams/{name}/messages``: everything, or what ``offset``, ``keep`` and ``key`` name."""
    grant = request.grant
    await context.directory.stream(grant, name, may="manage")
    given = request.query("offset", "keep", "key", "undo")
    keep_ms = _keep_ms(context, grant, given)
    below = whole_number("offset", given["offset"], low=0) if "offset" in given else None
    keep = whole_number("keep", given["keep"], low=0) if "keep" in given else None
    pattern = key_pattern("key", given["key"]) if "key" in given else None
    if below is not None and keep is not None:
        raise Refusal(
            "validation_error", "Send offset or keep, not both.", fields=["offset", "keep"], err_code=10003
        )

    await _check_empty(request)

    def matches(entry: Entry) -> bool:
        key = entries.key(entry)
        return pattern is not None and key is not None and pattern.fullmatch(key.decode()) is not None

    number: int | None = None
    together, kept_until = secrets.token_hex(8), time.monotonic() + keep_ms / 1000

    def operation(stream_id: str, found: trim.Matching | None) -> Op[tuple[Removed, int | None]]:
        if keep_ms:
            facts = {"kind": "stream.purged", "token_id": grant.id, "asked": given}
            if found is None:
                return removals.purge(stream_id, keep_ms=keep_ms, facts=facts, below=below, keep=keep)
            return removals.purge_found(stream_id, found, keep_ms=keep_ms, facts=facts, number=number)
        if found is None:
            return _for_good(trim.purge(stream_id, below=below, keep=keep))
        return _for_good(trim.purge_found(stream_id, found))

    async def take(known: Known, found: trim.Matching | None) -> Removed:
        nonlocal number
        asked = {"messages": 0, "bytes": 0, "asked": given}
        over: RemovalOver | None = None
        async with context.on_record(
            known, request, kind="stream.purged", asked=asked, together=together
        ) as deed:
            try:
                removed, number = await deed.run(operation(known.stream_id, found))
            except RemovalOver as error:
                over, removed = error, Removed(error.messages, error.bytes, error.ended)
            finally:
                context.touched.add(known.stream_id)
            told = {"messages": removed.messages, "bytes": removed.bytes, "asked": given}
            await deed.done(
                after=told | _told(number, removed), messages=removed.messages, size=removed.bytes
            )
        if over is None:
            return removed
        if time.monotonic() < kept_until:
            raise over
        number = None  # it took longer than it is kept: the rest is a removal of its own
        return removed + await take(known, found)

    async def act(known: Known) -> Removed:
        if pattern is None:
            return await take(known, None)
        found = await context.log.run(trim.matching(known.stream_id, matches, below=below, keep=keep))
        removed = Removed(0, 0)
        for part in found.parts(NOTED):
            removed += await take(known, part)
        return removed

    try:
        removed = await context.directory.with_stream(grant, name, act, may="manage")
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return _deleted(number, removed)


def _keep_ms(context: Context, grant: TokenGrant, given: Mapping[str, str]) -> int:
    """For how long what is removed is to be kept; 0 removes it for good, which is what the guide promises.

    Raises:
        Refusal: ``validation_error``; ``forbidden`` where it would be for good and the token lacks the scope for that.
    """
    asked = given.get("undo")
    if asked not in (None, "true", "false"):
        raise invalid("undo", "Expected true or false.")
    may_for_good = bearer.scopes_cover(grant.scopes, context.purge_for_good)
    if asked == "true" and not context.undo_s:
        raise invalid("undo", "Nothing can be undone here: OKMQ_UNDO is 0.")
    if asked == "true" or (asked is None and not may_for_good and context.undo_s):
        return context.undo_s * 1000
    if not may_for_good:
        scope = context.purge_for_good
        raise Refusal("forbidden", f"To remove messages for good needs the scope {scope!r}.", scope=scope)
    return 0


def _for_good(operation: Op[Removed]) -> Op[tuple[Removed, int | None]]:
    return (yield from operation), None


def _told(number: int | None, removed: Removed) -> dict[str, int]:
    told = {} if number is None else {"removal": number}
    return told | {"ended": removed.ended} if removed.ended else told


def _deleted(number: int | None, removed: Removed) -> Response:
    return Response(msgspec.json.encode({"deleted": removed.messages} | _told(number, removed)))


async def _check_empty(request: Request) -> None:
    """Whoever names in a body what is to go would lose everything if it were not read."""
    if await request.body():
        raise Refusal(
            "validation_error", "A DELETE takes no body: send offset, keep and key in the query.", fields=[]
        )
