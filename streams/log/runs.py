"""Messages that a group took as a whole and that are out since: one record for all of them (``lua/lib/runs.lua``)."""

from typing import NamedTuple

from streams.log import keys
from streams.log.client import Op


class Run(NamedTuple):
    """Neighbours that went out together: first and last offset, when they come again (steady ms), when they went out
    (unix ms), and to whom."""

    first: int
    last: int
    due_ms: int
    delivered_ms: int
    consumer: str

    @property
    def messages(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


def read(member: bytes) -> Run:
    """A member of the key of runs."""
    first, last, _, due_ms, delivered_ms, consumer = member.decode().split(":", 5)
    return Run(int(first), int(last), int(due_ms), int(delivered_ms), consumer)


def of(stream_id: str, name: str, *, start: int = 0) -> Op[list[Run]]:
    """The runs that a group has out, from the one on that ends at an offset or behind it."""
    return [read(member) for member in (yield ("ZRANGEBYSCORE", keys.runs(stream_id, name), start, "+inf"))]
