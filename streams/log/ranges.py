"""Offsets as ranges: what went is told by how many ranges it lies in, not by how much it is."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

Range = tuple[int, int]
"""First and last offset."""


def joined(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """What of ranges, in order of their first offsets, lies between two, both included; those that touch as one."""
    found: list[Range] = []
    for begin, end in ranges:
        low, high = max(begin, first), min(end, last)
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def holds(ranges: Sequence[Range], offset: int) -> bool:
    """Whether an offset lies in one of the ranges, which are ``joined``."""
    place = bisect_right(ranges, offset, key=lambda each: each[0])
    return place > 0 and ranges[place - 1][1] >= offset


def between(ranges: Iterable[Range], first: int, last: int) -> Iterator[Range]:
    """What lies between two offsets, both included, and in none of the ranges, which are ``joined`` there."""
    for low, high in ranges:
        if low > first:
            yield first, low - 1
        first = high + 1
    if first <= last:
        yield first, last


def count(ranges: Iterable[Range]) -> int:
    """How many offsets lie in ranges, none of which overlap."""
    return sum(last - first + 1 for first, last in ranges)


def in_blocks(first: int, last: int, size: int) -> Iterator[Range]:
    """A range in parts that reach over no multiple of ``size``."""
    while first <= last:
        end = min(last, first - first % size + size - 1)
        yield first, end
        first = end + 1
