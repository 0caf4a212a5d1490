"""A lease that one process holds at a time and that ends by itself."""

from streams.log import keys
from streams.log.client import Op, Script


def worker_hold(owner: str, *, for_ms: int) -> Op[bool]:
    """Take or keep the worker's lease for some milliseconds; False while another holds it."""
    return bool((yield Script("lease", [keys.WORKER_LEASE], [owner, for_ms])))


def worker_release(owner: str) -> Op[None]:
    """Give the lease back, where it is still held."""
    yield Script("lease", [keys.WORKER_LEASE], [owner, 0])
