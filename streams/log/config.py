"""What the SQL database decides and the log must know: streams, their names and settings, tokens."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from streams.log import damage, keys, meta, trim
from streams.log.client import Op, Pipeline, Script, Scripts, Steady, small
from streams.log.errors import Damaged, LogError

SETTINGS = (
    "ttl",
    "max_messages",
    "max_bytes",
    "max_messages_per_key",
    "retention",
    "discard",
    "max_message_bytes",
    "dedup_window",
    "archive",
    "deny_delete",
    "deny_purge",
    "sealed",
)
"""The settings that the scripts act on. (The key patterns, which the data plane checks, are a field of their own.)"""

PUBLISHED_AT_ONCE = 500
"""Streams in one round trip: nobody else waits for more than that."""
REMOVED_AT_ONCE = 100

WIDEST = 4 * 2**20
"""Bytes of a message that nobody can say more of: what a page is made for then."""

MOST_ENDED = 10_000
"""Of so many streams that were deleted, the newest, the last offset is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A stream as the registry lists it."""

    stream_id: str
    name: str
    workspace: str
    workspace_id: int
    archive: bool
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A stream that was deleted, and the last offset that it had given."""

    name: str
    last: int


_registered = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGrant:
    """What a bearer of a token may do.

    Attributes:
        id: the token's database id.
        workspace, workspace_id: where it acts.
        scopes: ``read``, ``publish``, ``consume``, ``manage``, ``erase``, ``admin``.
        streams: name patterns that narrow it; empty is every stream.
        expires_ms: unix ms, or None.
        rate_limit, rate_burst: requests a second and at once, or None for no bound.
    """

    id: int
    workspace: str
    workspace_id: int
    scopes: tuple[str, ...]
    streams: tuple[str, ...] = ()
    expires_ms: int | None = None
    rate_limit: int | None = None
    rate_burst: int | None = None


def stream_publish(stream: Registered, settings: Mapping[str, Any]) -> Op[bool]:
    """Publish a durable stream's name and settings (those of ``SETTINGS``); True when it is new to this store."""
    yield from trim.expire_before_limits([stream.stream_id])
    new = yield _publication(stream, settings)
    yield _registration(stream, settings)
    yield ("PUBLISH", keys.CHANGED, "stream")
    return bool(new)


def streams_publish(streams: Sequence[tuple[Registered, Mapping[str, Any]]]) -> Op[dict[str, Damaged]]:
    """Publish many streams in a few round trips; the processes that remember streams are told once.

    Of those in memory only the names are published here, which stay on the durable server; ``memory.begin`` does
    the rest.

    Returns:
        Internal id → why, of those whose settings could not be told because what is held of them is damaged.

    Raises:
        StoreUnavailable: some may have been published; doing it again does no harm.
    """
    is_known, damaged = False, dict[str, Damaged]()
    for first in range(0, len(streams), PUBLISHED_AT_ONCE):
        part = streams[first : first + PUBLISHED_AT_ONCE]
        durable = [each for each in part if not keys.in_memory(each[0].stream_id)]
        yield from trim.expire_before_limits(each.stream_id for each, _ in durable)
        publications = {each[0].stream_id: _publication(*each) for each in durable}
        alone = list(publications)[: 0 if is_known else 1]
        # The first one alone: it makes the script known to the server, so that the others are sent only once.
        for ids in filter(None, (alone, list(publications)[len(alone) :])):
            replies = yield Scripts([publications[stream_id] for stream_id in ids])
            damaged |= {
                each: reply for each, reply in zip(ids, replies, strict=True) if isinstance(reply, Damaged)
            }
            _demand_done([reply for reply in replies if not isinstance(reply, Damaged)])
        is_known = is_known or bool(alone)
        yield from _all_of([_registration(*each) for each in part])
    if streams:
        yield ("PUBLISH", keys.CHANGED, "stream")
    return damaged


def _all_of(calls: Sequence[Script]) -> Op[list[Any]]:
    replies: list[Any] = yield Scripts(calls)
    _demand_done(replies)
    return replies


