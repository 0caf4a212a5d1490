"""What the header ``Okmq-Durability`` says."""

import time

from streams.log import keys, stats
from streams.log.client import AsyncLog

ANSWER_AGE_S = 1.0


class Durability:
    """What the servers do with a write before they answer, asked again at most once a second."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        # By whether the stream is in memory: when it was asked, and the answer.
        self._known: dict[bool, tuple[float, str]] = {}

    async def now(self, stream_id: str) -> str:
        """``fsync``, ``window`` or ``memory``; see ``streams.log.stats.durability``."""
        in_memory = keys.in_memory(stream_id)
        asked, answer = self._known.get(in_memory, (0.0, ""))
        if asked < time.monotonic() - ANSWER_AGE_S:
            answer = await self._log.run(stats.durability(stream_id))
            self._known[in_memory] = (time.monotonic(), answer)
        return answer
