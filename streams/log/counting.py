"""Counting what would go: passes over the columns of a census."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.log.census import PASS, Census, numpy

if TYPE_CHECKING:
    from streams.log.census import Column


@dataclass(slots=True)
class Reader:
    """How far a group has come: what it wants, has been given, and has not answered from the new floor on, in order.

    Attributes:
        is_new: whether the log does not know it yet, so that what it has not been given is counted here.
    """

    name: str
    patterns: Sequence[str]
    delivered: int = 0
    flying: Sequence[int] = ()
    unread: int = 0
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """What a purge by key takes: what matches one of the patterns, below an offset (None: any), but for the newest."""

    patterns: Sequence[str]
    below: int | None
    keep: int = 0


@dataclass(slots=True)
class Found:
    """What goes of the messages that were looked at, from which offset to which, and the lowest that stays; 0: none.

    Attributes:
        among: how many of those go that are asked about.
    """

    messages: int = 0
    size_bytes: int = 0
    first: int = 0
    last: int = 0
    lowest: int = 0
    among: int = 0


class Count:
    """What has enough newer ones of its key, is done by every group, or is of purged keys; and what groups want
    below the next floor.

    Args:
        floor, next_floor: of now, and as the other limits would have it.
        per_key: the limit a key, or None.
        by_interest: whether what every group is done with goes.
        taken: what a purge by key takes; None where there is none.
        among: ascending offsets of which is asked how many go.
    """

    def __init__(
        self,
        census: Census,
        readers: Sequence[Reader],
        *,
        floor: int,
        next_floor: int,
        per_key: int | None,
        by_interest: bool,
        taken: Taken | None = None,
        among: Sequence[int] = (),
    ) -> None:
        self._census, self._readers = census, readers
        self._floor = max(floor, census.lowest)
        self._next = max(next_floor, census.lowest)
        self._by_interest, self._among = by_interest, among
        self._limits: Column | None = None if per_key is None else census.turns_that_go(per_key)
        self._taken: Column | None = None
        self._taken_below = 0
        if taken is not None:
            self._taken = census.wanted(taken.patterns)
            if taken.below is not None:
                self._taken_below = taken.below
            elif taken.keep:
                self._taken_below = self._newest_from(taken.keep, self._taken)
            else:
                self._taken_below = census.last + 1
        self._wanted: dict[str, Column] = {
            each.name: census.wanted(each.patterns) for each in readers if each.patterns
        }
        self._flying: dict[str, list[int]] = {each.name: sorted(each.flying) for each in readers}
        self._found = Found()

    def run(self) -> Found:
        """Count; what groups have not read is added to their readers."""
        stop = self._census.last + 1
        for reader in self._readers:
            if reader.patterns or reader.is_new:
                for first, upto in _passes(max(self._floor, reader.delivered + 1), min(self._next, stop)):
                    reader.unread += self._ahead(reader, first, upto)
        if self._limits is not None or self._taken is not None or self._by_interest:
            for first, upto in _passes(self._next, stop):
                self._pass(first, upto)
        return self._found

    def _newest_from(self, keep: int, wanted: "Column") -> int:
        """The offset of the last but ``keep`` whose key is wanted; the first one where there are fewer."""
        for first, stop in reversed([*_passes(self._next, self._census.last + 1)]):
            matching = self._census.column("gone", first, stop) == 0
            matching &= _of(wanted, self._census.column("keys", first, stop))
            found = _number(matching)
            if found >= keep:
                return first + int(matching.nonzero()[0][-keep])
            keep -= found
        return self._next

    def _ahead(self, reader: Reader, first: int, stop: int) -> int:
        here = self._census.column("gone", first, stop) == 0
        if reader.patterns:
            here &= _of(self._wanted[reader.name], self._census.column("keys", first, stop))
        return _number(here)

    def _pass(self, first: int, stop: int) -> None:
        census, found = self._census, self._found
        here = census.column("gone", first, stop) == 0
        keys = census.column("keys", first, stop)
        goes, open_of = here.copy(), []
        if self._limits is not None:
            goes &= census.column("turns", first, stop) <= _of(self._limits, keys)
        if self._taken is not None:
            goes &= _of(self._taken, keys)
            goes[max(0, self._taken_below - first) :] = False
        if self._by_interest or goes.any():
            open_of = [self._open(reader, keys, first, stop) for reader in self._readers]
        if self._by_interest:
            done = _none_of(open_of, here)
            goes = done if self._limits is None else goes | done
        count = _number(goes)
        if count:
            found.first = found.first or first + int(goes.argmax())
            found.last = stop - 1 - int(goes[::-1].argmax())
            found.messages += count
            found.among += sum(bool(goes[offset - first]) for offset in _between(self._among, first, stop))
            found.size_bytes += int((census.column("sizes", first, stop) * goes).sum(dtype="u8"))
            for reader, is_open in zip(self._readers, open_of, strict=True):
                if is_open is not None:
                    reader.unread += _number(goes & is_open)
        if not found.lowest:
            stays = here & ~goes
            if stays.any():
                found.lowest = first + int(stays.argmax())

    def _open(self, reader: Reader, keys: "Column", first: int, stop: int) -> "Column | None":
        """Of every message whether a group has yet to be done with it; None: of none."""
        flying = self._flying[reader.name]
        out = _between(flying, first, stop)
        if not out and reader.delivered >= stop - 1:
            return None
        is_open: Column = keys == -1
        is_open[max(0, reader.delivered + 1 - first) :] = True
        wanted = _of(self._wanted[reader.name], keys) if reader.patterns else None
        if wanted is not None:
            is_open &= wanted
        for offset in out:
            # A filter that came while it was out: only interest lets go of it for that.
            is_open[offset - first] = wanted is None or not self._by_interest or wanted[offset - first]
        return is_open


def _passes(first: int, stop: int) -> Iterator[tuple[int, int]]:
    at = first
    while at < stop:
        upto = min(stop, (at // PASS + 1) * PASS)
        yield at, upto
        at = upto


def _between(offsets: Sequence[int], first: int, stop: int) -> Sequence[int]:
    return offsets[bisect_left(offsets, first) : bisect_left(offsets, stop)]


def _of(by_number: "Column", keys: "Column") -> "Column":
    """What is known of each message's key; twice as fast as by an index."""
    return by_number.take(keys, mode="clip")


def _number(those: "Column") -> int:
    return int(numpy().count_nonzero(those))


def _none_of(open_of: "Sequence[Column | None]", here: "Column") -> "Column":
    """Of every message whether all groups are done with it."""
    done = here.copy()
    for is_open in open_of:
        if is_open is not None:
            done &= ~is_open
    return done
