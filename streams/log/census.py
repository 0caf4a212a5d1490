"""What a stream holds, message by message and without the bodies: size, key, and which of its key it is.

A limit a key, and groups with a filter, cannot be told by arithmetic. Their messages are kept in columns by offset, 13
bytes each, and a number a key; any question is then a pass over the columns (see ``counting``).
"""

import importlib
import itertools
import re
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from streams.log.patterns import python_pattern

if TYPE_CHECKING:
    import numpy as np

    Column = np.ndarray[tuple[int], np.dtype[Any]]

BLOCK, WIDE = 256, 65_536
"""Offsets that the store counts together what went of (``lua/lib/gone.lua``)."""

PASS = 16_384
"""Messages looked at together: what is computed of them stays near the processor."""

MOST_KEYS = 2_000_000
"""More are not counted: some 300 MB in the process that counts."""

MOST_OF_A_KEY = 2**31 - 1
"""What a turn can tell; no stream has more messages of a key in a process's memory."""

COLUMNS = ("keys", "sizes", "turns", "gone")
_TYPES = ("i4", "u4", "i4", "u1")


class Census:
    """The messages of a stream from offset ``first`` up to ``last``.

    Every column has a place for each offset, also of one that holds no message (``gone``). The n-th message of a key
    has the turn n; where one goes from between, all older ones of its key move up, so that a message always has as
    many newer ones of its key as its turn is below the total. Older ones may be missing below.

    Attributes:
        first: a multiple of ``WIDE`` at or below the lowest offset that is looked at.
        lowest: the lowest offset that was read.
        floor: the lowest offset that is counted; ``kept``: to which it may come down.
        returns: how many messages had ever come back to between others; others may be gone where it was another number.
        messages, bytes: that are visible from ``floor`` on.
    """

    def __init__(self, floor: int) -> None:
        self.first = floor - floor % WIDE
        self.lowest = self.floor = self.kept = floor
        self.last, self.returns = floor - 1, 0
        self.messages = self.bytes = 0
        self._numbers: dict[bytes, int] = {b"": 0}
        self._totals = array("i", [0])
        self._matching: dict[tuple[str, ...], array[int]] = {}
        self._store: dict[str, Column] = {
            name: numpy().zeros(0, type_) for name, type_ in zip(COLUMNS, _TYPES, strict=True)
        }
        self._gone_of: Column = numpy().zeros(0, "u2")
        self._make_room(floor - 1)

    def __len__(self) -> int:
        return self.last + 1 - self.first

    @property
    def is_full(self) -> bool:
        return len(self._numbers) > MOST_KEYS

    def column(self, name: str, first: int, stop: int) -> "Column":
        """A part of a column by offset: ``keys`` (numbers), ``sizes``, ``turns``, ``gone``; 0 without a key."""
        return self._store[name][first - self.first : stop - self.first]

    def turns_that_go(self, per_key: int) -> "Column":
        """By key number the last turn that has so many newer ones of its key."""
        limits: Column = numpy().array(self._totals, "i4") - min(per_key, MOST_OF_A_KEY)
        limits[0] = -1
        return limits

    def wanted(self, patterns: Sequence[str]) -> "Column":
        """By key number whether the key matches one of the patterns."""
        compiled = [re.compile(python_pattern(each), re.DOTALL) for each in patterns]
        matching = self._matching.setdefault(tuple(patterns), array("B"))
        for name in itertools.islice(self._numbers, len(matching), None):
            matching.append(bool(name) and any(each.fullmatch(name.decode()) for each in compiled))
        return numpy().array(matching, "bool")  # type: ignore[no-any-return]

    def extend(self, last: int, offsets: Sequence[int], sizes: Sequence[int], keys: Iterable[bytes]) -> None:
        """Take the messages that follow, up to ``last``; where none is, nothing is left."""
        np, numbers, totals = numpy(), self._numbers, self._totals
        of_key, turns = array("i"), array("i")
        for key in keys:
            number = numbers.setdefault(key, len(numbers))
            if number == len(totals):
                totals.append(0)
            if number:
                totals[number] += 1
            of_key.append(number)
            turns.append(totals[number])
        self._make_room(last)
        places = np.array(offsets, "i8") - self.first
        for name, values in zip(COLUMNS, (of_key, sizes, turns, 0), strict=True):
            self._store[name][places] = values
        self.messages, self.bytes, was = self.messages + len(offsets), self.bytes + sum(sizes), self.last
        self.last = last
        self._recount_gone(was + 1, last + 1)

    def move_floor(self, floor: int, *, kept: int) -> None:
        """Count from another floor on, which may come down again to ``kept``."""
        floor, self.kept = min(floor, self.last + 1), kept
        messages, size = self._visible(*sorted((self.floor, floor)))
        sign = -1 if floor > self.floor else 1
        self.messages, self.bytes = self.messages + sign * messages, self.bytes + sign * size
        self.floor = floor
        if kept - self.first > max(len(self) // 2, 16 * WIDE):
            self._cut(min(kept, floor) // WIDE * WIDE)

    def doubt(self, *, returns: int) -> None:
        """Something came back: what went of each block has to be told again."""
        self._gone_of[:], self.returns = 0xFFFF, returns

    def gone_blocks(self) -> tuple[bytes, bytes]:
        """How many are known to have gone, by block and by wide block, as the script ``census`` takes it."""
        np, many = numpy(), -(-len(self) // BLOCK)
        if not many:
            return b"", b""
        counts = self._gone_of[:many]
        sums = np.add.reduceat(counts, np.arange(0, many, BLOCK), dtype="u4")
        return counts.astype(">u2").tobytes(), sums.astype(">u4").tobytes()

    def note_gone(self, blocks: Sequence[int], runs: Iterable[tuple[int, int]]) -> bool:
        """Of some blocks all that went; false where something is there that was never seen."""
        gone = self._store["gone"]
        before = {block: self._block(block).copy() for block in blocks}
        for block in blocks:
            self._block(block)[max(0, self.kept - self._start(block)) :] = 0
        for first, last in runs:
            gone[max(0, first - self.first) : max(0, min(last, self.last) + 1 - self.first)] = 1
        changed: list[tuple[int, int]] = []
        for block, was in before.items():
            start, now = self._start(block), self._block(block)
            changed += [(start + at, -1 if was[at] else 1) for at in (was != now).nonzero()[0].tolist()]
            self._recount_gone(start, start + len(now))
        self._move_turns(sorted(changed, reverse=True))
        return self._count_changed(changed)

    def names(self) -> bytes:
        """The keys in the order of their numbers."""
        return b"\0".join(self._numbers)

    def state(self) -> "dict[str, Column]":
        """All that it takes to make it again with ``restored``."""
        np = numpy()
        columns = {name: self.column(name, self.first, self.last + 1) for name in COLUMNS}
        held = (
            self.first,
            self.lowest,
            self.floor,
            self.kept,
            self.last,
            self.returns,
            self.messages,
            self.bytes,
        )
        numbers = np.array(held, "i8")
        return {**columns, "totals": np.array(self._totals, "i4"), "numbers": numbers}

    @classmethod
    def restored(cls, state: "dict[str, Column]", names: bytes) -> "Census":
        first, lowest, floor, kept, last, *counts = state["numbers"].tolist()
        census = cls(first)
        census._make_room(last)
        census.lowest, census.floor, census.kept, census.last = lowest, floor, kept, last
        census.returns, census.messages, census.bytes = counts
        for name in COLUMNS:
            census.column(name, first, last + 1)[:] = state[name]
        census._numbers = {name: number for number, name in enumerate(names.split(b"\0"))}
        census._totals = array("i", state["totals"].astype("i4").tobytes())
        census._recount_gone(first, last + 1)
        return census

    def _visible(self, first: int, stop: int) -> tuple[int, int]:
        here = self.column("gone", first, stop) == 0
        return int(here.sum()), int(self.column("sizes", first, stop).sum(dtype="u8", where=here))

    def _start(self, block: int) -> int:
        return max(self.first, block * BLOCK)

    def _block(self, block: int) -> "Column":
        return self.column("gone", self._start(block), min((block + 1) * BLOCK, self.last + 1))

    def _count_changed(self, changed: Iterable[tuple[int, int]]) -> bool:
        is_known = True
        for offset, more in changed:
            if offset >= self.floor:
                size = int(self._store["sizes"][offset - self.first])
                self.messages, self.bytes = self.messages - more, self.bytes - more * size
                is_known = is_known and size > 0
        return is_known

    def _move_turns(self, changed: Sequence[tuple[int, int]]) -> None:
        """Older ones of a key move up where one of it went, and down where one came back; newest first."""
        np = numpy()
        moved: Column = np.zeros(len(self._totals), "i4")
        at, stop = 0, changed[0][0] + 1 if changed else self.first
        while stop > self.kept:
            first = max(self.kept, (stop - 1) // PASS * PASS)
            keys, turns = self.column("keys", first, stop), self.column("turns", first, stop)
            if at:
                turns += moved[keys]
            while at < len(changed) and changed[at][0] >= first:
                offset, more = changed[at]
                number = int(keys[offset - first])
                if number:
                    turns[: offset - first][keys[: offset - first] == number] += more
                    moved[number] += more
                at += 1
            if at == len(changed) and not moved.any():
                break
            stop = first

    def _recount_gone(self, first: int, stop: int) -> None:
        for block in range(first // BLOCK, -(-stop // BLOCK)):
            self._gone_of[block - self.first // BLOCK] = self._block(block).sum()

    def _make_room(self, last: int) -> None:
        """Where a column has to move, the system moves its pages: to copy ten million places would take 70 ms."""
        needed, held = last + 1 - self.first, len(self._store["gone"])
        if needed > held:
            room = max(needed, held + held // 8 + 1024)
            for name, column in self._store.items():
                column.resize(room, refcheck=False)
                if name == "gone":
                    column[held:] = True
            self._gone_of.resize(-(-room // BLOCK), refcheck=False)

    def _cut(self, first: int) -> None:
        """Let go of what lies below an offset."""
        for name, column in self._store.items():
            self._store[name] = column[first - self.first :].copy()
        self._gone_of = self._gone_of[(first - self.first) // BLOCK :].copy()
        self.first, self.lowest = first, max(first, self.lowest)


def numpy() -> Any:
    """Loaded where it is needed: 20 MB that only a process pays that counts."""
    return importlib.import_module("numpy")
