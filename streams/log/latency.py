"""How long messages took from their publish to their acknowledgement, as ``lua/lib/latency.lua`` counts it."""

from streams.log import group_meta, keys
from streams.log.client import Op

EXACT_BITS = 5
"""Milliseconds below 32 are counted as they are, longer times by their first five binary digits."""


def acknowledged(stream_id: str, name: str) -> Op[dict[int, int]]:
    """Of all messages that a group ever acknowledged, ms from publish to acknowledgement → how many."""
    flat: list[bytes] = yield ("HGETALL", keys.group(stream_id, name))
    held = {flat[n].decode(): flat[n + 1] for n in range(0, len(flat), 2)}
    return {int(place): int(count) for place, count in held.items() if place not in group_meta.FIELDS}


def place_of(ms: int) -> int:
    """The number under which so many ms are counted."""
    digits = max(0, ms.bit_length() - EXACT_BITS)
    return ms >> digits << digits