def _demand_done(replies: Iterable[Any]) -> None:
    for reply in replies:
        if isinstance(reply, LogError):
            raise reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A stream that the store gave offsets of and whose counters it does not have.

    Attributes:
        is_whole: whether nothing of it is there, not even a trace of its messages.
    """

    stream_id: str
    is_whole: bool


def lost(stream_ids: Sequence[str]) -> Op[list[Lost]]:
    """Those of these durable streams, all of which the log was told of once, whose counters it lost."""
    replies = yield Pipeline(
        [
            command
            for stream_id in stream_ids
            for command in (
                ("HMGET", keys.meta(stream_id), *meta.FIELDS),
                ("EXISTS", keys.log(stream_id)),
            )
        ],
        apart=True,
    )
    has_log = dict(zip(stream_ids, replies[1::2], strict=True))
    return [
        Lost(stream_id=stream_id, is_whole=not has_log[stream_id])
        for stream_id, (settings, counters) in damage.readable(stream_ids, replies[::2], tuple)
        if counters is None and (has_log[stream_id] or settings is None)
    ]


def streams_anew(reserved: Mapping[str, int]) -> Op[None]:
    """Begin the counters of streams that lost them: by their messages, or above every offset that they gave.

    Args:
        reserved: internal id → the offset up to which the store may have given some.
    """
    wanted = (keys.log, keys.meta, keys.gone, keys.hidden, keys.went)
    steady_ms = yield Steady()
    yield from _all_of(
        [
            Script("anew", [make(stream_id) for make in wanted], [upto, WIDEST, steady_ms])
            for stream_id, upto in reserved.items()
        ]
    )


def _publication(stream: Registered, settings: Mapping[str, Any]) -> Script:
    made = (keys.log, keys.meta, keys.gone)
    return Script("publish", [make(stream.stream_id) for make in made], published(stream, settings))


def published(stream: Registered, settings: Mapping[str, Any]) -> list[str | int | bytes]:
    """What a stream's meta hash holds of its configuration: field, value, …; an empty value is none."""
    packed = meta.pack_settings({field: settings.get(field) for field in SETTINGS})
    pairs: list[str | int | bytes] = ["name", stream.name, "workspace", stream.workspace_id]
    return [*pairs, "settings", packed, "keys", _patterns(settings)]


def _registration(stream: Registered, settings: Mapping[str, Any]) -> Script:
    entry = {name: value for name, value in asdict(stream).items() if name != "stream_id"}
    listed = [keys.REGISTRY, keys.names(stream.workspace_id), keys.patterns(stream.workspace_id)]
    return Script("register", listed, [stream.stream_id, json.dumps(entry), stream.name, _patterns(settings)])


def stream_remove(stream_id: str, *, workspace_id: int, name: str) -> Op[None]:
    """Delete a stream with everything in it; those who wait on it are told. Twice is no error."""
    yield from streams_remove([(stream_id, workspace_id, name)])


def streams_remove(streams: Sequence[tuple[str, int, str]]) -> Op[None]:
    """Delete streams, each by internal id, workspace and name, with everything in them; those who wait are told.

    Raises:
        StoreUnavailable: some may be gone. The registry names those that are not, and doing it again does the rest.
    """
    durable = [each for each in streams if not keys.in_memory(each[0])]
    parts = [durable[n : n + REMOVED_AT_ONCE] for n in range(0, len(durable), REMOVED_AT_ONCE)]
    # Those in memory one by one: their server may be away.
    parts += [[each] for each in streams if keys.in_memory(each[0])]
    for part in parts:
        yield from _names_remove(part)
        ids = [stream_id for stream_id, _, _ in part]
        found = yield Pipeline([("SMEMBERS", keys.groups(stream_id)) for stream_id in ids])
        lasts = yield from _all_of(
            [_removal(stream_id, groups) for stream_id, groups in zip(ids, found, strict=True)]
        )
        yield from _ended_note(
            [
                f"{stream_id} {last} {name}"
                for (stream_id, _, name), last in zip(part, lasts, strict=True)
                if last >= 0
            ]
        )
        lists = (keys.REGISTRY, keys.MEMORY_RESERVED, keys.MEMORY_HELD)
        yield Pipeline([("HDEL", key, *ids) for key in lists])


def _names_remove(streams: Sequence[tuple[str, int, str]]) -> Op[None]:
    """Let the names lead nowhere, unless they lead to other streams by now."""
    held = yield Pipeline([("HGET", keys.names(workspace_id), name) for _, workspace_id, name in streams])
    leading = [each for each, found in zip(streams, held, strict=True) if found == each[0].encode()]
    if leading:
        yield Pipeline(
            [
                ("HDEL", lists(workspace_id), name)
                for _, workspace_id, name in leading
                for lists in (keys.names, keys.patterns)
            ]
        )
        yield ("PUBLISH", keys.CHANGED, "stream")


def _ended_note(members: Sequence[str]) -> Op[None]:
    if not members:
        return
    at_ms = yield Steady()
    yield small("ZADD", keys.ENDED, *(part for member in members for part in (at_ms, member)))
    yield ("ZREMRANGEBYRANK", keys.ENDED, 0, -MOST_ENDED - 1)


def ended() -> Op[dict[str, Ended]]:
    """Internal id → the streams that were deleted lately, however long ago, as far as that was noted."""
    found = yield ("ZRANGE", keys.ENDED, 0, -1)
    parts = (member.decode().split(" ", 2) for member in found)
    return {stream_id: Ended(name=name, last=int(last)) for stream_id, last, name in parts}


def _removal(stream_id: str, groups: Sequence[bytes]) -> Script:
    others = [key for key in keys.all_of(stream_id) if key != keys.meta(stream_id)]
    of_groups = [key for group in groups for key in keys.all_of_group(stream_id, group.decode())]
    return Script("remove", [keys.meta(stream_id), *others, *of_groups], [keys.wake(stream_id)])


