"""What the header ``Okmq-Durability`` says."""

import time

from streams.log import stats
from streams.log.client import AsyncLog

ANSWER_AGE_S = 1.0


class Durability:
    """What the servers do with a write before they answer, asked again at most once a second."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        # By the server of the stream: when it was asked, and the answer.
        self._known: dict[str, tuple[float, str]] = {}

    async def now(self, stream_id: str) -> str:
        """``fsync``, ``window`` or ``memory``; see ``streams.log.stats.durability``."""
        server = self._log.server_of(stream_id)
        asked, answer = self._known.get(server, (0.0, ""))
        if asked < time.monotonic() - ANSWER_AGE_S:
            answer = await self._log.run(stats.durability(stream_id))
            self._known[server] = (time.monotonic(), answer)
        return answer
