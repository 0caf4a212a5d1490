"""Streams of the log put right by the database: what a store that went away, or a process that ended, left untold."""

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
