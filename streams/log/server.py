"""How the store itself stands."""

from dataclasses import dataclass

from streams.log import keys, stats
from streams.log.client import Op, Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """The server's own figures; a server that does not tell one says 0.

    Attributes:
        memory_bytes, clients: what it holds and who is connected.
        commands: executed since it started.
        aof_bytes: size of the append-only file.
        durability: what a publish is promised now: ``fsync``, ``window`` or ``memory``.
        writes_fail: whether the last write to disk failed.
    """

    memory_bytes: int
    clients: int
    commands: int
    aof_bytes: int
    durability: str
    writes_fail: bool


def is_full(*, memory: bool = False) -> Op[bool]:
    """Whether the memory of the durable server is used up (``maxmemory``), or of the one that holds the streams in
    memory: it lets messages go and takes none.

    Raises:
        StoreUnavailable: it does not answer.
    """
    _, info = yield Pipeline([("EXISTS", keys.meta(keys.stream_id(memory=memory))), ("INFO", "memory")])
    told = _figures(info)
    allowed, uncounted = int(told.get("maxmemory", 0)), int(told.get("mem_not_counted_for_evict", 0))
    return 0 < allowed < int(told.get("used_memory", 0)) - uncounted


def inspect(*, memory: bool = False) -> Op[ServerState]:
    """How the durable server stands, or the one that holds the streams in memory.

    Raises:
        StoreUnavailable: it does not answer.
    """
    # No stream has this id; it says which server is asked.
    told, durability = yield from _asked(keys.stream_id(memory=memory))
    info = _figures(told)
    return ServerState(
        memory_bytes=int(info.get("used_memory", 0)),
        clients=int(info.get("connected_clients", 0)),
        commands=int(info.get("total_commands_processed", 0)),
        aof_bytes=int(info.get("aof_current_size", 0)),
        durability=durability,
        writes_fail=info.get("aof_last_write_status", "ok") != "ok",
    )


def _figures(told: bytes) -> dict[str, str]:
    return dict(line.partition(":")[::2] for line in told.decode().splitlines() if ":" in line)


def _asked(stream_id: str) -> Op[tuple[bytes, str]]:
    _, info = yield Pipeline([("EXISTS", keys.meta(stream_id)), ("INFO",)])
    return info, (yield from stats.durability(stream_id))
