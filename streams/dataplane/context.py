"""What the handlers of one process share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.dataplane.directory import Directory
from streams.log import config, stats
from streams.log.client import AsyncLog
from streams.log.errors import LogError
from streams.log.wake import Wakener

if TYPE_CHECKING:
    from streams.dataplane.publishing import Durability

TELL_EVERY_S = 0.2

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Context:
    """One process's connections and memory; belongs to its event loop.

    Attributes:
        touched: internal ids of streams that have changed and that the worker is not yet told of.
    """

    log: AsyncLog
    directory: Directory
    wakener: Wakener
    durability: Durability
    touched: set[str] = field(default_factory=set)

    async def tell_worker(self) -> None:
        """Tell the worker, again and again, which streams changed and which tokens were used."""
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            touched, self.touched = self.touched, set()
            used = self.directory.take_used()
            try:
                if touched:
                    await self.log.run(stats.touch(sorted(touched)))
                if used:
                    await self.log.run(config.tokens_used(used))
            except LogError as error:
                self.touched |= touched
                log.warning("The worker cannot be told what changed: %s", error)

    async def close(self) -> None:
        """Give everything back."""
        await self.wakener.stop()
        with contextlib.suppress(LogError):
            await self.log.close()