def stream_settings(stream_id: str) -> Op[dict[str, Any] | None]:
    """The published settings of a stream that are set (true is 1), with ``keys``; None when there is no such stream."""
    *packed, patterns = yield ("HMGET", keys.meta(stream_id), *meta.FIELDS, "keys")
    held = meta.read(packed)
    return None if held is None else {**held[0], "keys": json.loads(patterns or "[]")}


def stream_id_of(workspace_id: int, name: str) -> Op[str | None]:
    """The internal id that a name stands for now, or None."""
    found = yield ("HGET", keys.names(workspace_id), name)
    return None if found is None else found.decode()


def streams() -> Op[list[Registered]]:
    """Every registered stream; an entry that cannot be read is left out."""
    flat = yield ("HGETALL", keys.REGISTRY)
    listed = [(flat[n], flat[n + 1]) for n in range(0, len(flat), 2)]
    return [stream for _, stream in damage.readable(listed, listed, _listed)]


def _listed(entry: tuple[bytes, bytes]) -> Registered:
    return Registered(stream_id=entry[0].decode(), **_registered(entry[1]))


def names_in(workspace_id: int) -> Op[dict[str, str]]:
    """Name → internal id of a workspace's streams."""
    flat = yield ("HGETALL", keys.names(workspace_id))
    listed = [(flat[n], flat[n + 1]) for n in range(0, len(flat), 2)]
    return dict(pair for _, pair in damage.readable(listed, listed, _named))


def _named(entry: tuple[bytes, bytes]) -> tuple[str, str]:
    return entry[0].decode(), entry[1].decode()


def name_remove(workspace_id: int, name: str) -> Op[None]:
    """Let one name of a workspace lead nowhere."""
    yield Pipeline([("HDEL", lists(workspace_id), name) for lists in (keys.names, keys.patterns)])
    yield ("PUBLISH", keys.CHANGED, "stream")


def names_remove(workspace_id: int) -> Op[None]:
    """Forget a workspace's names."""
    yield Pipeline([("UNLINK", keys.names(workspace_id)), ("UNLINK", keys.patterns(workspace_id))])


def patterns_in(workspace_id: int) -> Op[list[bytes]]:
    """Name, JSON array of key patterns, …: of a workspace's streams that have any. There may be many thousands."""
    flat: list[bytes] = yield ("HGETALL", keys.patterns(workspace_id))
    return flat


def archived_set(stream_id: str, offset: int) -> Op[None]:
    """Say that the history holds everything up to an offset; retention may then remove it."""
    yield Script("archived", [keys.meta(stream_id)], [offset])


def archived_only(stream_id: str, offset: int) -> Op[None]:
    """Say that the history holds nothing above an offset, whatever it was said to hold: it is another history."""
    yield Script("unarchived", [keys.meta(stream_id)], [offset])


def archived_of(stream_ids: Iterable[str]) -> Op[dict[str, int]]:
    """Up to which offset the history holds each stream."""
    wanted = list(stream_ids)
    found = yield from meta.counters_of(wanted)
    return {stream_id: found.get(stream_id, meta.NEW).archived for stream_id in wanted}


def token_publish(digest: str, grant: TokenGrant) -> Op[None]:
    """Let the bearer of the token with this SHA-256 digest in."""
    yield from tokens_publish({digest: grant})


def tokens_publish(grants: Mapping[str, TokenGrant]) -> Op[None]:
    """Publish many tokens at once, digest → grant; every process follows within its cache time."""
    yield from _all_of(
        [small("SET", keys.token(digest), json.dumps(asdict(grant))) for digest, grant in grants.items()]
    )
    yield ("PUBLISH", keys.CHANGED, "token")


def token_remove(digest: str) -> Op[None]:
    """Let the bearer in no more; every process follows within its cache time."""
    yield ("UNLINK", keys.token(digest))
    yield ("PUBLISH", keys.CHANGED, "token")


def token_grant(digest: str) -> Op[TokenGrant | None]:
    """What the bearer of this token may do; None for an unknown token."""
    found = yield ("GET", keys.token(digest))
    if found is None:
        return None
    fields = json.loads(found)
    fields["scopes"], fields["streams"] = (
        tuple(fields["scopes"]),
        tuple(fields["streams"]),
    )
    return TokenGrant(**fields)


def tokens_used(used_ms: Mapping[int, int]) -> Op[None]:
    """Note when tokens were last used: token id → unix ms."""
    flat = [part for item in used_ms.items() for part in item]
    yield small("HSET", keys.TOKENS_USED, *flat)


def take_tokens_used() -> Op[dict[int, int]]:
    """Take the notes of ``tokens_used`` away, token id → unix ms."""
    flat, _ = yield Pipeline([("HGETALL", keys.TOKENS_USED), ("DEL", keys.TOKENS_USED)])
    return {int(flat[n]): int(flat[n + 1]) for n in range(0, len(flat), 2)}


def _patterns(settings: Mapping[str, Any]) -> str:
    accepted = settings.get("keys")
    return json.dumps(list(accepted)) if accepted else ""
