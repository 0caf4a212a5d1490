"""Every key name, in one place.

All keys of one stream carry the same hash tag, its internal id, so one script may touch them all and a cluster
keeps them on one node. A stream made again under an old name has a new internal id: nothing of the old one can
leak into it.
"""

import secrets
from collections.abc import Callable, Mapping

STREAM_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
STREAM_ID_LENGTH = 12

MEMORY_MARK = "m-"
"""How the internal id of a stream on the memory server begins; a durable one never does."""

_MEMORY_KEY = f"okmq:{{{MEMORY_MARK}"

REGISTRY = "okmq:streams"
"""Hash: internal id → JSON ``{name, workspace, workspace_id, archive, internal}``."""

TOUCHED = "okmq:touched"
"""Set of internal ids whose counters have changed since the worker looked last."""

TOKENS_USED = "okmq:tokens-used"
"""Hash: token id → unix ms of its last use, moved to the database by the worker."""

WAITING = "okmq:waiting"
"""Hash: web process → JSON ``{"at": steady ms, "polls": {"<stream id> <group>": open polls}}``."""

TRAFFIC = "okmq:traffic"
"""Hash: ``<method> <route> <status> <bucket>`` → requests that took so long; with ``us`` the sum of microseconds."""

WORKER_LEASE = "okmq:worker"
"""String with an expiry: which worker samples and sweeps now."""

SAMPLED = "okmq:sampled"
"""String: unix ms of the last round of samples that a worker finished."""

STATUSES = "okmq:statuses"
"""String: steady ms of the last look in which the worker found a group in another status than before."""

DAMAGED = "okmq:damaged"
"""String, expires: JSON of the streams and groups of which the worker could not read something lately."""

SILENCES = "okmq:silences"
"""Sorted set: ``<from> <until>``, unix ms of two rounds of samples with a silence between them, by the second."""

NOTES = "okmq:notes"
"""Stream: what the data plane did to messages on somebody's behalf, until the worker has made events of it."""

ENDED = "okmq:ended"
"""Sorted set: ``<internal id> <last offset> <name>`` of the streams that were deleted lately, by steady ms."""

BEGUN = "okmq:begun"
"""Sorted set: what somebody is doing to messages and has no event of yet, by the steady ms of its last sign of life."""

MEMORY_RESERVED = "okmq:memory-reserved"
"""Hash, durable: internal id of a memory stream → the offset up to which some may have been handed out."""

MEMORY_HELD = "okmq:memory-held"
"""Hash, durable: internal id of a memory stream → ``<messages> <unarchived>`` when the worker last looked."""

MEMORY_LIFE = f"{_MEMORY_KEY}}}:life"
"""String, on the memory server: a random word that lives as long as what the server holds."""

MEMORY_FILLED = f"{_MEMORY_KEY}}}:filled"
"""String, on the memory server: the life in which every memory stream was begun."""

EPOCH = "okmq:epoch"
"""Hash: how often another server was promoted in the store's place (``number``), and the last of them (``server``)."""

SKEW = "okmq:clock-skew"
"""String: by how many ms the server's wall clock is ahead of the steady one (see ``clock``); absent is 0."""

JUMPS = "okmq:clock-jumps"
"""String: from which ms of the steady clock on it was how many ms ahead, "<from> <ahead> …", in order; absent where it
was never set."""

CLOCKS = "okmq:clocks"
"""Hash: machine → ``<least> <most> <at>``, what a worker there left of its steady clock (see ``clock``)."""

CHANGED = "okmq:changed"
"""Channel: ``stream`` when names or settings have changed, ``token`` when a token has; caches are dropped."""

CENSUS_ASKED = "okmq:census:asked"
"""Channel: JSON of a question to the process that counts messages by key (see ``questions``)."""

CENSUS_TOLD = "okmq:census:told:"
"""Begins the channels of the answers, one a question."""


GroupName = tuple[str, str]
"""A stream's internal id and the name of one of its groups."""


def stream_id(*, memory: bool = False) -> str:
    """A fresh internal id of 12 characters, with 60 random bits (50 for one on the memory server)."""
    mark = MEMORY_MARK if memory else ""
    return mark + "".join(secrets.choice(STREAM_ID_ALPHABET) for _ in range(STREAM_ID_LENGTH - len(mark)))


def in_memory(stream_id: str) -> bool:
    """Whether a stream lives on the memory server."""
    return stream_id.startswith(MEMORY_MARK)


def of_memory(key: str) -> bool:
    """Whether a key or channel lives on the memory server."""
    return key.startswith(_MEMORY_KEY)


def stream_id_of(key: str) -> str:
    """The internal id in a key of a stream."""
    return key[key.index("{") + 1 : key.index("}")]


def owner_of(key: str) -> str:
    """What all keys of a stream begin with; a key that belongs to none is its own."""
    return key[: key.index("}") + 1] if "{" in key else key


def flow(workspace_id: int) -> str:
    """List: how fast a workspace's streams moved together, the newest last (see ``flow``)."""
    return f"okmq:flow:{workspace_id}"


