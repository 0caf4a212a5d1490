"""Who listens to the channels of the durable server."""

from collections.abc import Sequence

from streams.log.client import Op

ASKED_AT_ONCE = 1000
"""Channels in one command: well below a millisecond of the server's time."""


def heard(channels: Sequence[str]) -> Op[set[str]]:
    """Those of these channels that somebody subscribes to at this moment.

    Raises:
        StoreUnavailable: it does not answer.
    """
    found: set[str] = set()
    for first in range(0, len(channels), ASKED_AT_ONCE):
        part = channels[first : first + ASKED_AT_ONCE]
        told = yield ("PUBSUB", "NUMSUB", *part)
        found.update(name for name, count in zip(part, told[1::2], strict=True) if count)
    return found
