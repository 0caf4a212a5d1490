"""Who listens to the channels of the durable server."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from streams.log import keys
from streams.log.client import Op, Pipeline, Reachable, Servers
from streams.log.errors import StoreUnavailable

ASKED_AT_ONCE = 1000
"""Channels in one command: well below a millisecond of the server's time."""


def heard(channels: Sequence[str]) -> Op[set[str]]:
    """Those of these channels that somebody subscribes to at this moment.

    Raises:
        StoreUnavailable: it does not answer.
    """
    found: set[str] = set()
    others = (yield Reachable((yield Servers())))[1:]
    for first in range(0, len(channels), ASKED_AT_ONCE):
        part = channels[first : first + ASKED_AT_ONCE]
        asked = ("PUBSUB", "NUMSUB", *part)
        told = yield asked
        found.update(_with_listeners(part, told))
        for stream_id in others:  # a node tells of those who subscribed there
            with suppress(StoreUnavailable):
                _, told = yield Pipeline([("EXISTS", keys.meta(stream_id)), asked])
                found.update(_with_listeners(part, told))
    return found


def _with_listeners(channels: Sequence[str], told: Sequence[Any]) -> Iterator[str]:
    return (name for name, count in zip(channels, told[1::2], strict=True) if count)