def log(stream_id: str) -> str:
    """Stream: the entries (see ``entries``)."""
    return f"okmq:{{{stream_id}}}:log"


def meta(stream_id: str) -> str:
    """Hash: counters and published settings, packed (see ``meta``)."""
    return f"okmq:{{{stream_id}}}:meta"


def gone(stream_id: str) -> str:
    """Sorted set: what went from between visible messages, as runs by offset and as sums (``lua/lib/gone.lua``)."""
    return f"okmq:{{{stream_id}}}:gone"


def ids(stream_id: str, bucket: int) -> str:
    """Hash: message id → offset, for one of the two buckets (0, 1) of the deduplication window."""
    return f"okmq:{{{stream_id}}}:ids:{bucket}"


def by_key(stream_id: str) -> str:
    """Hash: message key → last offset assigned to it."""
    return f"okmq:{{{stream_id}}}:keys"


def expiry(stream_id: str) -> str:
    """Sorted set: offset by the steady ms at which it ends, of messages with a time to live of their own."""
    return f"okmq:{{{stream_id}}}:exp"


def hidden(stream_id: str) -> str:
    """Sorted set: offsets that went from between others and that the history has yet to copy."""
    return f"okmq:{{{stream_id}}}:hidden"


def latest(stream_id: str) -> str:
    """Sorted set: ``<key>\\0<16-digit offset>`` of visible messages, where the newest of each key are kept."""
    return f"okmq:{{{stream_id}}}:latest"


def kept(stream_id: str) -> str:
    """Sorted set: offsets that a group still wanted when they were looked at, where messages are kept by interest."""
    return f"okmq:{{{stream_id}}}:kept"


def went(stream_id: str) -> str:
    """Sorted set, where a group has a filter: what went from between others lately (see ``lua/lib/losses.lua``)."""
    return f"okmq:{{{stream_id}}}:went"


def removing(stream_id: str) -> list[str]:
    """The keys of a script that takes away single messages, in the order in which all of them take these."""
    return [make(stream_id) for make in (log, meta, gone, hidden, by_key, latest, went)]


def aside(stream_id: str) -> str:
    """Sorted set: offsets (16 digits) of single messages that were set aside, by the number of their removal."""
    return f"okmq:{{{stream_id}}}:aside"


def scratch(stream_id: str) -> str:
    """Sorted set that lives within one script."""
    return f"okmq:{{{stream_id}}}:scratch"


def removals(stream_id: str) -> str:
    """Hash: what can be undone, a few fields a removal (``lua/lib/aside.lua``)."""
    return f"okmq:{{{stream_id}}}:removals"


def groups(stream_id: str) -> str:
    """Set: names of the stream's consumer groups."""
    return f"okmq:{{{stream_id}}}:groups"


def group(stream_id: str, name: str) -> str:
    """Hash: a group's settings, position and counters, packed (see ``group_meta``)."""
    return f"okmq:{{{stream_id}}}:g:{name}"


def pending(stream_id: str, group: str) -> str:
    """Sorted set: offsets delivered and not settled, by offset; beside those in ``runs``."""
    return f"okmq:{{{stream_id}}}:p:{group}"


def due(stream_id: str, group: str) -> str:
    """Sorted set: the same offsets, and the members of ``runs``, by the steady ms at which they come again."""
    return f"okmq:{{{stream_id}}}:due:{group}"


def leases(stream_id: str, group: str) -> str:
    """Hash: offset → ``<deliveries>:<sequence>:<delivered ms>:<consumer>``."""
    return f"okmq:{{{stream_id}}}:l:{group}"


def shelved(stream_id: str, group: str) -> str:
    """Sorted set: offsets that went for a while while they were out, whose leases stay, by offset."""
    return f"okmq:{{{stream_id}}}:shelved:{group}"


def runs(stream_id: str, group: str) -> str:
    """Sorted set: what was taken as a whole and is out since, a record for many messages (``lua/lib/runs.lua``)."""
    return f"okmq:{{{stream_id}}}:runs:{group}"


def members(stream_id: str, group: str) -> str:
    """Hash: consumer → ``<messages out>:<unix ms of its last fetch or answer>`` (see ``lua/lib/members.lua``)."""
    return f"okmq:{{{stream_id}}}:members:{group}"


def acks(stream_id: str, group: str) -> str:
    """Hash, expires: consumer → how many messages it acknowledged lately (see ``lua/lib/members.lua``)."""
    return f"okmq:{{{stream_id}}}:acks:{group}"


def dead(stream_id: str, group: str) -> str:
    """Sorted set: dead letters (MessagePack, with their bodies) by offset."""
    return f"okmq:{{{stream_id}}}:dead:{group}"


def replayed(stream_id: str, group: str) -> str:
    """Hash: offset → the dead letter that is delivered again, or what the history brought, until it is settled."""
    return f"okmq:{{{stream_id}}}:r:{group}"


