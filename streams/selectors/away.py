"""Which servers of the store do not answer while others do, and how many streams nobody can ask for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from streams import addresses, store
from streams.access import Caller
from streams.log import keys, server
from streams.log.client import Reachable, one
from streams.models.stream import Storage
from streams.selectors.streams import streams_of


@dataclass(frozen=True, slots=True)
class ServersAway:
    """What does not answer.

    Attributes:
        memory_since_ms: unix ms since when the server of the streams in memory does not; None where it does.
        nodes, of_nodes: so many nodes of a cluster do not, of so many.
    """

    memory_since_ms: int | None = None
    nodes: int = 0
    of_nodes: int = 1


def servers_away() -> ServersAway:
    """Of the servers without which others go on, those that do not answer now."""
    nodes = store.log().run(server.away()) if _is_cluster() else (0, 1)
    return ServersAway(memory_away_since_ms(), *nodes)


def memory_away_since_ms() -> int | None:
    """Unix ms since when the server of the streams in memory does not answer, as this process has met it; None where
    it does, or there is none.
    """
    log = store.log()
    if not store.has_memory() or log.run(one(Reachable([keys.stream_id(memory=True)]))):
        return None
    since_s = log.memory_away_since_s
    return None if since_s is None else int(since_s * 1000)


def ids_away(stream_ids: Sequence[str]) -> set[str]:
    """Those of some streams, by their internal ids, that lie on a server that does not answer."""
    return {*stream_ids} - {*store.log().run(one(Reachable(stream_ids)))} if stream_ids else set()


def streams_away(caller: Caller) -> int:
    """How many of the streams that a caller may see lie on a server that does not answer."""
    found = streams_of(caller).order_by()
    if not _is_cluster():
        if not store.has_memory():
            return 0
        found = found.filter(storage=Storage.MEMORY)
    stream_ids = list(found.values_list("stream_id", flat=True))
    return len(ids_away(stream_ids))


def _is_cluster() -> bool:
    return addresses.is_cluster(settings.ENV.redis_url)
