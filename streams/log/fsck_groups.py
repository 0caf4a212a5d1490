"""What groups have in flight held against itself, and keys that belong to no stream."""

from collections.abc import Set

import msgspec

from streams.log import group_meta, keys, meta
from streams.log.client import Op, Pipeline, Script, Servers, Steady
from streams.log.fsck import Finding

SCANNED = 1000
NO_GROUP = "none"
WITHOUT_IT_NONE = frozenset({("group", None), ("group", group_meta.COUNTERS.encode())})
"""Parts, as ``made_again`` takes them, without which there is no group."""

IN_RUNS = 22
"""Where the counters of a group say how many messages are in runs (``lua/lib/group.lua``)."""


def look(stream_id: str, *, last: int) -> Op[list[Finding]]:
    """Look at every group of a stream whose last offset is known.

    Raises:
        StoreUnavailable: its server does not answer.
    """
    findings: list[Finding] = []
    for name in sorted((yield ("SMEMBERS", keys.groups(stream_id)))):
        findings += yield from _group(stream_id, name.decode(), last)
    return findings


def _group(stream_id: str, name: str, last: int) -> Op[list[Finding]]:
    packed, *members = yield Pipeline(
        [
            ("HGET", keys.group(stream_id, name), group_meta.COUNTERS),
            ("ZRANGE", keys.pending(stream_id, name), 0, -1),
            ("ZRANGE", keys.due(stream_id, name), 0, -1),
            ("HKEYS", keys.leases(stream_id, name)),
            ("ZRANGE", keys.runs(stream_id, name), 0, -1),
            ("HKEYS", keys.replayed(stream_id, name)),
            ("ZRANGE", keys.shelved(stream_id, name), 0, -1),
        ]
    )
    pending, due, leases, runs, replayed, shelved = map(set, members)

    def told(what: str, sentence: str) -> Finding:
        return Finding(
            stream_id=stream_id,
            what=f"group {name}: {what}",
            sentence=f"group {name}: {sentence}",
            derivable=True,
        )

    if packed is None:
        return [told(NO_GROUP, "it is listed and not there")]
    timeless = sorted(pending - due, key=int)
    unlisted = sorted(leases - pending - shelved, key=int)
    waiting = yield from _waiting(stream_id, name, [*timeless, *unlisted])
    found = [
        told(f"due {int(offset)}", f"{int(offset)} is out and would never come again")
        for offset in timeless
        if offset not in waiting
    ]
    found += [
        told(f"out {int(offset)}", f"{int(offset)} is out and not counted")
        for offset in unlisted
        if offset in waiting or offset in due
    ]
    found += [
        told(f"lease {int(offset)}", f"{int(offset)} is out and nobody has it")
        for offset in sorted(pending - leases, key=int)
    ]
    found += [
        told(f"run {run.decode()}", "neighbours that are out would never come again")
        for run in sorted(runs - due)
    ]
    found += [
        told(f"run {member.decode()}", "neighbours that are out are not counted")
        for member in sorted(due - runs)
        if b":" in member
    ]
    in_runs = [tuple(map(int, run.split(b":")[:2])) for run in runs]
    count = sum(end - first + 1 for first, end in in_runs)
    counters, held = msgspec.msgpack.decode(packed), group_meta.unpack(packed)
    if len(counters) > IN_RUNS and counters[IN_RUNS] != count:
        found.append(
            told("runs", f"it counts {counters[IN_RUNS]} messages that are out together, not {count}")
        )
    if held.acked > held.sequence:
        found.append(
            told("acked", f"it counts {held.acked} acknowledged of {held.sequence} that were delivered")
        )
    # A dead letter that came back may lie above the position that a seek went to.
    highest = max([*map(int, pending - replayed), *(end for _, end in in_runs)], default=0)
    delivered, last = yield from _read_again(stream_id, name, held.delivered, low=highest, high=last)
    if delivered > last:
        found.append(told("delivered", f"it has delivered {delivered}, and {last} is the last"))
    elif delivered < highest:
        found.append(told("delivered", f"it has delivered up to {delivered}, and {highest} is out"))
    return found


def _read_again(stream_id: str, name: str, delivered: int, *, low: int, high: int) -> Op[tuple[int, int]]:
    """A group's position and the stream's last offset, which may have moved since other things of them were read.

    Args:
        delivered: as it was read before the others.
        low, high: between which it belongs by these.
    """
    if low <= delivered <= high:
        return delivered, high
    group, stream = yield Pipeline(
        [
            ("HGET", keys.group(stream_id, name), group_meta.COUNTERS),
            ("HGET", keys.meta(stream_id), meta.COUNTERS),
        ]
    )
    now = delivered if group is None else group_meta.unpack(group).delivered
    return now, max(high, meta.unpack(stream).last)


def position_of(stream_id: str, name: str) -> Op[int]:
    """The highest offset that a group has out, whose own position is lost; 0: none."""
    pending, runs = yield Pipeline(
        [
            ("ZRANGE", keys.pending(stream_id, name), -1, -1),
            ("ZRANGE", keys.runs(stream_id, name), -1, -1),
        ]
    )
    return max([*map(int, pending), *(int(run.split(b":")[1]) for run in runs)], default=0)