def brought(stream_id: str, group: str) -> str:
    """Hash: replay → ``<position>:<given>:<passed over>``, of those that bring the group messages of the history."""
    return f"okmq:{{{stream_id}}}:brought:{group}"


def turns(stream_id: str, group: str) -> str:
    """Hash of a group that is ordered by key: the lists of each key's messages (see ``lua/lib/order.lua``)."""
    return f"okmq:{{{stream_id}}}:turns:{group}"


def parked(stream_id: str, group: str) -> str:
    """Sorted set: offsets passed over because an earlier message of their key is out, by offset."""
    return f"okmq:{{{stream_id}}}:parked:{group}"


def parked_aside(stream_id: str, group: str) -> str:
    """Sorted set: offsets that were parked when they were removed for a while, by offset."""
    return f"okmq:{{{stream_id}}}:parked-aside:{group}"


def ready(stream_id: str, group: str) -> str:
    """Sorted set: offsets whose turn of their key has come, by offset."""
    return f"okmq:{{{stream_id}}}:ready:{group}"


def last(stream_id: str, group: str) -> str:
    """Sorted set: offsets that were delivered for the last time before they become dead letters, by offset."""
    return f"okmq:{{{stream_id}}}:last:{group}"


def counted(stream_id: str, group: str) -> str:
    """Hash of a group with a filter: how many messages of each block of offsets match (see ``group_matching.lua``)."""
    return f"okmq:{{{stream_id}}}:counted:{group}"


def health(stream_id: str, group: str) -> str:
    """String, expires: JSON of the samples and the verdict on a group (``streams.health``)."""
    return f"okmq:{{{stream_id}}}:health:{group}"


def lags(stream_id: str, group: str) -> str:
    """List, expires: JSON of how the group stood at each look of the last hour (``trails``)."""
    return f"okmq:{{{stream_id}}}:lags:{group}"


def lags_by_minute(stream_id: str, group: str) -> str:
    """List, expires: as ``lags``, the highest of each of the last 360 minutes."""
    return f"okmq:{{{stream_id}}}:lags-by-minute:{group}"


OF_GROUP: Mapping[str, Callable[[str, str], str]] = {
    make.__name__: make
    for make in (
        group,
        pending,
        due,
        leases,
        shelved,
        runs,
        members,
        acks,
        dead,
        replayed,
        brought,
        turns,
        parked,
        parked_aside,
        ready,
        last,
        counted,
        health,
        lags,
        lags_by_minute,
    )
}
"""Every key that a group may own, by the name that the scripts know it by."""


def all_of_group(stream_id: str, name: str) -> list[str]:
    """Every key that a group may own."""
    return [make(stream_id, name) for make in OF_GROUP.values()]


OF_STREAM: Mapping[str, Callable[[str], str]] = {
    make.__name__: make
    for make in (
        log,
        meta,
        gone,
        by_key,
        expiry,
        hidden,
        latest,
        kept,
        aside,
        removals,
        went,
        groups,
    )
}
"""Every key that a stream may own, by the name that the scripts know it by; but for those of ids and of its groups."""


def all_of(stream_id: str) -> list[str]:
    """Every key that a stream may own, but for those of its groups."""
    return [ids(stream_id, 0), ids(stream_id, 1), *(make(stream_id) for make in OF_STREAM.values())]


def wake(stream_id: str) -> str:
    """Channel: told the last offset after an append, and ``gone`` when the stream is deleted."""
    return f"okmq:{{{stream_id}}}:wake"


def names(workspace_id: int) -> str:
    """Hash: stream name → internal id, of one workspace."""
    return f"okmq:names:{workspace_id}"


def patterns(workspace_id: int) -> str:
    """Hash: stream name → JSON of the key patterns that it accepts, of the streams that have any."""
    return f"okmq:patterns:{workspace_id}"


def rate(token_id: int) -> str:
    """String with an expiry: the unix microseconds at which a token may make a whole burst of requests again."""
    return f"okmq:rate:{token_id}"


def token(digest: str) -> str:
    """String: JSON of what the token with this SHA-256 digest may do."""
    return f"okmq:token:{digest}"


def anchors(chain: str) -> str:
    """Sorted set: ``<event id>:<hash>`` by event id, of the newest events of one chain."""
    return f"okmq:anchors:{chain[:16]}"


_APPENDING = " ".join(
    [log("*"), meta("*"), gone("*"), ids("*", 0), ids("*", 1)]
    + [make("*") for make in (by_key, expiry, hidden, latest, went, groups)]
)


def appending(stream_id: str) -> list[str]:
    """The keys of an append, which are made for each publish: in one go."""
    return _APPENDING.replace("*", stream_id).split()


_APPENDING_ONE = " ".join([log("*"), meta("*"), ids("*", 0), ids("*", 1), by_key("*")])


def appending_one(stream_id: str) -> list[str]:
    """The keys of an append of one message for which nothing has to go."""
    return _APPENDING_ONE.replace("*", stream_id).split()
