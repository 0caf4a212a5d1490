"""What a stream holds, message by message and without the bodies: offset, size, key, and how many newer of its key.

A limit a key, and groups with a filter, cannot be told by arithmetic. Who asks about them once mostly asks again, with
another number; so what was looked at is kept by the one who asked, 16 bytes a message, and the next question looks only
at what came since. Counting then takes milliseconds over millions.
"""

import importlib
import itertools
import re
import sys
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streams.log import entries, keys, meta
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Entry
from streams.log.errors import StreamNotFound
from streams.log.patterns import python_pattern

if TYPE_CHECKING:
    import numpy as np

    Column = np.ndarray[tuple[int], np.dtype[Any]]

PAGE = 500
"""Messages looked at in one call, about a millisecond."""

MOST_PLAIN = 4096
"""Where no body was ever larger, whole messages are read."""

MOST_MESSAGES, MOST_KEYS = 20_000_000, 1_000_000
"""More are not kept: some 400 MB in the process that asks."""

MOST_NEW = 20_000
"""Where more than so many came since, looking begins anew."""


@dataclass(slots=True)
class Census:
    """The newest messages of a stream down to ``lowest``, as of offset ``last``.

    Attributes:
        removals: how many messages had ever gone from between others; what goes later makes all of this void.
        lowest: the lowest offset that was looked at.
    """

    last: int = 0
    removals: int = 0
    lowest: int = 0
    _offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _sizes: "array[int]" = field(default_factory=lambda: array("I"))
    _ranks: "array[int]" = field(default_factory=lambda: array("I"))
    _keys: "array[int]" = field(default_factory=lambda: array("I"))
    _of_key: "array[int]" = field(default_factory=lambda: array("I", [0]))
    _numbers: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    _matching: "dict[tuple[str, ...], array[int]]" = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self) >= MOST_MESSAGES or len(self._numbers) > MOST_KEYS

    @property
    def offsets(self) -> "Column":
        """Of every message, in the order of the other columns."""
        return _column(self._offsets)

    def count_from(self, first: int) -> int:
        """How many messages it has from an offset on."""
        return len(self) if first <= self.lowest else int((self.offsets >= first).sum())

    @property
    def sizes(self) -> "Column":
        """Bytes of the bodies."""
        return _column(self._sizes)

    @property
    def ranks(self) -> "Column":
        """1 for the newest message of a key, 2 for the one before; 0 for a message without a key."""
        return _column(self._ranks)

    def among(self, offsets: Sequence[int]) -> "Column":
        """Of every message whether it is one of these."""
        found: Column = _numpy().isin(self.offsets, offsets)
        return found

    def wanted(self, patterns: Sequence[str]) -> "Column":
        """Of every message whether its key matches one of the patterns."""
        compiled = [re.compile(python_pattern(each), re.DOTALL) for each in patterns]
        matching = self._matching.setdefault(tuple(patterns), array("B"))
        for name in itertools.islice(self._numbers, len(matching), None):
            matching.append(bool(name) and any(each.fullmatch(name.decode()) for each in compiled))
        found: Column = _column(matching).astype("bool")[_column(self._keys)]
        return found

    def add(self, page: "Page") -> None:
        """Add messages that are older than all others."""
        numbers, of_key = self._numbers, self._of_key
        self._offsets.extend(page.offsets)
        self._sizes.extend(page.sizes)
        for key in page.keys:
            number = numbers.setdefault(key, len(numbers))
            if number == len(of_key):
                of_key.append(0)
            if number:
                of_key[number] += 1
            self._keys.append(number)
            self._ranks.append(of_key[number])

    def add_newer(self, pages: "Sequence[Page]") -> None:
        """Add all messages that came since, newest first: those that were there have so many more above them."""
        np = _numpy()
        newer = Census(_numbers=self._numbers, _of_key=array("I", bytes(4 * len(self._of_key))))
        for page in pages:
            newer.add(page)
        more = _column(newer._of_key)
        ranks = _column(self._ranks)
        ranks += more[_column(self._keys)]
        del ranks
        was = np.zeros_like(more)
        was[: len(self._of_key)] = _column(self._of_key)
        self._of_key = array("I", (was + more).tobytes())
        for mine, theirs in (
            (self._offsets, newer._offsets),
            (self._sizes, newer._sizes),
            (self._ranks, newer._ranks),
            (self._keys, newer._keys),
        ):
            mine.extend(theirs)


def look(
    stream_id: str, census: Census | None, *, first: int, until_s: float, always: int
) -> Op[tuple[Census, bool]]:
    """Bring a census up to date and down to offset ``first``; answers it, or a new one, and whether it is.

    Args:
        until_s: look on until then, by ``time.monotonic``.
        always: messages to look at in any case.

    Raises:
        StreamNotFound: there is no such stream (any more).
    """
    counters = yield from _counters(stream_id)
    last, removals = counters.last, counters.removals
    is_kept = True
    if census is None or census.removals != removals or not 0 <= last - census.last <= MOST_NEW:
        census, is_kept = Census(last=last, removals=removals, lowest=last + 1), False
    newer: list[Page] = []
    before = last + 1
    while before > census.last + 1:
        page = yield from _page(stream_id, counters, first=census.last + 1, before=before)
        newer.append(page)
        before, removals = page.lowest, page.removals
    if newer:
        census.add_newer(newer)
    census.last, seen = last, sum(len(page.offsets) for page in newer)
    while census.lowest > first:
        if census.is_full or (seen >= always and time.monotonic() >= until_s):
            return census, False
        page = yield from _page(stream_id, counters, first=first, before=census.lowest)
        census.add(page)
        census.lowest, removals, seen = page.lowest, page.removals, seen + len(page.offsets)
    (missing,) = yield Script("counts", [keys.gone(stream_id)], [first, last + 1])
    is_right = removals == census.removals and census.count_from(first) == last + 1 - first - missing
    if not is_right and is_kept:  # something that had gone was brought back since
        return (yield from look(stream_id, None, first=first, until_s=until_s, always=always))
    if not is_right:
        census.removals = -1  # something went while we looked: the next one begins anew
    return census, is_right


