"""Arithmetic on offset ranges: what one micro-batch takes, and how a read is split into tasks. Pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets of one stream from ``first`` to ``last``, both included; some of them may hold no message."""

    workspace_id: int
    stream_id: str
    stream: str
    first: int
    last: int

    @property
    def offsets(self) -> int:
        return self.last - self.first + 1


def admit(start: Mapping[str, int], latest: Mapping[str, int], *, limit: int | None) -> dict[str, int]:
    """How far each stream is read in one micro-batch of at most ``limit`` offsets.

    Every stream that has something waiting gets one offset, while the limit reaches, and a share of the rest in
    proportion to what else it has. What rounding leaves over goes to the longest queues, so that a full limit is used
    whole and a long queue never starves the others. Of more streams than the limit has offsets, each batch has the next
    ones: it begins as much further as was read by then.

    Args:
        start: stream → last offset read so far; a stream that is missing starts at 0.
        latest: stream → last offset there is. Streams that are only in ``start`` are closed and dropped.

    Returns:
        stream → last offset of the micro-batch, for the streams of ``latest``, never behind ``start``.
    """
    waiting = {stream: max(0, last - start.get(stream, 0)) for stream, last in latest.items()}
    total = sum(waiting.values())
    if limit is not None and total > limit:
        names = sorted(stream for stream, count in waiting.items() if count > 0)
        turn = sum(start.get(stream, 0) for stream in latest) % len(names)
        first = set((names[turn:] + names[:turn])[:limit])
        rest, left = total - len(first), limit - len(first)
        given = {
            stream: (stream in first) + (count - (stream in first)) * left // max(1, rest)
            for stream, count in waiting.items()
        }
        left = limit - sum(given.values())
        for stream in sorted(waiting, key=lambda name: (-waiting[name], name)):
            extra = min(left, waiting[stream] - given[stream])
            given[stream], left = given[stream] + extra, left - extra
        waiting = given
    return {stream: start.get(stream, 0) + count for stream, count in waiting.items()}


def pack(ranges: Iterable[Range], *, rows: int, partitions: int) -> list[tuple[Range, ...]]:
    """Split ranges into tasks of nearly equal numbers of offsets, in order.

    Long ranges are cut and short ones share a task, so thousands of nearly idle streams are not thousands of
    tasks.

    Args:
        rows: most offsets in a task.
        partitions: fewest tasks, while there are offsets enough.
    """
    wanted = [each for each in ranges if each.offsets > 0]
    total = sum(each.offsets for each in wanted)
    if total == 0:
        return []
    tasks = min(total, max(partitions, -(-total // rows)))
    packed: list[tuple[Range, ...]] = []
    current: list[Range] = []
    taken = 0
    for each in wanted:
        first = each.first
        while first <= each.last:
            # Boundaries stand at k/tasks of the whole, so that no task gets more than one offset over its share.
            room = (len(packed) + 1) * total // tasks - taken
            last = min(each.last, first + room - 1)
            current.append(replace(each, first=first, last=last))
            taken += last - first + 1
            first = last + 1
            if taken == (len(packed) + 1) * total // tasks:
                packed.append(tuple(current))
                current = []
    return packed
