"""What this process remembers of tokens and streams, and for how long it may be wrong.

A stream's internal id can be remembered safely: every script refuses an id that is gone, and the name is then
looked up again. A change of settings or tokens is announced and drops what is remembered; should the announcement
be lost, the ages below bound the error (a revoked token: 2 s, by the contract).
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from streams import bearer
from streams.dataplane.parked import ParkedPolls
from streams.errors import Refusal, refusal_of, stream_not_found
from streams.log import config, keys
from streams.log.client import AsyncLog
from streams.log.config import TokenGrant
from streams.log.errors import StreamLost, StreamNotFound
from streams.naming import PatternIndex, is_name, shortened

TOKEN_AGE_S = 1.5
STREAM_AGE_S = 120.0
REMEMBERED = 50_000
MATCHED_AT_ONCE = 1000
LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key")
"""Settings that make messages go."""
LONGEST_HEADER, MOST_HEADERS = 256, 4096
"""Bytes of an ``Authorization`` header whose digest is remembered, and how many are."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known:
    """A stream as the data plane knows it: internal id, name, the key patterns that it accepts, whether it refuses what
    does not fit, and whether no limit takes messages away."""

    stream_id: str
    name: str
    key_patterns: tuple[str, ...]
    refuses_when_full: bool
    is_unbounded: bool