@dataclass(frozen=True, slots=True)
class Page:
    """Visible messages, newest first.

    Attributes:
        lowest: the lowest offset that was looked at; where there are no more, the lowest that was asked for.
        removals: how many messages of the stream had ever gone from between others.
        keys: of each message, empty where it has none.
    """

    lowest: int
    removals: int
    offsets: Sequence[int]
    sizes: Sequence[int]
    keys: Sequence[bytes]


def _counters(stream_id: str) -> Op[meta.Counters]:
    held = meta.read((yield ("HMGET", keys.meta(stream_id), *meta.FIELDS)))
    if held is None:
        raise StreamNotFound
    return held[1]


def _page(stream_id: str, counters: meta.Counters, *, first: int, before: int) -> Op[Page]:
    """The next messages below an offset, down to another.

    As they are where bodies are small and nothing waits out of sight: that costs the store a sixth of the script.
    """
    if counters.widest <= MOST_PLAIN and not counters.hidden:
        asked = ("XREVRANGE", keys.log(stream_id), before - 1, max(first, counters.floor), "COUNT", PAGE)
        packed, time_, found = yield Pipeline(
            [("HMGET", keys.meta(stream_id), *meta.FIELDS), ("TIME",), asked]
        )
        held = meta.read(packed)
        if held is None:
            raise StreamNotFound
        if not held[1].hidden and held[1].floor == counters.floor:
            now_ms = max(held[1].last_ms, int(time_[0]) * 1000 + int(time_[1]) // 1000)
            return _plain_page(found, removals=held[1].removals, first=first, now_ms=now_ms)
    stream = [keys.log(stream_id), keys.meta(stream_id), keys.gone(stream_id)]
    lowest, _, removals, *told = yield Script("census", stream, [first, before, PAGE])
    return Page(lowest, removals, told[0::3], told[1::3], told[2::3])


def _plain_page(found: Sequence[Entry], *, removals: int, first: int, now_ms: int) -> Page:
    lowest = entries.position(found[-1])[0] if len(found) == PAGE else first
    here = [(id_, fields) for id_, fields in found if fields[-2] != b"x" or int(fields[-1]) > now_ms]
    return Page(
        lowest,
        removals,
        [int(id_.partition(b"-")[0]) for id_, _ in here],
        [len(fields[3]) for _, fields in here],
        [fields[7] if len(fields) > 6 and fields[6] == b"k" else b"" for _, fields in here],
    )


def _column(values: "array[int]") -> "Column":
    column: Column = _numpy().frombuffer(values, dtype=values.typecode)
    return column


def _numpy() -> Any:
    """Loaded where it is needed: 20 MB that only a process pays that is asked."""
    return importlib.import_module("numpy")


def prepare() -> None:
    """Begin to load it beside the question that will count with it, which first waits for the store."""
    if "numpy" not in sys.modules:
        threading.Thread(target=_numpy, name="numpy", daemon=True).start()


class Kept:
    """The censuses of the streams that were asked about last, for a minute after the last question.

    Who takes one has it alone until it is given back; who comes meanwhile makes another, and the one that reaches
    farther is kept. Who goes on with one ahead of the questions borrows it for a moment, for which they wait.
    """

    MOST, FOR_S, LENT_S = 2, 60.0, 2.0

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._lent: set[str] = set()
        self._held: dict[str, tuple[float, Census]] = {}
        self._timer: threading.Timer | None = None

    def take(self, stream_id: str) -> Census | None:
        with self._lock:
            self._lock.wait_for(lambda: stream_id not in self._lent, self.LENT_S)
            return self._held.pop(stream_id, (0.0, None))[1]

    def borrow(self, stream_id: str) -> Census | None:
        with self._lock:
            held = self._held.pop(stream_id, (0.0, None))[1]
            if held is not None:
                self._lent.add(stream_id)
            return held

    def give_back(self, stream_id: str, census: Census | None) -> None:
        """Give back what was borrowed; None where it is no more."""
        with self._lock:
            if census is not None:
                self.give(stream_id, census)
            self._lent.discard(stream_id)
            self._lock.notify_all()

    def give(self, stream_id: str, census: Census) -> None:
        with self._lock:
            if len(self._held.get(stream_id, (0.0, ()))[1]) <= len(census):
                self._held.pop(stream_id, None)
                self._held[stream_id] = (time.monotonic(), census)
            while len(self._held) > self.MOST:
                del self._held[next(iter(self._held))]
            self._wake_later()

    def forget_idle(self) -> None:
        """Let go of what nobody asked about lately."""
        with self._lock:
            self._timer = None
            since_s = time.monotonic() - self.FOR_S
            self._held = {name: each for name, each in self._held.items() if each[0] > since_s}
            self._wake_later()

    def _wake_later(self) -> None:
        if self._held and self._timer is None:
            self._timer = threading.Timer(self.FOR_S, self.forget_idle)
            self._timer.daemon = True
            self._timer.start()


KEPT = Kept()
