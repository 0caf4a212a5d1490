"""Committing a position."""

from streams.dataplane.bodies import read_fields
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import Request
from streams.dataplane.response import Response
from streams.errors import refusal_of
from streams.log import commit as committing
from streams.log.errors import LogError


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
