"""Deleting a message, purging a stream."""

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from streams import bearer, purges
from streams.dataplane.context import Context
from streams.dataplane.directory import Known
from streams.dataplane.request import Request, invalid, key_pattern, whole_number
from streams.dataplane.response import Response
from streams.errors import Refusal, refusal_of
from streams.log import entries, read, removals, trim
from streams.log.client import Op
from streams.log.config import TokenGrant
from streams.log.entries import Entry
from streams.log.errors import (
    DoneInPart,
    LogError,
    MessageNotFound,
    RemovalOver,
    StreamNotFound,
)
from streams.log.notes import unsure
from streams.log.trim import Removed

NOTED = 1000
"""Messages of a purge by key that go before they are noted: whatever ends it, who took the rest is on record."""


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
            told = {"offsets": [wanted], "count": 1} | removals.told(number, removed)
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
    purges.demand_one(offset=below, keep=keep)
    await _check_empty(request)

    purging = Purge(context, request, given=given, keep_ms=keep_ms, below=below, keep=keep)
    try:
        removed = await context.directory.with_stream(
            grant, name, partial(purging.carry_out, pattern=pattern), may="manage"
        )
    except StreamNotFound:
        raise
    except LogError as error:
        raise refusal_of(error, stream=name) from None
    return _deleted(purging.number, removed)


@dataclass(kw_only=True)
class Purge:
    """A purge that was asked for.

    Attributes:
        given: the query, as it was sent.
        keep_ms: for how long it can be undone; 0 is for good.
        number: of the removal, once there is one.
    """

    context: Context = field(kw_only=False)
    request: Request = field(kw_only=False)
    given: Mapping[str, str]
    keep_ms: int
    below: int | None
    keep: int | None
    number: int | None = None

    def __post_init__(self) -> None:
        self._together, self._kept_until = secrets.token_hex(8), time.monotonic() + self.keep_ms / 1000

    async def carry_out(self, known: Known, pattern: re.Pattern[str] | None) -> Removed:
        """Remove what is asked for; with a pattern the messages whose key it matches.

        Raises:
            StreamNotFound, StreamSealed, OperationDenied, RemovalOver, StoreUnavailable: nothing was removed.
            DoneInPart: by one of these, after some of it was.
        """
        if pattern is None:
            return await self._take(known, None)

        def matches(entry: Entry) -> bool:
            key = entries.key(entry)
            return key is not None and pattern.fullmatch(key.decode()) is not None

        found = await self.context.log.run(
            trim.matching(known.stream_id, matches, below=self.below, keep=self.keep)
        )
        removed = Removed(0, 0)
        for part in found.parts(NOTED):
            try:
                removed += await self._take(known, part)
            except LogError as error:
                raise _in_part(error, removed) from None
        return removed

    async def _take(self, known: Known, found: trim.Matching | None) -> Removed:
        """Remove a part, with a note of it, also where it is refused or cut off in the middle."""
        asked = {"messages": 0, "bytes": 0, "asked": self.given}
        cut_off: LogError | None = None
        async with self.context.on_record(
            known, self.request, kind="stream.purged", asked=asked, together=self._together
        ) as deed:
            try:
                removed, self.number = await deed.run(self._operation(known.stream_id, found))
            except RemovalOver as error:
                cut_off, removed = error, Removed(0, 0)
            except DoneInPart as error:
                cut_off, removed = error.why, Removed(error.messages, error.bytes, error.ended)
                self.number = error.removal
            finally:
                self.context.touched.add(known.stream_id)
            told = (
                asked
                | {"messages": removed.messages, "bytes": removed.bytes}
                | removals.told(self.number, removed)
            )
            if cut_off is not None:
                told |= unsure(cut_off)
            await deed.done(after=told, messages=removed.messages, size=removed.bytes)
        if cut_off is None:
            return removed
        if isinstance(cut_off, RemovalOver) and time.monotonic() >= self._kept_until:
            self.number = None  # it took longer than it is kept: the rest is a removal of its own
            return removed + await self._take(known, found)
        raise _in_part(cut_off, removed)

    def _operation(self, stream_id: str, found: trim.Matching | None) -> Op[tuple[Removed, int | None]]:
        below, keep = self.below, self.keep
        if self.keep_ms:
            facts = {"kind": "stream.purged", "token_id": self.request.grant.id, "asked": self.given}
            if found is None:
                return removals.purge(stream_id, keep_ms=self.keep_ms, facts=facts, below=below, keep=keep)
            return removals.purge_found(
                stream_id, found, keep_ms=self.keep_ms, facts=facts, number=self.number
            )
        if found is None:
            return _for_good(removals.purge_for_good(stream_id, below=below, keep=keep))
        return _for_good(trim.purge_found(stream_id, found))


def _in_part(error: LogError, removed: Removed) -> LogError:
    """An error that also tells of what went before it."""
    if isinstance(error, DoneInPart):
        removed, error = removed + Removed(error.messages, error.bytes, error.ended), error.why
    return (
        DoneInPart(error, removed.messages, removed.bytes, ended=removed.ended) if removed.messages else error
    )


def _keep_ms(context: Context, grant: TokenGrant, given: Mapping[str, str]) -> int:
    """For how long what is removed is to be kept; 0 removes it for good.

    Raises:
        Refusal: as ``purges.kept_s``, and ``validation_error`` for another word.
    """
    asked = given.get("undo")
    if asked not in (None, "true", "false"):
        raise invalid("undo", "Expected true or false.")
    seconds = purges.kept_s(
        None if asked is None else asked == "true",
        undo_s=context.undo_s,
        for_good=context.purge_for_good,
        may_for_good=bearer.scopes_cover(grant.scopes, context.purge_for_good),
    )
    return seconds * 1000


def _for_good(operation: Op[Removed]) -> Op[tuple[Removed, int | None]]:
    return (yield from operation), None


def _deleted(number: int | None, removed: Removed) -> Response:
    return Response(msgspec.json.encode({"deleted": removed.messages} | removals.told(number, removed)))


async def _check_empty(request: Request) -> None:
    """Whoever names in a body what is to go would lose everything if it were not read."""
    if await request.body():
        raise Refusal(
            "validation_error", "A DELETE takes no body: send offset, keep and key in the query.", fields=[]
        )
