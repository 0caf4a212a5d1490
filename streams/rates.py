"""Rate limits as both planes answer them: the headers that tell a client how it stands, and the refusal."""

import math

from streams.errors import Refusal
from streams.log import rate
from streams.log.client import Op
from streams.log.rate import Taken


def burst_of(limit: int, burst: int | None) -> int:
    """Requests that may come at once: those of one second unless a number is set."""
    return limit if burst is None else burst


def admitted(token_id: int, *, limit: int, burst: int | None) -> Op[dict[str, str]]:
    """Let a token's request through.

    Args:
        limit: requests a second.
        burst: requests at once; None is those of one second.

    Returns:
        ``X-RateLimit-Limit`` (requests at once), ``-Remaining`` (of them now) and ``-Reset`` (whole seconds until
        all of them are there again), for the answer.

    Raises:
        Refusal: ``rate_limited``, with the same headers and ``Retry-After``.
    """
    at_once = burst_of(limit, burst)
    taken = yield from rate.take(token_id, limit=limit, burst=at_once)
    if not taken.allowed:
        raise _refusal(taken, limit=limit, burst=at_once)
    return _headers(taken, burst=at_once)


def _headers(taken: Taken, *, burst: int) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(burst),
        "X-RateLimit-Remaining": str(taken.left),
        "X-RateLimit-Reset": str(math.ceil(taken.full_s)),
    }


def _refusal(taken: Taken, *, limit: int, burst: int) -> Refusal:
    return Refusal(
        "rate_limited",
        f"This token may make {limit} requests per second; try again in {taken.retry_s:.3f} s.",
        headers={**_headers(taken, burst=burst), "Retry-After": str(max(1, math.ceil(taken.retry_s)))},
        limit=limit,
        burst=burst,
        retry_after=round(taken.retry_s, 3),
    )
