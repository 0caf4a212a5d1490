"""Anchors of the chain of events: in a second place, how far it went, so that a tail cut off is missed."""

from streams.log import keys
from streams.log.client import Op, Script

KEPT = 1000
"""The newest so many anchors are kept."""


def put(chain: str, *, event_id: int, digest: str) -> Op[None]:
    """Write down that the chain's event has this hash; what was written about another hash of it stays."""
    yield Script("anchor", [keys.anchors(chain)], [event_id, f"{event_id}:{digest}", KEPT])


def known(chain: str) -> Op[list[tuple[int, str]]]:
    """The anchors of a chain: event id and hash, ascending."""
    found = yield ("ZRANGE", keys.anchors(chain), 0, -1)
    pairs = (member.decode().split(":", 1) for member in found)
    return [(int(event_id), digest) for event_id, digest in pairs]


def begin(chain: str, *, event_id: int, digest: str) -> Op[None]:
    """Forget the chain's anchors but for this one: after a backup was brought back."""
    yield ("UNLINK", keys.anchors(chain))
    yield from put(chain, event_id=event_id, digest=digest)
