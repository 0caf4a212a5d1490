"""Publishing: one request is one batch, stored whole or not at all."""

import asyncio

import msgspec

from streams import bearer
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.messages import Publication, read_publication
from streams.dataplane.request import LARGEST_AT_ONCE_BYTES, Request, invalid
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import stats
from streams.log.append import Appended
from streams.log.config import TokenGrant
from streams.log.errors import LogError, StreamNotFound
from streams.naming import key_fault, matches_any


class Receipt(msgspec.Struct, gc=False):
    """What a publisher is told of each message, in input order."""

    id: str
    offset: int
    duplicate: bool


async def publish(context: Context, request: Request, name: str) -> Response:
    """``POST /streams/{name}/messages``."""
    grant = request.grant
    known = await context.directory.stream(grant, name, may="publish")  # before the body is read
    return await _publish(context, grant, known, await _read(request))


async def publish_by_key(context: Context, request: Request, key: str) -> Response:
    """``POST /publish/{key}``: into the one stream that accepts the key; messages without a key get this one."""
    grant = request.grant
    if not bearer.scopes_cover(grant.scopes, "publish"):
        raise Refusal("forbidden", "This needs the scope 'publish'.", scope="publish")
    fault = key_fault(key)
    if fault:
        raise invalid("key", fault)
    name = await context.directory.name_for_key(grant, key)
    known = await context.directory.stream(grant, name, may="publish")
    publication = await _read(request)
    keyed = [
        message if message.key else msgspec.structs.replace(message, key=key)
        for message in publication.messages
    ]
    return await _publish(context, grant, known, msgspec.structs.replace(publication, messages=keyed))


async def _read(request: Request) -> Publication:
    request.query()
    request.check_media_type()
    data = await request.body()
    if len(data) > LARGEST_AT_ONCE_BYTES:
        return await asyncio.to_thread(read_publication, data)
    return read_publication(data)


async def _publish(context: Context, grant: TokenGrant, known: Known, publication: Publication) -> Response:
    name = known.name
    _check_keys(publication, known.key_patterns)
    durability = context.durability.ask(known.stream_id)
    receipts: list[Receipt] = []
    if publication.messages:
        stream_id, appended = await context.directory.with_stream(
            grant, name, lambda known: _append(context, known, publication), may="publish"
        )
        context.touched.add(stream_id)
        receipts = [
            Receipt(message.id, stored.offset, stored.duplicate)
            for message, stored in zip(publication.messages, appended, strict=True)
        ]
    else:
        try:
            await context.directory.with_stream(
                grant,
                name,
                lambda known: context.log.run(stats.takes_messages(known.stream_id)),
                may="publish",
            )
        except LogError as error:
            raise refusal_of(error, stream=name) from None
    headers = {"Okmq-Durability": await asyncio.shield(durability)}
    return Response(msgspec.json.encode(receipts), 201 if receipts else 200, headers)


async def _append(context: Context, known: Known, publication: Publication) -> tuple[str, list[Appended]]:
    try:
        return known.stream_id, await context.appender.append(
            known.stream_id,
            publication.messages,
            expect=publication.expect,
            refuses_when_full=known.refuses_when_full,
            is_unbounded=known.is_unbounded,
        )
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=known.name) from None


def _check_keys(publication: Publication, patterns: tuple[str, ...]) -> None:
    if not patterns:
        return
    errors = [
        {"index": index, "field": "key", "message": "The stream does not accept this key."}
        for index, message in enumerate(publication.messages)
        if message.key is None or not matches_any(message.key, patterns)
    ]
    if errors:
        raise Refusal(
            "validation_error",
            f"Message {errors[0]['index']}, key: The stream accepts {', '.join(patterns)}.",
            fields=["key"],
            errors=errors,
        )
