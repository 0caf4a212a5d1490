"""Whether another server stands in the store's place: recorded, and an epoch begins above all that are on record."""

from asgiref.sync import sync_to_async

from streams.log import lineage
from streams.log.client import AsyncLog
from streams.log.lineage import Lineage
from streams.services import offsets_reserved as reserved
from streams.services import upkeep as records


class Promotions:
    """Remembers what was settled and what was recorded: the database is asked once for each change."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._settled: Lineage | None = None
        self._recorded: tuple[Lineage, int] | None = None

    async def look(self) -> None:
        """Record that another server has taken the store's place, once; again, should the process end before that is
        noted in the store.

        Raises:
            StoreUnavailable: it does not answer, or does not take the note; the next call notes it.
        """
        found = await self._log.run(lineage.look())
        if found.is_replica or found == self._settled:
            return
        if self._recorded is None or self._recorded[0] != found:
            epoch = await sync_to_async(reserved.epoch_due)(found)
            if epoch is None:
                self._settled = found
                return
            await sync_to_async(records.store_promoted)(epoch, is_another=bool(found.fresh))
            self._recorded = found, epoch
        await self._log.run(lineage.note(found, epoch=self._recorded[1]))