def settings_of(stream_id: str, name: str) -> Op[bytes | None]:
    """A group's settings, packed as ``groups.published`` packs them; None where there are none."""
    found: bytes | None = yield ("HGET", keys.group(stream_id, name), group_meta.SETTINGS)
    return found


def made_again(
    stream_id: str, name: str, taken: Set[tuple[str, bytes | None]], *, settings: str | bytes
) -> Op[None]:
    """After something that could not be read was taken away: settings as they are told, and who has how many messages.

    Args:
        taken: kinds of keys, and field or member of each.
    """
    if ("group", group_meta.SETTINGS.encode()) in taken:
        has_counters = yield ("HEXISTS", keys.group(stream_id, name), group_meta.COUNTERS)
        if has_counters:
            yield ("HSET", keys.group(stream_id, name), group_meta.SETTINGS, settings)
    yield from _mend_group(stream_id, name, tally=any(kind == "members" for kind, _ in taken))


def _waiting(stream_id: str, name: str, offsets: list[bytes]) -> Op[set[bytes]]:
    """Which of these have no time because they wait for the turn of their key, or because it has come."""
    found: set[bytes] = set()
    turns = keys.turns(stream_id, name)
    for first in range(0, len(offsets), SCANNED):
        part = offsets[first : first + SCANNED]
        nodes, turned = yield Pipeline(
            [("HMGET", turns, *part), ("ZMSCORE", keys.ready(stream_id, name), *part)]
        )
        found.update(offset for offset, at in zip(part, turned, strict=True) if at is not None)
        listed = [(offset, node.partition(b":")[2]) for offset, node in zip(part, nodes, strict=True) if node]
        heads = (yield ("HMGET", turns, *(b"k" + key for _, key in listed))) if listed else []
        found.update(
            offset
            for (offset, _), ends in zip(listed, heads, strict=True)
            if ends and ends.partition(b":")[0] != offset
        )
    return found


def mend(stream_id: str) -> Op[int]:
    """Put right what groups have out, and their counts of it; how much that was.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    mended = 0
    for name in group_meta.names_in((yield ("SMEMBERS", keys.groups(stream_id)))):
        mended += yield from _mend_group(stream_id, name)
    return mended


def _mend_group(stream_id: str, name: str, *, tally: bool = False) -> Op[int]:
    makes = (
        *(keys.group, keys.pending, keys.due, keys.leases, keys.runs, keys.turns, keys.ready),
        *(keys.replayed, keys.shelved, keys.members),
    )
    wanted = [keys.meta(stream_id), *(make(stream_id, name) for make in makes)]
    steady_ms = yield Steady()
    mended: int = yield Script("mend_group", wanted, [steady_ms, int(tally)])
    return mended


def strangers() -> Op[list[str]]:
    """Internal ids that keys of the durable server carry though no stream has them; keys that expire do not count.

    Raises:
        StoreUnavailable: it does not answer.
    """
    known, found = (yield from _registered()), set()
    names = yield from _names("okmq:{*")
    strange = [name for name in names if keys.stream_id_of(name) not in known]
    for first in range(0, len(strange), SCANNED):
        part = strange[first : first + SCANNED]
        left_ms = yield Pipeline([("PTTL", name) for name in part])
        found |= {keys.stream_id_of(name) for name, ms in zip(part, left_ms, strict=True) if ms == -1}
    return sorted(found - (yield from _registered()))


def token_digests() -> Op[set[str]]:
    """The digests of all tokens that the log lets in.

    Raises:
        StoreUnavailable: it does not answer.
    """
    begins = keys.token("")
    return {name.removeprefix(begins) for name in (yield from _names(f"{begins}*"))}


def _registered() -> Op[set[str]]:
    return {stream_id.decode() for stream_id in (yield ("HKEYS", keys.REGISTRY))}


def carried() -> Op[set[str]]:
    """Internal ids that keys of the durable server carry, whatever its registry says.

    Raises:
        StoreUnavailable: it does not answer.
    """
    return {keys.stream_id_of(name) for name in (yield from _names("okmq:{*"))}


def strangers_remove(stream_id: str) -> Op[int]:
    """Take away the keys of an internal id that no stream has; how many there were.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    removed, cursor = 0, 0
    while True:
        following, names = yield from _scanned(stream_id, cursor, f"okmq:{{{stream_id}}}:*")
        if names:
            removed += yield ("UNLINK", *(name.decode() for name in names))
        cursor = int(following)
        if cursor == 0:
            return removed


def _names(pattern: str) -> Op[list[str]]:
    """The keys of all durable servers whose names are like this; one may stand twice."""
    found: list[str] = []
    for stream_id in (yield Servers()):
        cursor, is_over = 0, False
        while not is_over:
            following, names = yield from _scanned(stream_id, cursor, pattern)
            found += [name.decode(errors="replace") for name in names]
            cursor = int(following)
            is_over = cursor == 0
    return found


def _scanned(stream_id: str, cursor: int, pattern: str) -> Op[tuple[bytes, list[bytes]]]:
    """The next cursor and the keys that were found, at the server that such a stream would be on."""
    there = ("EXISTS", keys.meta(stream_id))
    _, (following, names) = yield Pipeline([there, ("SCAN", str(cursor), "MATCH", pattern, "COUNT", SCANNED)])
    return following, names
