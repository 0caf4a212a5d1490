"""How fast the streams of a workspace moved together: a list a workspace, which the worker appends to.

A second in which nothing moved has no entry. What one stream did is in the stream of samples; to add it up for a chart
would be to read what thousands of streams did in a quarter of an hour.
"""

from collections.abc import Mapping

import msgspec

from streams.log import keys
from streams.log.client import Op, Pipeline

SPAN_S = 15 * 60
"""Seconds that are kept at least."""

MOST = SPAN_S + 60
KEPT_S = 86_400


class Flow(msgspec.Struct, frozen=True, array_like=True):
    """The sums of one moment (unix ms), a second: messages and bytes published, messages done with."""

    at_ms: int
    rate_in: float
    bytes_in: float
    rate_out: float


_decode = msgspec.json.Decoder(Flow).decode


def note(flows: Mapping[int, Flow]) -> Op[None]:
    """Append the newest of some workspaces, by their keys; what is older than the span goes."""
    commands: list[tuple[object, ...]] = []
    for workspace_id, flow in flows.items():
        key = keys.flow(workspace_id)
        commands += [
            ("RPUSH", key, msgspec.json.encode(flow)),
            ("LTRIM", key, -MOST, -1),
            ("EXPIRE", key, KEPT_S),
        ]
    if commands:
        yield Pipeline(commands)


def lately(workspace_id: int, *, most: int = MOST) -> Op[list[Flow]]:
    """The newest of a workspace, oldest first."""
    return [_decode(each) for each in (yield ("LRANGE", keys.flow(workspace_id), -most, -1))]
