"""What the header ``Okmq-Durability`` says."""

import time

from streams.log import stats
from streams.log.client import AsyncLog

ANSWER_AGE_S = 1.0


class Durability:
    """What the store does with a write before it answers, asked again at most once a second."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._asked, self._answer = 0.0, ""

    async def now(self) -> str:
        """``fsync``, ``window`` or ``memory``; see ``streams.log.stats.durability``."""
        if self._asked < time.monotonic() - ANSWER_AGE_S:
            self._answer = await self._log.run(stats.durability())
            self._asked = time.monotonic()
        return self._answer
