"""Answers to deliveries, by the thousand at most in one call of a script, so that nobody else waits for long."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

from streams.log import keys
from streams.log.client import Op, Steady
from streams.log.errors import DoneInPart, LogError
from streams.log.group_scripts import group_script

SLICE = 1000
"""Most offsets or leases in one call of a script that settles or looks at them."""
MOVED_SLICE = 500
"""Of those that are to come again, at another time: each is written on its own."""
TERM_SLICE = 100
"""Of those that are ended, whose bodies are copied."""

Named = Literal["offsets", "up_to", "leases"]
"""How an answer names deliveries: by offset, by everything up to one, or by lease."""

T = TypeVar("T")


def ack(
    stream_id: str, name: str, named: Named, values: Sequence[int | str], *, consumer: str | None = None
) -> Op[int]:
    """Settle deliveries; returns how many were settled now. Twice is a no-op, late but not redelivered counts.

    It is done in slices, between which others are served. All leases are looked at before any is settled. When the
    store goes away in between, what comes first is settled; the same answer again does the rest.

    Args:
        consumer: whose deliveries offsets mean; None for whoever has them.

    Raises:
        GroupNotFound; LeaseLost: one of the leases has passed on, and nothing was done – or, of more than one slice,
            what comes before it, when it passed on meanwhile.
    """
    yield from _check(stream_id, name, named, values, SLICE)
    total = 0
    for part in _told(named, values):
        told = part
        while told:
            steady_ms = yield Steady()
            args = [keys.wake(stream_id), steady_ms, told[0], _holder(consumer), *told[1:]]
            count, told = yield group_script("ack", stream_id, name, args)
            total += count
    return total


def nack(
    stream_id: str,
    name: str,
    named: Named,
    values: Sequence[int | str],
    *,
    delay_ms: int = 0,
    consumer: str | None = None,
) -> Op[int]:
    """Give deliveries back: they come again after a delay. Slices and errors as ``ack``."""
    return (yield from _redeliver(stream_id, name, named, values, delay=str(delay_ms), consumer=consumer))


def working(
    stream_id: str, name: str, named: Named, values: Sequence[int | str], *, consumer: str | None = None
) -> Op[int]:
    """Restart the clock of deliveries that take longer. Slices and errors as ``ack``."""
    return (yield from _redeliver(stream_id, name, named, values, delay="", consumer=consumer))


def term(
    stream_id: str,
    name: str,
    named: Named,
    values: Sequence[int | str],
    *,
    reason: str,
    consumer: str | None = None,
) -> Op[list[int]]:
    """Send deliveries to the dead letters; returns the offsets of those that it ended. Slices and errors as ``ack``.

    Raises:
        DoneInPart: it was refused, or cut off, after some of them were.
    """
    yield from _check(stream_id, name, named, values, TERM_SLICE)
    ended: list[int] = []
    for part in _slices(values, TERM_SLICE):
        rest, following = part, 1
        while following:
            args = [keys.wake(stream_id), reason, named, _holder(consumer), *rest]
            try:
                offsets, following = yield group_script("term", stream_id, name, args)
            except LogError as why:
                if ended:
                    raise DoneInPart(why, len(ended), offsets=ended) from None
                raise
            ended += map(int, offsets)
            rest = rest[following - 1 :]
    return ended


def give_back(stream_id: str, name: str, leases: Sequence[str]) -> Op[int]:
    """Take back deliveries that never reached anyone: they come again at once and count as no deliveries.

    A lease that has passed on is passed over; under ``ack: none`` the messages come again all the same.
    """
    total = 0
    for part in _slices(leases, MOVED_SLICE):
        total += yield group_script("give_back", stream_id, name, [keys.wake(stream_id), *part])
    return total


def _redeliver(
    stream_id: str,
    name: str,
    named: Named,
    values: Sequence[int | str],
    *,
    delay: str,
    consumer: str | None,
) -> Op[int]:
    yield from _check(stream_id, name, named, values, MOVED_SLICE)
    total = 0
    for part in _slices(values, MOVED_SLICE):
        latest_ms = yield Steady(latest=True)
        args = [keys.wake(stream_id), latest_ms, delay, named, _holder(consumer), *part]
        total += yield group_script("redeliver", stream_id, name, args)
    return total


def _check(stream_id: str, name: str, named: Named, values: Sequence[int | str], most: int) -> Op[None]:
    """Refuse leases of more than one slice where one of them has passed on, before anything is done."""
    if named == "leases" and len(values) > most:
        for part in _slices(values, SLICE):
            yield group_script("leases_check", stream_id, name, part)


def _told(named: Named, values: Sequence[int | str]) -> Iterator[list[Any]]:
    """What an answer says to its script; of neighbours in order the first and the last are enough."""
    if _are_neighbours(named, values):
        yield ["neighbours", values[0], values[-1]]
        return
    for part in _slices(values, SLICE):
        if _are_neighbours(named, part):
            yield ["neighbours", part[0], part[-1]]
        else:
            yield [named, *part]


def _are_neighbours(named: Named, values: Sequence[int | str]) -> bool:
    first = values[0] if values else None
    return (
        named == "offsets"
        and isinstance(first, int)
        and values[-1] == first + len(values) - 1
        and [*values] == [*range(first, first + len(values))]
    )


def _holder(consumer: str | None) -> str:
    return "" if consumer is None else f"={consumer}"


def _slices(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    return (values[n : n + most] for n in range(0, len(values), most))
