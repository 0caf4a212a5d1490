"""How the lag of one group went in the last hours, from what the worker noted at each look."""

from dataclasses import dataclass

from streams import store
from streams.log import trails
from streams.selectors.groups import GroupView


@dataclass(frozen=True, slots=True)
class LagPoint:
    """How a group stood at a moment (unix seconds): messages not delivered, age of the oldest not acknowledged."""

    at_s: float
    lag: int
    lag_seconds: float

    @property
    def is_at_rest(self) -> bool:
        return not self.lag and not self.lag_seconds


def lag_trail(view: GroupView, *, by_minute: bool = False) -> list[LagPoint]:
    """What is kept of a group, oldest first: each look of the last hour, or the highest of each minute of six.

    A group at rest is not looked at: until its next point it stood as at the last one.
    """
    state, group = view.state, view.group
    ahead_ms = state.now_ms - state.steady_ms
    found = store.log().run(trails.lately(group.stream.stream_id, group.name, by_minute=by_minute))
    return [LagPoint((point.at_ms + ahead_ms) / 1000, point.lag, point.lag_ms / 1000) for point in found]
