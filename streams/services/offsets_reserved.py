"""Up to which offset each stream may have given some: so one whose store was lost goes on above all of them.

The database learns of offsets in blocks, long before they are given, so that this costs a busy stream one write in
half a million messages and a quiet one a single write ever. What gives more than half a block between two looks of the
worker, which are a second apart, may be ahead of it.
"""

from collections.abc import Callable, Iterable, Mapping

from django.db.models import F
from django.db.models.functions import Greatest

from streams import store
from streams.access import SYSTEM
from streams.log import config, lineage, memory, stats
from streams.log.config import Lost
from streams.models import Event, RollupPosition, Stream
from streams.models.stream import Storage
from streams.selectors import is_store_emptied, streams_lost
from streams.services.events import event_record
from streams.services.removals import removals_begin_anew
from streams.services.summaries import counted

BLOCK = 1_000_000

Archived = Callable[[], Mapping[str, int]]
"""Tells the last offset of each internal id in the history's files; asked only where something was lost."""

EMPTIED, TOLD_AGAIN = "store.emptied", "store.told_again"
WITH_EPOCH = ("store.promoted", TOLD_AGAIN)


class Reservations:
    """Keeps what the database knows ahead of what streams give. One at a time."""

    def __init__(self) -> None:
        self._reserved: dict[str, int] | None = None

    def keep_ahead(self, offsets: Mapping[str, int]) -> None:
        """Reserve more for those of these streams, internal id → last offset, that have used half a block."""
        if self._reserved is None:
            self._reserved = dict(Stream.objects.values_list("stream_id", "offsets_reserved"))
        for stream_id, offset in offsets.items():
            if offset + BLOCK // 2 > self._reserved.get(stream_id, BLOCK):
                self._reserved[stream_id] = reserved = offset + BLOCK
                Stream.objects.filter(stream_id=stream_id).update(
                    offsets_reserved=Greatest(F("offsets_reserved"), reserved)
                )


def reserved_for(streams: Iterable[Stream], *, archived: Mapping[str, int]) -> dict[str, int]:
    """Internal id → the offset up to which each of these may have given some, as far as anything tells.

    Args:
        archived: internal id → the last offset in the history's files.
    """
    rows = {each.stream_id: each.offsets_reserved for each in streams}
    counted_to = dict(RollupPosition.objects.filter(stream_id__in=rows).values_list("stream_id", "offset"))
    return {
        stream_id: max(reserved, counted_to.get(stream_id, 0), archived.get(stream_id, 0))
        for stream_id, reserved in rows.items()
    }


def begin_anew(streams: Iterable[Stream], *, archived: Archived = dict) -> list[Lost]:
    """Before the log is told of streams: have those whose counters it lost go on above all that they gave.

    Where messages went with them, an epoch begins before any of them can be published to, so that consumers who keep
    offsets look whether these still name what they have.

    Returns:
        Those that began anew; ``tell_of`` is to be called with them once the log was told.
    """
    told = [each for each in streams if each.storage == Storage.DURABLE and each.offsets_reserved]
    if not told:
        return []
    lost = store.log().run(config.lost([each.stream_id for each in told]))
    if not lost:
        return []
    ids, own = {each.stream_id for each in lost}, {each.stream_id for each in told if each.internal}
    if any(each.is_whole and each.stream_id not in own for each in lost):
        store.log().run(lineage.raise_above(highest_epoch()))
    rows = [each for each in told if each.stream_id in ids]
    store.log().run(config.streams_anew(reserved_for(rows, archived=archived())))
    return lost


def tell_of(lost: Iterable[Lost], streams: Iterable[Stream]) -> None:
    """Record that streams began anew."""
    rows = {each.stream_id: each for each in streams}
    for each in lost:
        if each.stream_id in rows:
            removals_begin_anew(rows[each.stream_id], store.log().run(stats.inspect(each.stream_id)))
    empty = [each for each in lost if each.is_whole and not rows[each.stream_id].internal]
    if empty:
        what = counted(len(empty), "stream")
        event_record(
            None,
            kind=TOLD_AGAIN,
            actor=SYSTEM,
            after={"epoch": store.log().run(lineage.look()).epoch, "streams": len(empty)},
            summary=f"The message store had lost {what}: told again, they are empty and go on above every offset "
            "that they may have given.",
        )


def memory_reserve(streams: Iterable[Stream]) -> None:
    """Give the store back what streams in memory had reserved there, where it lost that."""
    reserved = {
        each.stream_id: each.offsets_reserved
        for each in streams
        if each.storage == Storage.MEMORY and each.offsets_reserved
    }
    store.log().run(memory.reservations_restore(reserved))


def loss_note() -> int:
    """Record that the store has nothing of streams that it was told of; how many these are.

    Raises:
        StoreUnavailable: it does not answer.
    """
    lost = len(streams_lost())
    if lost:
        event_record(
            None,
            kind=EMPTIED,
            actor=SYSTEM,
            after={"streams": lost},
            summary=f"The message store has nothing of {counted(lost, 'stream')} that it was told of: it was emptied, "
            "or is another one.",
        )
    return lost


def epoch_due(found: lineage.Lineage) -> int | None:
    """The epoch that is to begin as the store stands; None: none is.

    It is above all that are on record. A replica may not have got what was noted on another one, and a server that was
    the store before, or was restored, knows less. A store that was emptied begins one when it is told again.

    Raises:
        StoreUnavailable: it does not answer.
    """
    highest = highest_epoch()
    if found.fresh:
        return max(found.epoch, highest + 1)
    return None if found.noted >= highest or is_store_emptied() else highest + 1


def highest_epoch() -> int:
    """The highest that is on record; a store that lost what it held has forgotten it."""
    found = Event.objects.filter(kind__in=WITH_EPOCH).order_by("-id").values_list("after", flat=True)[:100]
    return max((int(after.get("epoch", 0)) for after in found if after), default=0)
