"""How many messages the groups of each stream finish a second, from what their counters say at each tick."""

from collections.abc import Mapping

from streams.log.group_meta import Counters
from streams.log.keys import GroupName


class Acks:
    """Remembers what each busy group had acknowledged; what one did before the first look at it is no rate."""

    def __init__(self) -> None:
        self._before: dict[GroupName, int] = {}
        self._looked_s = 0.0

    def look(self, counters: Mapping[GroupName, Counters], *, at_s: float) -> dict[str, float]:
        """Messages acknowledged a second since the look before, by the stream's internal id.

        Args:
            counters: of all groups that may have acknowledged something since.
            at_s: by a clock that does not jump.
        """
        seconds = max(0.001, at_s - self._looked_s)
        rates: dict[str, float] = {}
        for named, held in counters.items():
            done = held.acked - self._before.get(named, held.acked)
            if done > 0:
                rates[named[0]] = rates.get(named[0], 0.0) + done / seconds
        self._before = {named: held.acked for named, held in counters.items()}
        self._looked_s = at_s
        return rates
