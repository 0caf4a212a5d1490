"""Whether the message store still has what it was told of: one that was emptied, or is another one, does not."""

from streams import store
from streams.log import config, keys
from streams.log.client import Reachable, one
from streams.log.commands import Pipeline
from streams.models import Stream
from streams.models.stream import Storage


def streams_lost() -> list[Stream]:
    """The durable streams that the store was told of and that it has nothing of, but the product's own.

    Raises:
        StoreUnavailable: it does not answer.
    """
    told = Stream.objects.filter(storage=Storage.DURABLE, internal=False, offsets_reserved__gt=0)
    rows = {stream.stream_id: stream for stream in told}
    there = store.log().run(one(Reachable(list(rows))))
    return [rows[each.stream_id] for each in store.log().run(config.lost(there)) if each.is_whole]


def is_store_emptied() -> bool:
    """Whether the store has nothing of the product's own streams: a look that costs next to nothing.

    Raises:
        StoreUnavailable: it does not answer.
    """
    own = list(
        Stream.objects.filter(storage=Storage.DURABLE, internal=True, offsets_reserved__gt=0).values_list(
            "stream_id", flat=True
        )
    )
    if not own:
        return False
    found = store.log().run(one(Pipeline([("EXISTS", keys.meta(stream_id)) for stream_id in own])))
    return not any(found)
