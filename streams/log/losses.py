"""What groups lost: messages that went before they got them. One with a filter counts them while it can be told."""

from streams.log import damage, group_meta, keys, meta
from streams.log.client import Op, Pipeline
from streams.log.errors import Damaged, GroupNotFound, StreamNotFound
from streams.log.group_scripts import group_script


def settle(stream_id: str) -> Op[int]:
    """Have every group with a filter count what went; the offset up to which entries are needed for it no more.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    names, packed = yield Pipeline(
        [("SMEMBERS", keys.groups(stream_id)), ("HMGET", keys.meta(stream_id), *meta.FIELDS)]
    )
    held = meta.read(packed)
    if held is None:
        raise StreamNotFound
    # A group that is made from now on begins at this floor or above it, and with the removals of now.
    offset, seen = held[1].floor - 1, held[1].removals
    known = group_meta.names_in(names)
    replies = yield Pipeline(
        [("HMGET", keys.group(stream_id, name), *group_meta.FIELDS) for name in known], apart=True
    )
    for name, group in damage.readable(known, replies, group_meta.read):
        if group is None or not group.settings["filter"]:
            continue
        try:
            upto, removals = yield from _one(stream_id, name)
        except (GroupNotFound, Damaged):
            continue
        offset, seen = min(offset, upto), min(seen, removals)
    yield ("ZREMRANGEBYSCORE", keys.went(stream_id), "(0", seen)
    return offset


def _one(stream_id: str, name: str) -> Op[tuple[int, int]]:
    while True:
        done, upto, seen, has_filter = yield group_script("group_settle", stream_id, name)
        if not has_filter:
            raise GroupNotFound  # changed meanwhile: it counts by arithmetic now
        if done:
            return upto, seen
