"""What the worker keeps of groups between two looks (see ``streams.health``)."""

from collections.abc import Sequence

from streams.log import damage, keys
from streams.log.client import Op, Pipeline, Reachable, small
from streams.log.errors import Damaged, StoreUnavailable

KEPT_S = 86_400


def one(stream_id: str, name: str) -> Op[bytes | None]:
    """What the worker keeps of a group between two looks (see ``streams.health``)."""
    try:
        found: bytes | None = yield ("GET", keys.health(stream_id, name))
    except Damaged:
        return None  # the next look writes it anew
    return found


def many(groups: Sequence[tuple[str, str]]) -> Op[list[bytes | None]]:
    """What the worker keeps of many groups, by the stream's internal id and the group's name, in one round trip
    a server; nothing of streams in memory while theirs does not answer, or of those on a node that is away.
    """
    found: dict[tuple[str, str], bytes | None] = {}
    there = set((yield Reachable([stream_id for stream_id, _ in groups])))
    reachable = [group for group in groups if group[0] in there]
    for in_memory in (False, True):
        asked = [group for group in reachable if keys.in_memory(group[0]) is in_memory]
        if not asked:
            continue
        try:
            replies = yield Pipeline([("GET", keys.health(*group)) for group in asked], apart=True)
            found |= damage.readable(asked, replies, _kept)
        except StoreUnavailable:
            if not in_memory:
                raise
    return [found.get(group) for group in groups]


def _kept(reply: bytes | None) -> bytes | None:
    return reply


def changed_ms() -> Op[int]:
    """Steady ms of the last look in which a group was found in another status than before; 0 before the first."""
    told = yield ("GET", keys.STATUSES)
    return int(told or 0)


def change(*, at_ms: int) -> Op[None]:
    """Note that a look, at this steady ms, found a group in another status than before."""
    yield small("SET", keys.STATUSES, at_ms)


def put(stream_id: str, name: str, health: bytes) -> Op[None]:
    """Keep it, for a day: of a group that is looked at no more, or is no more, nothing stays."""
    yield small("SET", keys.health(stream_id, name), health, "EX", KEPT_S)
