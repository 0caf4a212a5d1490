"""Consumer groups: fetch with long poll, and the four answers to a delivery."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from streams.dataplane.bodies import Fields, read_fields
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import Disconnected, Request, invalid
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import entries, groups
from streams.log.errors import DoneInPart, LogError, StreamNotFound
from streams.log.groups import Delivery, Fetched, Named
from streams.log.notes import unsure
from streams.log.read import ANSWER_LIMIT_BYTES

MOST = 10_000
MOST_TOLD = 100
"""Offsets that an event lists; the rest is in its count."""
LONGEST_WAIT_S = 30.0
LONGEST_DELAY_S = 30 * 86_400.0
LONGEST_TEXT = 255

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LEASE = re.compile(r"[0-9]{1,16}-[0-9]{1,16}-[0-9]{1,16}")


async def fetch(context: Context, request: Request, name: str, group: str) -> Response:
    """``POST /streams/{name}/groups/{group}/fetch``."""
    grant = request.grant
    known = await context.directory.stream(grant, name, may="consume")
    request.query()
    fields = await read_fields(request, "limit", "wait", "consumer", "max_bytes", empty=True)
    poll = Poll(
        context,
        request,
        group=group,
        limit=fields.whole("limit", low=1, high=MOST, default=100),
        consumer=_consumer(fields),
        max_bytes=fields.whole("max_bytes", low=1, high=ANSWER_LIMIT_BYTES, default=ANSWER_LIMIT_BYTES),
    )
    wait_s = fields.seconds("wait", high=LONGEST_WAIT_S, default=LONGEST_WAIT_S)

    async def act(known: Known) -> Fetched:
        return await poll.until_something(known.stream_id, wait_s=wait_s)

    try:
        fetched = await context.directory.with_stream(grant, name, act, may="consume")
    except LogError as error:
        raise refusal_of(error, stream=name, group=group) from None
    if fetched.deliveries:
        context.touched.add(known.stream_id)
    count = len(fetched.deliveries)
    return Response(
        b"["
        + b",".join(
            _delivered(delivery, pending=fetched.left + count - n)
            for n, delivery in enumerate(fetched.deliveries, start=1)
        )
        + b"]"
    )


class Poll:
    """One fetch: tried again whenever the stream is woken or something in flight becomes due."""

    def __init__(
        self, context: Context, request: Request, *, group: str, limit: int, consumer: str, max_bytes: int
    ) -> None:
        self._context, self._request = context, request
        self._group, self._limit, self._consumer, self._max_bytes = group, limit, consumer, max_bytes

    async def until_something(self, stream_id: str, *, wait_s: float) -> Fetched:
        """The first fetch that gets something, or the last one when the time is up or a seek came."""
        deadline = time.monotonic() + wait_s
        polls, poll = self._context.polls, (stream_id, self._group)
        polls[poll] += 1
        try:
            asked = time.monotonic()
            fetched = await self._try(stream_id)
            if not fetched.deliveries and time.monotonic() < deadline:
                due_by = _due_by(fetched, asked=asked, deadline=deadline)
                fetched = await self._parked(stream_id, fetched.generation, due_by, deadline)
            self._context.fetching.note(stream_id, self._group)
            return await self._unless_gone(stream_id, fetched)
        finally:
            polls[poll] -= 1
            if not polls[poll]:
                del polls[poll]

    async def _parked(self, stream_id: str, opened_in: int, due_by: float, deadline: float) -> Fetched:
        """Look again until something is there, the time is up or a seek came; see ``until_something``."""
        gone = asyncio.ensure_future(self._request.disconnected())
        authorization, expires_ms = self._request.authorization, self._request.grant.expires_ms
        try:
            with self._context.directory.parked.park(authorization, expires_ms=expires_ms) as parking:
                await self._context.directory.grant(authorization)  # may have gone just before it was parked
                while True:
                    waiter = parking.waiter = await self._context.wakener.watch(
                        stream_id, within_s=max(0.0, due_by - time.monotonic())
                    )
                    try:
                        parking.check()
                        asked = time.monotonic()
                        # Also when the time is up: the end of a poll is the last sign of life of who polls.
                        fetched = await self._try(stream_id, generation=opened_in)
                        if (
                            fetched.deliveries
                            or time.monotonic() >= deadline
                            or parking.is_over
                            or fetched.generation != opened_in
                        ):
                            return fetched
                        due_by = _due_by(fetched, asked=asked, deadline=deadline)
                        await asyncio.wait(
                            {waiter, gone},
                            timeout=max(0.0, due_by - time.monotonic()),
                            return_when=asyncio.FIRST_COMPLETED,
                        )
                    finally:
                        self._context.wakener.forget(stream_id, waiter)
                    if gone.done():
                        raise Disconnected
        finally:
            gone.cancel()

    async def _try(self, stream_id: str, *, generation: int | None = None) -> Fetched:
        return await self._context.log.run(
            groups.fetch(
                stream_id,
                self._group,
                limit=self._limit,
                consumer=self._consumer,
                max_bytes=self._max_bytes,
                generation=generation,
            )
        )

    async def _unless_gone(self, stream_id: str, fetched: Fetched) -> Fetched:
        """Give the messages back at once when nobody is there to take them."""
        if not self._request.is_gone():
            return fetched
        if fetched.deliveries:
            leases = [delivery.lease for delivery in fetched.deliveries]
            await self._context.log.run(groups.give_back(stream_id, self._group, leases))
        raise Disconnected


def _due_by(fetched: Fetched, *, asked: float, deadline: float) -> float:
    """Until when a poll rests at most: until something in flight is due, counted from when that was asked."""
    if fetched.due_in_ms is None:
        return deadline
    return min(deadline, asked + fetched.due_in_ms / 1000 + 0.001)


async def ack(context: Context, request: Request, name: str, group: str) -> Response:
    """``POST …/{group}/ack`` with ``offsets`` and perhaps ``consumer``, with ``up_to`` or with ``leases``."""
    fields = await _read(context, request, name, "offsets", "consumer", "up_to", "leases")
    named, values, consumer = _targets(fields, "offsets", "up_to", "leases")
    count = await _answer(
        context,
        request,
        name,
        group,
        lambda known: context.log.run(groups.ack(known.stream_id, group, named, values, consumer=consumer)),
    )
    return Response(b'{"acked":%d}' % count)


async def nack(context: Context, request: Request, name: str, group: str) -> Response:
    """``POST …/{group}/nack`` as ``ack``, but without ``up_to``; and a ``delay`` in seconds."""
    fields = await _read(context, request, name, "offsets", "consumer", "leases", "delay")
    named, values, consumer = _targets(fields)
    delay_ms = round(fields.seconds("delay", high=LONGEST_DELAY_S, default=0.0) * 1000)
    return await _counted(
        context,
        request,
        name,
        group,
        lambda known: context.log.run(
            groups.nack(known.stream_id, group, named, values, delay_ms=delay_ms, consumer=consumer)
        ),
    )


async def working(context: Context, request: Request, name: str, group: str) -> Response:
    """``POST …/{group}/working`` as ``ack``, but without ``up_to``."""
    fields = await _read(context, request, name, "offsets", "consumer", "leases")
    named, values, consumer = _targets(fields)
    return await _counted(
        context,
        request,
        name,
        group,
        lambda known: context.log.run(
            groups.working(known.stream_id, group, named, values, consumer=consumer)
        ),
    )


async def term(context: Context, request: Request, name: str, group: str) -> Response:
    """``POST …/{group}/term`` as ``ack``, but without ``up_to``; and a ``reason``."""
    fields = await _read(context, request, name, "offsets", "consumer", "leases", "reason")
    named, values, consumer = _targets(fields)
    reason = fields.text("reason", longest=1000)

    async def act(known: Known) -> int:
        asked = {"offsets": [], "count": 0, "reason": reason}
        async with context.on_record(
            known, request, kind="group.terminated", group=group, asked=asked
        ) as deed:

            def told(offsets: Sequence[int]) -> dict[str, Any]:
                return {"offsets": sorted(offsets)[:MOST_TOLD], "count": len(offsets), "reason": reason}

            try:
                ended = await deed.run(
                    groups.term(known.stream_id, group, named, values, reason=reason, consumer=consumer)
                )
            except DoneInPart as error:
                await deed.done(after={**told(error.offsets), **unsure(error.why)})
                raise
            if ended:
                await deed.done(after=told(ended))
        return len(ended)

    return await _counted(context, request, name, group, act)


async def _read(context: Context, request: Request, name: str, *allowed: str) -> Fields:
    grant = request.grant
    await context.directory.stream(grant, name, may="consume")
    request.query()
    return await read_fields(request, *allowed)


def _consumer(fields: Fields) -> str:
    name = fields.text("consumer", longest=LONGEST_TEXT)
    if _CONTROL.search(name):
        raise invalid("consumer", "Expected a name without control characters.")
    return name


def _targets(fields: Fields, *names: str) -> tuple[Named, list[int | str], str | None]:
    """How the deliveries are named, by what, and whose alone are meant."""
    _one_of(fields, *(names or ("offsets", "leases")))
    if "consumer" in fields and "offsets" not in fields:
        raise invalid("consumer", "Only used with offsets; a lease and up_to already say what they mean.")
    if "leases" in fields:
        return "leases", list(fields.texts("leases", most=MOST, pattern=_LEASE)), None
    if "up_to" in fields:
        return "up_to", [fields.whole("up_to", low=0)], None
    consumer = _consumer(fields) if fields.has_value("consumer") else None
    return "offsets", list(fields.offsets("offsets", most=MOST)), consumer


def _one_of(fields: Fields, *names: str) -> None:
    if sum(map(fields.__contains__, names)) != 1:
        raise Refusal("validation_error", f"Send one of {', '.join(names)}.", fields=list(names))


async def _answer(
    context: Context, request: Request, name: str, group: str, act: Callable[[Known], Awaitable[int]]
) -> int:
    grant = request.grant

    async def touching(known: Known) -> int:
        count = await act(known)
        context.touched.add(known.stream_id)
        return count

    try:
        return await context.directory.with_stream(grant, name, touching, may="consume")
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=name, group=group) from None


async def _counted(
    context: Context, request: Request, name: str, group: str, act: Callable[[Known], Awaitable[int]]
) -> Response:
    return Response(b'{"count":%d}' % await _answer(context, request, name, group, act))


def _delivered(delivery: Delivery, *, pending: int) -> bytes:
    """A delivery as JSON: the message, and how it was handed out."""
    return b'%b,"deliveries":%d,"pending":%d,"lease":"%b"}' % (
        entries.to_json(delivery.entry)[:-1],
        delivery.deliveries,
        pending,
        delivery.lease.encode(),
    )
