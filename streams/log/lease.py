"""A lease that one process holds at a time and that ends by itself, and when its holder sampled last."""

from streams.log import keys
from streams.log.client import Op, Script

_KEYS = (keys.WORKER_LEASE, keys.SAMPLED)


def worker_hold(owner: str, *, for_ms: int, sampled_ms: int | None = None) -> Op[bool]:
    """Take or keep the worker's lease for some milliseconds; False while another holds it.

    Args:
        sampled_ms: when the owner finished its last round of samples (unix ms), which everybody may know from then on.
    """
    return bool((yield Script("lease", list(_KEYS), [owner, for_ms, sampled_ms or 0])))


def worker_release(owner: str, *, sampled_ms: int | None = None) -> Op[None]:
    """Give the lease back, where it is still held; ``sampled_ms`` as when it was taken."""
    yield Script("lease", list(_KEYS), [owner, 0, sampled_ms or 0])


def sampled_ms() -> Op[int | None]:
    """When a worker finished a round of samples last (unix ms); None where none ever did."""
    told = yield ("GET", keys.SAMPLED)
    return int(told) if told else None
