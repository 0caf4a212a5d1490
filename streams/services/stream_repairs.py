"""Streams of the log put right by the database: what a store that went away, or a process that ended, left untold."""

from collections.abc import Iterable

from streams import store
from streams.log import config, keys
from streams.log.config import Registered
from streams.models import Stream
from streams.models.stream import Storage
from streams.services.streams import streams_publish


def streams_repair(*, with_memory: bool) -> list[str]:
    """Tell the log of streams that were made or changed and of which it was not told.

    Args:
        with_memory: whether the server of the streams in memory answers; if not, they are left to a later call.

    Returns:
        The names of the streams that were put right.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    untold = Stream.objects.select_related("workspace").filter(is_told=False)
    streams = list(untold if with_memory else untold.filter(storage=Storage.DURABLE))
    streams_publish(streams)
    return [stream.name for stream in streams]


def leftovers_remove(held: Iterable[Registered], *, with_memory: bool) -> list[str]:
    """Take out of the log the streams that the database no longer has.

    Args:
        held: what the log's registry lists, maybe a while ago. It is told of a stream after the database has it, so
            what is only there was deleted.
        with_memory: as of ``streams_repair``.

    Returns:
        The names of the streams that were taken out.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    known = set(Stream.objects.values_list("stream_id", flat=True))
    left = [each for each in held if each.stream_id not in known]
    if not with_memory:
        left = [each for each in left if not keys.in_memory(each.stream_id)]
    store.log().run(config.streams_remove([(each.stream_id, each.workspace_id, each.name) for each in left]))
    return [each.name for each in left]
