"""Open polls: how many fetches wait on which group, over all web processes."""

from collections.abc import Mapping

import msgspec

from streams.log import keys
from streams.log.client import Op, small
from streams.log.commands import Steady

TOLD_AGE_MS = 5_000
"""A web process that has not told of its open polls for so long has none."""


def told(process: str, polls: Mapping[tuple[str, str], int]) -> Op[None]:
    """Say how many fetches wait in a web process: (stream id, group) → how many. Nothing is said by an empty map."""
    if not polls:
        yield ("HDEL", keys.WAITING, process)
        return
    entry = {
        "at": (yield Steady()),
        "polls": {f"{stream_id} {name}": count for (stream_id, name), count in polls.items()},
    }
    yield small("HSET", keys.WAITING, process, msgspec.json.encode(entry))


def counted() -> Op[dict[tuple[str, str], int]]:
    """How many fetches wait, over all web processes that told it within the last seconds."""
    now_ms = yield Steady()
    flat = yield ("HGETALL", keys.WAITING)
    found: dict[tuple[str, str], int] = {}
    for process in map(msgspec.json.decode, flat[1::2]):
        if process["at"] < now_ms - TOLD_AGE_MS:
            continue
        for name, count in process["polls"].items():
            stream_id, _, group = name.partition(" ")
            found[stream_id, group] = found.get((stream_id, group), 0) + count
    return found
