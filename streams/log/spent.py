"""What was delivered as often as it may be and not answered in time becomes a dead letter, also when nobody fetches."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from streams.log import damage, group_meta, keys
from streams.log.client import Op, Pipeline, Steady
from streams.log.errors import Damaged, GroupNotFound, StoreUnavailable, StreamNotFound
from streams.log.group_meta import Counters
from streams.log.group_scripts import group_script
from streams.log.keys import GroupName

CALLS = 100
"""Most slices of one group in one go; the next go goes on."""


def retire(stream_id: str, name: str) -> Op[int]:
    """Make dead letters of what a group has out for the last time and over its time; returns how many.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    total = after = 0
    for _ in range(CALLS):
        steady_ms = yield Steady()
        count, after = yield group_script("retire", stream_id, name, [keys.wake(stream_id), steady_ms, after])
        total += count
        if not after:
            break
    return total


def retire_before_removal(stream_id: str) -> Op[None]:
    """Do it for all groups of a stream, which is about to lose messages: a dead letter keeps its body."""
    names = yield ("SMEMBERS", keys.groups(stream_id))
    if names:
        yield from retire_these([(stream_id, name) for name in group_meta.names_in(names)])


def retire_these(groups: Iterable[GroupName]) -> Op[dict[GroupName, Counters]]:
    """Do it for those of these groups that may have some, and tell the counters of all that are there."""
    told: dict[GroupName, Counters] = {}
    wanted = sorted(groups)
    for in_memory in (False, True):
        asked = [each for each in wanted if keys.in_memory(each[0]) is in_memory]
        try:
            found, ripe = yield from _ripe(asked)
        except StoreUnavailable:
            if not in_memory:
                raise
            continue
        told |= found
        for named in ripe:
            try:
                died = yield from retire(*named)
            except (GroupNotFound, StreamNotFound, Damaged):
                del told[named]
                continue
            counters = told[named]
            told[named] = replace(counters, dead_lettered=counters.dead_lettered + died)
    return told


def _ripe(groups: Sequence[GroupName]) -> Op[tuple[dict[GroupName, Counters], list[GroupName]]]:
    """The counters of groups, and which have something that came due since they were looked at; two round trips."""
    if not groups:
        return {}, []
    steady_ms = yield Steady()
    replies = yield Pipeline(
        [("HMGET", keys.group(*each), *group_meta.FIELDS) for each in groups], apart=True
    )
    there = {
        named: held for named, held in damage.readable(groups, replies, group_meta.read) if held is not None
    }
    told = {named: held.counters for named, held in there.items()}
    limited = [named for named, held in there.items() if held.settings["max_deliver"] > 0]
    if not limited:
        return told, []
    counts = yield Pipeline(
        [("ZCOUNT", keys.due(*named), f"({told[named].retired_ms}", steady_ms) for named in limited],
        apart=True,
    )
    return told, [named for named, count in damage.readable(limited, counts, int) if count]
