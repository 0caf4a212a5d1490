"""How the lag of a group went: two lists a group, which the worker appends to at each look, and once a minute.

The chart of one group is read from a few hundred entries of its own; the samples of all of them lie in one stream, and
six hours of these are too much to read for a page. A group at rest is not looked at and has no entry until it wakes.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from streams.log import keys
from streams.log.client import Op, Pipeline
from streams.log.keys import GroupName

LOOKS_KEPT = 370
"""Looks are ten seconds apart: an hour of them, and a little more."""

MINUTES_KEPT = 370
KEPT_S = 86_400


class Point(msgspec.Struct, frozen=True, array_like=True):
    """How a group stood at a moment (steady ms): messages not delivered, age of the oldest not acknowledged."""

    at_ms: int
    lag: int
    lag_ms: int


class Looked(NamedTuple):
    """What a look found, and where a minute ended before it the highest of that minute."""

    point: Point
    minute: Point | None = None


_decode = msgspec.json.Decoder(Point).decode


def note(looked: Mapping[GroupName, Looked]) -> Op[None]:
    """Append what was found of many groups, in one round trip a server; what is older than is kept goes."""
    for in_memory in (False, True):
        commands: list[tuple[object, ...]] = []
        for group, (point, minute) in looked.items():
            if keys.in_memory(group[0]) is not in_memory:
                continue
            commands += _pushed(keys.lags(*group), point, LOOKS_KEPT)
            if minute is not None:
                commands += _pushed(keys.lags_by_minute(*group), minute, MINUTES_KEPT)
        if commands:
            yield Pipeline(commands)


def _pushed(key: str, point: Point, most: int) -> list[tuple[object, ...]]:
    return [
        ("RPUSH", key, msgspec.json.encode(point)),
        ("LTRIM", key, -most, -1),
        ("EXPIRE", key, KEPT_S),
    ]


def lately(stream_id: str, name: str, *, by_minute: bool = False) -> Op[list[Point]]:
    """What is kept of a group, oldest first: look by look of the last hour, or the highest of each minute of six."""
    key = (keys.lags_by_minute if by_minute else keys.lags)(stream_id, name)
    return [_decode(each) for each in (yield ("LRANGE", key, 0, -1))]
