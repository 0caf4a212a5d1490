"""Streams of the log put right by the database: what a store that went away, or a process that ended, left untold."""

from collections.abc import Collection, Iterable

from streams import store
from streams.log import config, damage, keys
from streams.log.client import Reachable, one
from streams.log.config import Registered
from streams.models import Stream
from streams.models.stream import Storage
from streams.services.streams_told import streams_publish


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
    there = _answering(each.stream_id for each in streams)
    streams = [each for each in streams if each.stream_id in there]
    with damage.left_to_fsck():
        streams_publish(streams)
    return [stream.name for stream in streams]


def is_of_another_database(held: Collection[str]) -> bool:
    """Whether the log holds streams and this database knows none of them.

    Internal ids are random (``streams.log.keys``), and each prepared database has a stream in the log that nobody can
    delete, the one of its metrics. So two that know no stream in common are not of one installation.

    Args:
        held: the internal ids of all streams that the log holds.
    """
    return bool(held) and _known().isdisjoint(held)


def leftovers_remove(held: Collection[Registered], *, with_memory: bool) -> list[str]:
    """Take out of the log the streams that the database no longer has.

    Nothing is taken out beside a database that is another one.

    Args:
        held: all that the log's registry lists, maybe a while ago. It is told of a stream after the database has it, so
            what is only there was deleted.
        with_memory: as of ``streams_repair``.

    Returns:
        The names of the streams that were taken out.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    known = _known()
    if known.isdisjoint(each.stream_id for each in held):
        return []
    left = [each for each in held if each.stream_id not in known]
    if not with_memory:
        left = [each for each in left if not keys.in_memory(each.stream_id)]
    there = _answering(each.stream_id for each in left)
    left = [each for each in left if each.stream_id in there]
    store.log().run(config.streams_remove([(each.stream_id, each.workspace_id, each.name) for each in left]))
    return [each.name for each in left]


def _known() -> set[str]:
    return set(Stream.objects.values_list("stream_id", flat=True))


def _answering(stream_ids: Iterable[str]) -> set[str]:
    """Those of these streams that lie on nodes that answer: a later call does the others."""
    return set(store.log().run(one(Reachable(list(stream_ids)))))
