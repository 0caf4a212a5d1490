"""What the header ``Okmq-Durability`` says: how a server was set within the second before (ADR 51)."""

import asyncio
import time

from streams.log import stats
from streams.log.client import AsyncLog

ANSWER_AGE_S = 1.0
"""For so long an answer may be untrue once somebody has set the running server otherwise."""


class Durability:
    """What the servers do with a write before they answer, asked again at most once a second."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        # By the server of the stream: when it was asked, and the answer or who waits for it.
        self._asked: dict[str, tuple[float, asyncio.Future[str]]] = {}

    def ask(self, stream_id: str) -> asyncio.Future[str]:
        """Begin to ask, unless that was done within the last second: whoever writes meanwhile waits for both at once.

        The future is everybody's: shield it. It is ``fsync``, ``window`` or ``memory`` as of
        ``streams.log.stats.durability``, or has its errors.
        """
        server, now = self._log.server_of(stream_id), time.monotonic()
        held = self._asked.get(server)
        if held is not None and held[0] >= now - ANSWER_AGE_S and not _has_failed(held[1]):
            return held[1]
        answer = asyncio.ensure_future(self._log.run(stats.durability(stream_id)))
        answer.add_done_callback(_has_failed)  # an error that nobody waits for any more is none
        self._asked[server] = (now, answer)
        return answer


def _has_failed(answer: asyncio.Future[str]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
