"""Feeds the demonstrations that people started in the console, once a second, beside the worker."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence

import msgspec
from asgiref.sync import sync_to_async

from okmq.demo import flights
from okmq.demo.flights import Flights, NoFlights
from streams.services.demos import demos_feed

EVERY_S = 1.0

log = logging.getLogger(__name__)


class DemoFeed:
    """Runs until ``stop``; the table of departures is in memory only while a demonstration runs."""

    def __init__(self) -> None:
        self._table: Flights | None = None
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Feed what is under way; what goes wrong is told and tried again."""
        while not self._stopped.is_set():
            started = time.monotonic()
            try:
                if not await sync_to_async(demos_feed)(self.departures):
                    self._table = None
            except NoFlights as error:
                log.warning("No demo: %s", error)
            except Exception:
                log.exception("The demo could not go on; it tries again.")
            with contextlib.suppress(TimeoutError):
                left = EVERY_S - (time.monotonic() - started)
                await asyncio.wait_for(self._stopped.wait(), max(0.05, left))

    def stop(self) -> None:
        """Let the step under way be the last."""
        self._stopped.set()

    def departures(self, first: int, count: int) -> Sequence[tuple[str, bytes]]:
        """Key and body of departures from a rank on; after the last of the year comes the first again."""
        if self._table is None:
            self._table = flights.load()
        table = self._table
        found = [table.message(rank % len(table)) for rank in range(first, first + count)]
        return [(message["key"], msgspec.json.encode(message["body"])) for message in found]