class Directory:
    """Token digests and stream names, looked up in what the services published.

    Attributes:
        parked: the polls that end with their token.
    """

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._tokens: dict[str, tuple[float, TokenGrant]] = {}
        self._streams: dict[tuple[int, str], tuple[float, Known]] = {}
        self._patterns: dict[int, tuple[float, asyncio.Future[PatternIndex[str]]]] = {}
        self._used_ms: dict[int, int] = {}
        self._changes = self._token_changes = 0
        self.parked = ParkedPolls(self.grant)

    def forget(self, kind: str) -> None:
        """Drop what is remembered of ``stream`` or ``token``."""
        if kind == "token":
            self._token_changes += 1
            self._tokens.clear()
            self.parked.tokens_changed()
        else:
            self._changes += 1
            self._streams.clear()
            self._patterns.clear()

    async def grant(self, header: bytes | None) -> TokenGrant:
        """Who is calling.

        Raises:
            Refusal: ``unauthorized`` for a missing, unknown, revoked or expired token.
        """
        digest = _digest_of(header) if header else None
        if digest is None:
            raise Refusal("unauthorized", "Send a token: Authorization: Bearer <token>.")
        now = time.time()
        held = self._tokens.get(digest)
        if held is None or held[0] < now - TOKEN_AGE_S:
            grant = await self._looked_up(digest, now)
        else:
            grant = held[1]
        if grant.expires_ms is not None and grant.expires_ms <= now * 1000:
            raise Refusal("unauthorized", "This token has expired.")
        self._used_ms[grant.id] = int(now * 1000)
        return grant

    async def stream(self, grant: TokenGrant, name: str, *, may: str) -> Known:
        """The stream that a name stands for in the caller's workspace.

        Raises:
            Refusal: ``forbidden`` without the scope or outside the token's patterns, ``stream_not_found``.
        """
        if not bearer.scopes_cover(grant.scopes, may):
            raise Refusal("forbidden", f"This needs the scope {may!r}.", scope=may)
        now = time.time()
        held = self._streams.get((grant.workspace_id, name))
        if held is None and not is_name(name):
            raise stream_not_found(shortened(name))
        if not bearer.streams_cover(grant.streams, name):
            raise Refusal("forbidden", f"This token is not for stream {name!r}.", stream=name)
        if held is not None and held[0] >= now - STREAM_AGE_S:
            return held[1]
        changes = self._changes
        known = await self._look_up(grant, name)
        # What is told to have changed while it was looked up is looked up again by whoever comes next.
        if changes == self._changes:
            _remember(self._streams, (grant.workspace_id, name), (now, known))
        return known

    async def with_stream(
        self, grant: TokenGrant, name: str, act: Callable[[Known], Awaitable[T]], *, may: str
    ) -> T:
        """Act on a stream by name; an id that has gone meanwhile is looked up once more."""
        known = await self.stream(grant, name, may=may)
        try:
            return await act(known)
        except StreamNotFound:
            self._streams.pop((grant.workspace_id, name), None)
        again = await self.stream(grant, name, may=may)
        try:
            return await act(again)
        except StreamNotFound as error:
            raise refusal_of(error, stream=name) from None

    async def name_for_key(self, grant: TokenGrant, key: str) -> str:
        """The one stream of the caller's workspace, inside the token's patterns, whose key patterns match.

        Raises:
            Refusal: ``stream_not_found`` when none does, ``ambiguous_key`` when several do.
        """
        index = await self._patterns_of(grant.workspace_id)
        # A workspace may have more patterns than others should have to wait for.
        is_long = index.candidates(key) > MATCHED_AT_ONCE
        owners = await asyncio.to_thread(index.owners, key) if is_long else index.owners(key)
        found = sorted(name for name in owners if bearer.streams_cover(grant.streams, name))
        if not found:
            raise Refusal("stream_not_found", f"No stream accepts the key {key!r}.", key=key, err_code=10059)
        if len(found) > 1:
            raise Refusal(
                "ambiguous_key", f"Several streams accept the key {key!r}.", key=key, streams=found[:20]
            )
        return found[0]

    def take_used(self) -> dict[int, int]:
        """Tokens used since the last call: token id → unix ms."""
        used, self._used_ms = self._used_ms, {}
        return used

    async def _looked_up(self, digest: str, now: float) -> TokenGrant:
        changes = self._token_changes
        grant = await self._log.run(config.token_grant(digest))
        if grant is None:
            self._tokens.pop(digest, None)
            raise Refusal("unauthorized", "Unknown token.")
        if changes == self._token_changes:  # as of streams
            _remember(self._tokens, digest, (now, grant))
        return grant

    async def _patterns_of(self, workspace_id: int) -> PatternIndex[str]:
        """The key patterns of a workspace's streams, put in order once for all who ask, in a thread."""
        now = time.time()
        held = self._patterns.get(workspace_id)
        if held is None or held[0] < now - STREAM_AGE_S:
            held = (now, asyncio.ensure_future(self._patterns_looked_up(workspace_id)))
            _remember(self._patterns, workspace_id, held)
        try:
            return await asyncio.shield(held[1])
        except Exception:
            if self._patterns.get(workspace_id) is held:
                del self._patterns[workspace_id]
            raise

    async def _patterns_looked_up(self, workspace_id: int) -> PatternIndex[str]:
        return await asyncio.to_thread(_indexed, await self._log.run(config.patterns_in(workspace_id)))

    async def _look_up(self, grant: TokenGrant, name: str) -> Known:
        stream_id = await self._log.run(config.stream_id_of(grant.workspace_id, name))
        settings = await self._log.run(config.stream_settings(stream_id)) if stream_id else None
        if stream_id is not None and settings is None and keys.in_memory(stream_id):
            raise refusal_of(StreamLost())
        if stream_id is None or settings is None:
            raise stream_not_found(name)
        is_unbounded = not any(map(settings.get, LIMITS))
        return Known(stream_id, name, tuple(settings["keys"]), settings["discard"] == "new", is_unbounded)


def _indexed(flat: Sequence[bytes]) -> PatternIndex[str]:
    return PatternIndex((flat[n].decode(), json.loads(flat[n + 1])) for n in range(0, len(flat), 2))


def _digest_of(header: bytes) -> str | None:
    """The digest of the secret in an ``Authorization`` header; None where there is none."""
    return _digest_again(header) if len(header) <= LONGEST_HEADER else _digest(header)


def _digest(header: bytes) -> str | None:
    secret = bearer.from_header(header.decode("latin-1"))
    return None if secret is None else bearer.digest(secret)


_digest_again = lru_cache(maxsize=MOST_HEADERS)(_digest)

K = TypeVar("K")


def _remember(held: dict[K, T], key: K, value: T) -> T:
    if len(held) >= REMEMBERED:
        held.clear()
    held[key] = value
    return value
