"""A lease that one process holds at a time and that ends by itself, and when its holders sampled, and nobody did."""

from typing import NamedTuple

from streams.log import keys
from streams.log.client import Op, Script

SILENT_FROM_MS = 3_000
"""Rounds of samples are a second apart and a little late: after more than this nobody counted in between."""

SILENCES_KEPT_MS = 7 * 3_600_000
"""As long as samples are kept."""

_KEYS = (keys.WORKER_LEASE, keys.SAMPLED, keys.SILENCES)
_LIMITS = (SILENT_FROM_MS, SILENCES_KEPT_MS)


class Silence(NamedTuple):
    """Two rounds of samples (unix ms) between which nobody sampled."""

    since_ms: int
    until_ms: int


def worker_hold(owner: str, *, for_ms: int, sampled_ms: int | None = None) -> Op[bool]:
    """Take or keep the worker's lease for some milliseconds; False while another holds it.

    Args:
        sampled_ms: when the owner finished its last round of samples (unix ms), which everybody may know from then on.
    """
    return bool((yield Script("lease", list(_KEYS), [owner, for_ms, sampled_ms or 0, *_LIMITS])))


def worker_release(owner: str, *, sampled_ms: int | None = None) -> Op[None]:
    """Give the lease back, where it is still held; ``sampled_ms`` as when it was taken."""
    yield Script("lease", list(_KEYS), [owner, 0, sampled_ms or 0, *_LIMITS])


def sampled_ms() -> Op[int | None]:
    """When a worker finished a round of samples last (unix ms); None where none ever did."""
    told = yield ("GET", keys.SAMPLED)
    return int(told) if told else None


def silences(*, since_ms: int) -> Op[list[Silence]]:
    """When nobody sampled, as far as it ended after a moment (unix ms), oldest first; not what goes on."""
    found = yield ("ZRANGEBYSCORE", keys.SILENCES, f"({since_ms}", "+inf")
    return [Silence(*map(int, each.split())) for each in found]
