"""What a stream's indexes hold beyond its entries: ids, keys and ends of messages that are not there."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from streams.log import keys
from streams.log.client import Op

PAGE = 1000


@dataclass(frozen=True, kw_only=True)
class Entries:
    """What a pass over a stream's entries has gathered.

    Attributes:
        last: the last offset.
        is_there: whether a visible message is at an offset.
        ids: offset → id, of the messages that are there and whose ids are remembered.
        newest: key → offset of its newest message that is there.
        ends: the offsets of messages with a time to live of their own.
    """

    last: int
    is_there: Callable[[int], bool]
    ids: Mapping[int, str]
    newest: Mapping[str, int]
    ends: Container[int]

    def is_known(self, offset: int) -> bool:
        """Whether it is known what may stand at an offset; what went is remembered, and known by key, for a while."""
        return offset < 1 or offset > self.last or self.is_there(offset)


@dataclass(frozen=True, kw_only=True)
class Extra:
    """What stands in an index and belongs to no message.

    Attributes:
        ids: bucket, id and offset.
        by_key: key, offset and the one that is right; -1: none.
        expiry: offsets.
    """

    ids: list[tuple[int, str, int]] = field(default_factory=list)
    by_key: list[tuple[str, int, int]] = field(default_factory=list)
    expiry: list[int] = field(default_factory=list)


def look(stream_id: str, there: Entries) -> Op[Extra]:
    """Look through the indexes of a stream.

    Raises:
        StoreUnavailable: its server does not answer.
        Damaged: something in them cannot be read.
    """
    extra = Extra()
    for bucket in (0, 1):
        for id_, offset in (yield from _hash(keys.ids(stream_id, bucket))):
            if there.is_known(offset) and there.ids.get(offset) != id_:
                extra.ids.append((bucket, id_, offset))
    for key, offset in (yield from _hash(keys.by_key(stream_id))):
        newest = there.newest.get(key, 0)
        if there.is_known(offset) and offset > newest:
            extra.by_key.append((key, offset, newest if there.is_there(newest) else -1))
    at = 0
    while members := (yield ("ZRANGE", keys.expiry(stream_id), at, at + PAGE - 1)):
        known = (offset for offset in map(int, members) if there.is_known(offset))
        extra.expiry.extend(offset for offset in known if offset not in there.ends)
        at += PAGE
    return extra


def _hash(key: str) -> Op[Iterator[tuple[str, int]]]:
    """The fields of a hash and their offsets. They are gathered: a page may come while others change it."""
    found: dict[str, int] = {}
    cursor = 0
    while True:
        following, flat = yield ("HSCAN", key, cursor, "COUNT", PAGE)
        found.update((flat[n].decode(), int(flat[n + 1])) for n in range(0, len(flat), 2))
        cursor = int(following)
        if not cursor:
            return iter(found.items())
