"""Committing a position, deleting messages."""

from streams.dataplane.bodies import read_fields
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import Request, key_pattern, whole_number
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import commit as committing
from streams.log import entries, read, trim
from streams.log.entries import Entry
from streams.log.errors import LogError, MessageNotFound, StreamNotFound
from streams.log.trim import Removed


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
    request.query()
    wanted = whole_number("offset", offset, low=0)

    async def act(known: Known) -> Removed:
        await context.log.run(read.message(known.stream_id, wanted))
        removed = await context.log.run(trim.delete(known.stream_id, [wanted]))
        if not removed.messages:
            raise MessageNotFound
        context.touched.add(known.stream_id)
        await context.note(
            known,
            request,
            kind="message.deleted",
            after={"offsets": [wanted], "count": 1},
            messages=1,
            size=removed.bytes,
        )
        return removed

    try:
        await context.directory.with_stream(grant, name, act, may="manage")
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(b'{"deleted":1}')


async def purge(context: Context, request: Request, name: str) -> Response:
    """``DELETE /streams/{name}/messages``: everything, or what ``offset``, ``keep`` and ``key`` name."""
    grant = request.grant
    await context.directory.stream(grant, name, may="manage")
    given = request.query("offset", "keep", "key")
    below = whole_number("offset", given["offset"], low=0) if "offset" in given else None
    keep = whole_number("keep", given["keep"], low=0) if "keep" in given else None
    pattern = key_pattern("key", given["key"]) if "key" in given else None
    if below is not None and keep is not None:
        raise Refusal(
            "validation_error", "Send offset or keep, not both.", fields=["offset", "keep"], err_code=10003
        )

    def matches(entry: Entry) -> bool:
        key = entries.key(entry)
        return pattern is not None and key is not None and pattern.fullmatch(key.decode()) is not None

    async def act(known: Known) -> Removed:
        if pattern is not None:
            operation = trim.purge_matching(known.stream_id, matches, below=below, keep=keep)
        else:
            operation = trim.purge(known.stream_id, below=below, keep=keep)
        try:
            removed = await context.log.run(operation)
        finally:
            context.touched.add(known.stream_id)
        await context.note(
            known,
            request,
            kind="stream.purged",
            after={"messages": removed.messages, "bytes": removed.bytes, "asked": given},
            messages=removed.messages,
            size=removed.bytes,
        )
        return removed

    try:
        removed = await context.directory.with_stream(grant, name, act, may="manage")
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(b'{"deleted":%d}' % removed.messages)
