"""What was delivered as often as it may be and not answered in time becomes a dead letter, also when nobody fetches."""

from collections.abc import Iterable, Sequence

from streams.log import group_meta, keys
from streams.log.client import Op, Pipeline, Steady
from streams.log.errors import GroupNotFound, StoreUnavailable, StreamNotFound
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
        yield from retire_these([(stream_id, name.decode()) for name in names])


def retire_these(groups: Iterable[GroupName]) -> Op[int]:
    """Do it for those of these groups that may have some; one that is no more is passed over."""
    total = 0
    wanted = sorted(groups)
    for in_memory in (False, True):
        asked = [each for each in wanted if keys.in_memory(each[0]) is in_memory]
        try:
            ripe = yield from _ripe(asked)
        except StoreUnavailable:
            if not in_memory:
                raise
            continue
        for named in ripe:
            try:
                total += yield from retire(*named)
            except (GroupNotFound, StreamNotFound):
                continue
    return total


def _ripe(groups: Sequence[GroupName]) -> Op[list[GroupName]]:
    """Which have something that came due since it was looked at; two round trips for all of them."""
    if not groups:
        return []
    steady_ms = yield Steady()
    told = yield Pipeline([("HMGET", keys.group(*each), *group_meta.FIELDS) for each in groups])
    limited = [
        (named, held.counters.retired_ms)
        for named, held in zip(groups, map(group_meta.read, told), strict=True)
        if held is not None and held.settings["max_deliver"] > 0
    ]
    if not limited:
        return []
    counts = yield Pipeline(
        [("ZCOUNT", keys.due(*named), f"({looked}", steady_ms) for named, looked in limited]
    )
    return [named for (named, _), count in zip(limited, counts, strict=True) if count]
