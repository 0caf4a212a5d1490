"""What cannot be read of single streams and groups, or has no room: passed over, so that upkeep goes on, and told."""

import logging
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from streams.log.damages import Noted
from streams.log.errors import Damaged, StoreFull

KEPT_S = 60.0
"""Each stream has its turn three times in so long, and a group that could not be looked at is looked at again: what was
not met since is in order."""

log = logging.getLogger(__name__)


class Damages:
    """Remembers what the steps of the worker met lately."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], tuple[float, Noted]] = {}
        self._full_s = -math.inf

    @contextmanager
    def passed_over(self) -> Iterator[None]:
        """Go on after this step where something that it read is damaged, or a server was too full for it: what comes
        after makes room."""
        try:
            yield
        except Damaged as error:
            self.meet([error])
        except StoreFull as error:
            self.meet_full(error)

    def meet(self, errors: Iterable[Damaged]) -> None:
        """Note what could not be read, and say so the first time."""
        for error in errors:
            named = (error.stream_id or error.key, error.group)
            if named not in self._met:
                log.warning("What the store holds cannot be read (okmq_fsck): %s", error)
            self._met[named] = (time.monotonic(), Noted(error.stream_id, error.group, str(error)))

    def meet_full(self, error: StoreFull) -> None:
        """Say that a server takes nothing, the first time in a while."""
        if self._full_s < time.monotonic() - KEPT_S:
            log.warning("A step of the upkeep had no room: %s", error)
        self._full_s = time.monotonic()

    def lately(self) -> list[Noted]:
        """What was met within the last minute."""
        since_s = time.monotonic() - KEPT_S
        self._met = {named: each for named, each in self._met.items() if each[0] >= since_s}
        return [each for _, each in self._met.values()]
