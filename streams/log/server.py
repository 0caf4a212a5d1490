"""How the store itself stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streams.log import keys, stats
from streams.log.client import Op, Pipeline, Reachable, Servers
from streams.log.errors import StoreUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """The server's own figures; a server that does not tell one says 0.

    Attributes:
        memory_bytes, clients: what it holds and who is connected.
        memory_most_bytes: what it may hold (``maxmemory``), or, where nothing limits it, what its machine has.
        is_memory_limited: which of the two that is.
        clients_most: connections that it takes.
        commands: executed since it started.
        aof_bytes: size of the append-only file.
        durability: what a publish is promised now: ``fsync``, ``window`` or ``memory``.
        writes_fail: whether the last write to disk failed.
        software: name and version, ``Valkey 8.1.4``; of nodes that differ each of them.
    """

    memory_bytes: int
    memory_most_bytes: int
    is_memory_limited: bool
    clients: int
    clients_most: int
    commands: int
    aof_bytes: int
    durability: str
    writes_fail: bool
    software: str


def is_full(*, memory: bool = False) -> Op[bool]:
    """Whether the memory of the durable server is used up (``maxmemory``), or of the one that holds the streams in
    memory: it lets messages go and takes none. In a cluster: of one node that answers.

    Raises:
        StoreUnavailable: it does not answer.
    """
    for told in (yield from _answers("memory", memory=memory)).values():
        allowed, uncounted = int(told.get("maxmemory", 0)), int(told.get("mem_not_counted_for_evict", 0))
        if 0 < allowed < int(told.get("used_memory", 0)) - uncounted:
            return True
    return False


def away() -> Op[tuple[int, int]]:
    """How many servers of the durable store did not answer when they were asked last, and how many there are."""
    servers = yield Servers()
    answering = yield Reachable(servers)
    return len(servers) - len(answering), len(servers)


def clocks() -> Op[list[int]]:
    """The time of each server of the durable store that answers, in unix ms.

    Raises:
        StoreUnavailable: none does.
    """
    found: list[int] = []
    for stream_id in (yield Reachable((yield Servers()))):
        _, (seconds, microseconds) = yield Pipeline([("EXISTS", keys.meta(stream_id)), ("TIME",)])
        found.append(int(seconds) * 1000 + int(microseconds) // 1000)
    return found


def stops_as_a_whole() -> Op[bool]:
    """Whether a node of the cluster refuses the streams that it has while another node is away."""
    for stream_id in (yield Reachable((yield Servers()))):
        _, told = yield Pipeline(
            [("EXISTS", keys.meta(stream_id)), ("CONFIG", "GET", "cluster-require-full-coverage")]
        )
        if told[1:] == [b"yes"]:
            return True
    return False


def inspect(*, memory: bool = False) -> Op[ServerState]:
    """How the durable server stands, or the one that holds the streams in memory; of a cluster, how the nodes that
    answer stand together.

    Raises:
        StoreUnavailable: it does not answer.
    """
    told = yield from _answers(memory=memory)
    promised = yield from _weakest(told)
    is_limited = all(int(info.get("maxmemory", 0)) for info in told.values())
    return ServerState(
        memory_bytes=_sum(told.values(), "used_memory"),
        memory_most_bytes=_sum(told.values(), "maxmemory" if is_limited else "total_system_memory"),
        is_memory_limited=is_limited,
        clients=_sum(told.values(), "connected_clients"),
        clients_most=_sum(told.values(), "maxclients"),
        commands=_sum(told.values(), "total_commands_processed"),
        aof_bytes=_sum(told.values(), "aof_current_size"),
        durability=promised,
        writes_fail=any(info.get("aof_last_write_status", "ok") != "ok" for info in told.values()),
        software=", ".join(sorted({_software(info) for info in told.values()})),
    )


def promised() -> Op[str]:
    """What a publish is promised now (see ``streams.log.stats.durability``); of a cluster, by the weakest node that
    answers.

    Raises:
        StoreUnavailable: it does not answer.
    """
    return (yield from _weakest((yield Reachable((yield Servers())))))


def _weakest(asked: Iterable[str]) -> Op[str]:
    found = set()
    for stream_id in asked:
        found.add((yield from stats.durability(stream_id)))
    return max(found, key=stats.PROMISES.index)


def _software(info: Mapping[str, str]) -> str:
    """Valkey also says which Redis it is compatible with."""
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info.get('redis_version', '')}".strip()


def _figures(told: bytes) -> dict[str, str]:
    return dict(line.partition(":")[::2] for line in told.decode().splitlines() if ":" in line)


def _sum(told: Iterable[Mapping[str, str]], name: str) -> int:
    return sum(int(info.get(name, 0)) for info in told)


def _answers(*section: str, memory: bool) -> Op[dict[str, dict[str, str]]]:
    """What each server tells of itself, by an id that no stream has and that says which one is asked."""
    asked = yield Reachable([keys.stream_id(memory=True)] if memory else (yield Servers()))
    if not asked:
        raise StoreUnavailable("the server of the streams in memory does not answer")
    found: dict[str, dict[str, str]] = {}
    for stream_id in asked:
        try:
            _, info = yield Pipeline([("EXISTS", keys.meta(stream_id)), ("INFO", *section)])
        except StoreUnavailable:
            if stream_id == asked[0]:
                raise  # without this one nothing goes
        else:
            found[stream_id] = _figures(info)
    return found
