"""Committing a position, deleting messages."""

import msgspec

from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import LARGEST_INTEGER, Request, invalid, key_pattern, whole_number
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import commit as committing
from streams.log import entries, read, trim
from streams.log.entries import Entry
from streams.log.errors import LogError, MessageNotFound, StreamNotFound
from streams.log.trim import Removed


async def commit(context: Context, request: Request, name: str) -> Response:
    """``POST /streams/{name}/commit``."""
    grant = await context.directory.grant(request.headers.get(b"authorization"))
    await context.directory.stream(grant, name, may="consume")
    request.query()
    request.check_media_type()
    offset = _committed_offset(await request.body())

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
    grant = await context.directory.grant(request.headers.get(b"authorization"))
    await context.directory.stream(grant, name, may="manage")
    request.query()
    wanted = whole_number("offset", offset, low=0)

    async def act(known: Known) -> Removed:
        await context.log.run(read.message(known.stream_id, wanted))
        removed = await context.log.run(trim.delete(known.stream_id, [wanted]))
        if not removed.messages:
            raise MessageNotFound
        context.touched.add(known.stream_id)
        return removed

    try:
        await context.directory.with_stream(grant, name, act, may="manage")
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(b'{"deleted":1}')


async def purge(context: Context, request: Request, name: str) -> Response:
    """``DELETE /streams/{name}/messages``: everything, or what ``offset``, ``keep`` and ``key`` name."""
    grant = await context.directory.grant(request.headers.get(b"authorization"))
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
            return await context.log.run(operation)
        finally:
            context.touched.add(known.stream_id)

    try:
        removed = await context.directory.with_stream(grant, name, act, may="manage")
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return Response(b'{"deleted":%d}' % removed.messages)


def _committed_offset(data: bytes) -> int:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Refusal("invalid_json", f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Refusal("validation_error", "Expected an object with an offset.", fields=["offset"])
    for field in value:
        if field != "offset":
            raise invalid(field, "This field is not known.")
    offset = value.get("offset")
    if type(offset) is not int or not 0 <= offset <= LARGEST_INTEGER:
        raise invalid("offset", "Expected a whole number, at least 0.")
    return offset
