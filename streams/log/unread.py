"""Where the groups of a stream stand, and what each has not acknowledged below a floor that would be."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from streams.log import keys, runs
from streams.log.client import Op, Pipeline, Scripts
from streams.log.counting import Reader
from streams.log.errors import GroupNotFound, LogError
from streams.log.group_scripts import group_script

TOGETHER = 200
"""Groups that are asked for in one call."""

_OUT = (keys.pending, keys.parked, keys.runs)
"""What is out at a group."""


class Unread(NamedTuple):
    """A group, and from which offset on messages have to be looked at for it; None: nowhere."""

    reader: Reader
    look_from: int | None


def of_groups(
    stream_id: str, groups: Mapping[str, Sequence[str]], first: int, stop: int, *, begins: Mapping[str, int]
) -> Op[list[Unread]]:
    """Where these groups stand, with what they have not acknowledged of the offsets from ``first`` to before ``stop``.

    Where a group has a filter, what it has not read of them is not counted: that has to be looked at.

    Args:
        groups: name → filter patterns.
        begins: name → up to which offset all counts as delivered, of groups that the log may not know yet. One that it
            does not know, and that is not among them, is left out.
    """
    found: list[Unread] = []
    names = list(groups)
    for begin in range(0, len(names), TOGETHER):
        some = names[begin : begin + TOGETHER]
        counted = yield Scripts(
            [group_script("group_unread", stream_id, name, [first, stop]) for name in some]
        )
        out = yield Pipeline(
            [("ZRANGEBYSCORE", make(stream_id, name), stop, "+inf") for name in some for make in _OUT]
        )
        for place, (name, told) in enumerate(zip(some, counted, strict=True)):
            if not isinstance(told, LogError):
                pending, parked, members = out[place * len(_OUT) : (place + 1) * len(_OUT)]
                taken = _offsets_of(map(runs.read, members), stop)
                reader = Reader(
                    name, groups[name], flying=sorted([*map(int, pending), *map(int, parked), *taken])
                )
                found.append(_stands(reader, *map(int, told), first=first))
            elif not isinstance(told, GroupNotFound):
                raise told
            elif name in begins:
                reader = Reader(name, groups[name], delivered=begins[name], is_new=True)
                found.append(Unread(reader, max(first, begins[name] + 1)))
    return found


def _offsets_of(taken: Iterable[runs.Run], stop: int) -> Iterator[int]:
    for run in taken:
        yield from range(max(stop, run.first), run.last + 1)


def _stands(reader: Reader, delivered: int, ahead: int, out: int, *, first: int) -> Unread:
    """Of what it has not acknowledged, so many lie ahead of what it was given, and so many are out."""
    reader.delivered = delivered
    if reader.patterns and ahead:
        reader.unread = out
        return Unread(reader, max(first, delivered + 1))
    reader.unread = out + ahead
    return Unread(reader, None)
