"""How often each token may ask: one count a token, kept in the store so that every process sees the same."""

from dataclasses import dataclass

from streams.log import keys
from streams.log.client import Op, Script

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What a request took of its token's share.

    Attributes:
        allowed: whether the request is let through; one that is not takes nothing.
        left: how many more may come at this moment.
        retry_s: seconds until one is let through again, 0 when this one was.
        full_s: seconds until a whole burst is.
    """

    allowed: bool
    left: int
    retry_s: float
    full_s: float


def take(token_id: int, *, limit: int, burst: int) -> Op[Taken]:
    """Take one request of a token's share (the generic cell rate algorithm).

    Args:
        limit: requests a second.
        burst: requests that may come at once after a rest.
    """
    allowed, left, retry_us, full_us = yield Script(
        "rate", [keys.rate(token_id)], [f"{SECOND_US / limit:.6f}", burst]
    )
    return Taken(bool(allowed), left, retry_us / SECOND_US, full_us / SECOND_US)
