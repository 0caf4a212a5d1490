"""Counts the requests of this process by what they asked and how long they took, and tells the store every second."""

import asyncio
import logging
from bisect import bisect_left

from streams.exchange import Exchange
from streams.log import traffic
from streams.log.client import AsyncLog
from streams.log.errors import LogError
from streams.log.traffic import BOUNDS_S, SECOND_US, Durations, Kind

TELL_EVERY_S = 1.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"

log = logging.getLogger(__name__)


class Traffic:
    """What this process has counted and not yet told; belongs to one event loop."""

    def __init__(self) -> None:
        self._fresh: dict[Kind, Durations] = {}
        self._log: AsyncLog | None = None
        self._telling: asyncio.Task[None] | None = None

    def note(self, exchange: Exchange) -> None:
        """Count an exchange that has ended."""
        method = exchange.method if exchange.method in METHODS else OTHER
        kind = Kind(method, exchange.route, exchange.status)
        durations = self._fresh.get(kind)
        if durations is None:
            durations = self._fresh[kind] = Durations()
        durations.buckets[bisect_left(BOUNDS_S, exchange.seconds)] += 1
        durations.sum_us += int(exchange.seconds * SECOND_US)

    def start(self, log_client: AsyncLog) -> None:
        """Tell this store from now on, in the running event loop."""
        self._log = log_client
        self._telling = asyncio.create_task(self._tell_again_and_again())

    async def stop(self) -> None:
        """Tell what is left, and let go of the store."""
        if self._telling is not None:
            self._telling.cancel()
        await self.tell()
        if self._log is not None:
            await self._log.close()

    async def tell(self) -> None:
        """Tell what is not yet told; a store that is away hears it later."""
        counted, self._fresh = self._fresh, {}
        if not counted or self._log is None:
            return
        try:
            await self._log.run(traffic.told(counted))
        except LogError as error:
            log.warning("The store cannot be told of the requests that were answered: %s", error)
            for kind, durations in counted.items():
                self._fresh.setdefault(kind, Durations()).add(durations)

    async def _tell_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            await self.tell()
