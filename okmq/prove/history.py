"""What clients did to a product and what they were answered: the material that is judged by ``okmq.prove.checking``.

Every operation has one of three outcomes: ``ok`` (2xx: it happened), ``fail`` (4xx: it did not) and ``info`` (anything
else, also no answer at all: nobody knows). Times are seconds of one monotonic clock.
"""

import gc
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

Outcome = Literal["ok", "fail", "info"]

KEPT_APART = 10_000
"""So many operations at a time are no more looked at by Python's garbage collector."""

Content = tuple[str, int]
"""A message's time as it was told, and a checksum of its body."""

Sent = tuple[int, str, int]
"""Of a message all that its publisher says of it: the body, the key and the headers."""


def checksum(told: bytes | None) -> int:
    """Of a body, or of headers as they are on the wire; 0 where there are none."""
    return zlib.crc32(told) if told is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message as somebody was given it; ``headers`` as a checksum, 0 where it has none."""

    offset: int
    id: str
    content: Content
    key: str = ""
    headers: int = 0

    @property
    def as_sent(self) -> Sent:
        """What its publisher has said of it."""
        return self.content[1], self.key, self.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken(Seen):
    """A delivery to a member of a group; ``number`` is 1 at the message's first."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One request: when it was sent, when its answer was there (or given up), on which stream."""

    began: float
    ended: float
    outcome: Outcome
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish(Operation):
    """A batch. A batch is sent again as a whole or not at all, and no id stands in two batches.

    Attributes:
        ids, bodies, keys, headers: of its messages; bodies and headers as checksums, "" and 0 where there is none.
        offsets, known: the receipts, where it was ok: the offset, and whether the id was known already.
        durability: what the answer promised.
        code: of a refusal.
    """

    ids: tuple[str, ...]
    bodies: tuple[int, ...]
    keys: tuple[str, ...]
    headers: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    known: tuple[bool, ...] = ()
    durability: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Operation):
    """A look at a stream from the offset ``start`` on; ``limit``: for so many messages, 0 where that is not known."""

    start: int
    limit: int = 0
    messages: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Operation):
    """A delivery to a group's member; ``limit``: so many messages were asked for, 0 where that is not known."""

    group: str
    member: str
    limit: int = 0
    taken: tuple[Taken, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Operation):
    """An acknowledgement, or messages given back; ``ok`` only where the answer counted every one.

    ``about``: (offset, number of the delivery).
    """

    group: str
    kind: Literal["ack", "nack"]
    about: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Operation):
    """The committed offset moved; one committer a stream, which only ever moves it up."""

    offset: int
    previous: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAtRest:
    """How a group stood in the end, when nobody asked for anything any more."""

    name: str
    lag: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What a stream held in the end: everything that could be read, and what it said of itself."""

    messages: tuple[Seen, ...]
    offset: int
    count: int
    size_bytes: int | None = None
    bodies_bytes: int | None = None
    committed: int = 0
    groups: tuple[GroupAtRest, ...] = ()


@dataclass(kw_only=True)
class History:
    """Everything that happened; operations are noted as they end, in any order.

    Attributes:
        ack_wait_s: of every group in it that is not in ``ack_waits_s``.
        by_key: the groups in which one message of a key is out at a time, in order.
        lives_s: streams whose messages are over after so many seconds; of these nothing else is judged.
    """

    ack_wait_s: float
    ack_waits_s: dict[str, float] = field(default_factory=dict)
    by_key: frozenset[str] = frozenset()
    lives_s: dict[str, float] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    remains: dict[str, Remains] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, operation: Operation) -> None:
        """Take down an operation that has ended."""
        with self._lock:
            self.operations.append(operation)
            if len(self.operations) % KEPT_APART == 0:
                # Notes are no garbage, and a walk through millions of them holds up every caller for seconds.
                gc.freeze()

    def streams(self) -> list[str]:
        """Every stream that something is known of."""
        return sorted({each.stream for each in self.operations} | set(self.remains))

    def of(self, stream: str) -> list[Operation]:
        """The operations on one stream, as they began."""
        return sorted(
            (each for each in self.operations if each.stream == stream), key=lambda each: each.began
        )


def in_flight(operations: Iterable[Operation], spans: Iterable[tuple[float, float]]) -> int:
    """How many operations were under way at some moment of one of the spans of time."""
    times = sorted(spans)
    starts = [start for start, _ in times]
    latest_end = [float("-inf"), *accumulate((end for _, end in times), max)]
    return sum(each.began <= latest_end[bisect_right(starts, each.ended)] for each in operations)
