"""The doctor's looks at the message stores: whether they answer, hold what they were told, and can be read."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from django.db import DatabaseError, connection

from okmq.env import Env
from okmq.operation.told import Told
from okmq.supervision import resp, room
from okmq.supervision.children import last_lines
from okmq.supervision.valkey import binary
from streams import addresses, selectors, store
from streams.log import damages, lineage, server
from streams.log.client import Reachable, one
from streams.log.errors import LogError
from streams.models import Stream
from streams.models.stream import Storage

MOST_MEMORY_SHARE = 0.8
LAST_WORDS = 60
DAMAGED_FILE = (
    "Bad file format reading the append only file",
    "Unexpected end of file reading the append only file",
    "Fatal error loading the DB",
    "AOF file missing",
    "AOF manifest",
    "error in reading the append only file",
    "Wrong signature trying to load DB",
    "Short read or OOM loading DB",
    "RDB CRC",
)
"""What the server says before it ends since it cannot read its own file."""
LARGEST_SKEW_MS = 2000


def message_store(env: Env) -> Iterator[Told]:
    about = "message store"
    try:
        resp.check(env.redis_url)
        state = store.log().run(server.inspect())
        full = store.log().run(server.is_full())
        is_replica = store.log().run(lineage.look()).is_replica
        memory = _figures("memory")
    except (resp.StoreError, LogError) as error:
        yield _store_away(env, error)
        return
    allowed, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
    if is_replica:
        yield Told(
            about=about,
            sentence="it is a replica of another server: nothing can be published",
            todo="have OKMQ_REDIS_URL lead to that one, or promote it (REPLICAOF NO ONE)",
            grave=True,
        )
    elif state.writes_fail:
        yield Told(about=about, sentence="cannot write to its disk", todo="make room on the disk", grave=True)
    elif full and env.private_store and allowed == room.CLOSED_BYTES:
        free_mib = shutil.disk_usage(env.valkey_dir).free / 2**20
        yield Told(
            about=about,
            sentence=f"{free_mib:,.0f} MiB of the disk of {env.valkey_dir} are free: nothing can be published",
            todo=f"make room on the disk of {env.valkey_dir}; it goes on by itself then",
            grave=True,
        )
    elif full:
        yield Told(
            about=about,
            sentence="its memory is used up: nothing can be published",
            todo="purge or limit streams (ttl, max_bytes), or raise maxmemory",
            grave=True,
        )
    elif allowed and used > MOST_MEMORY_SHARE * allowed:
        yield Told(
            about=about,
            sentence=f"{used / allowed:.0%} of its memory is used",
            todo="limit streams (ttl, max_bytes), or raise maxmemory",
        )
    else:
        yield Told(about=about, sentence=f"answers; {used / 2**20:.0f} MiB in use")
    if state.durability != "fsync":
        yield Told(
            about="durability",
            sentence=f"publishes are promised {state.durability!r}: a crash may lose what was acknowledged",
            todo="OKMQ_FSYNC=always" if env.private_store else "appendonly yes, appendfsync always",
        )
    else:
        yield Told(about="durability", sentence="what is acknowledged is on disk")


def _store_away(env: Env, error: Exception) -> Told:
    """Why it does not answer, where its own last words tell."""
    todo = "make run" if env.private_store else "start the server that OKMQ_REDIS_URL names"
    words = last_lines(env.log_dir / "valkey.log", lines=LAST_WORDS) if env.private_store else ""
    damage = [line for line in words.splitlines() if any(each in line for each in DAMAGED_FILE)]
    if not damage:
        return Told(about="message store", sentence=str(error), todo=todo, grave=True)
    manifest = env.valkey_dir / "appendonlydir" / "appendonly.aof.manifest"
    return Told(
        about="message store",
        sentence=f"it cannot read its file, and does not start: {damage[-1].partition(' # ')[2] or damage[-1]}",
        todo=f"keep a copy of {manifest.parent}, then bring a backup back (okmq_restore), or have it cut off where "
        f"it is damaged, with what came since: (exec -a valkey-check-aof {binary()} --fix {manifest})",
        grave=True,
    )


def lost(env: Env) -> Iterator[Told]:
    if not has_database():
        return  # told below
    try:
        count = len(selectors.streams_lost())
    except (LogError, DatabaseError):
        return  # told by the looks at these
    if count:
        yield Told(
            about="message store",
            sentence=f"it has nothing of {count} stream{'s' * (count != 1)} that it was told of: it was emptied, or is "
            "another one",
            todo="bring the right one or a backup back, or tell it again, empty, above the offsets of before: "
            "okmq_republish",
            grave=True,
        )


def damaged(env: Env) -> Iterator[Told]:
    if not has_database():
        return  # told below
    try:
        streams = list(Stream.objects.filter(storage=Storage.DURABLE).values_list("stream_id", "name"))
        there = store.log().run(one(Reachable([stream_id for stream_id, _ in streams])))
        met = [str(each) for each in store.log().run(damages.look(there))]
        met += [each.why for each in store.log().run(damages.noted()) if each.why not in met]
    except (LogError, DatabaseError):
        return  # told by the looks at these
    for why in met:
        named = next((f"stream {name!r}: " for stream_id, name in streams if f"{{{stream_id}}}" in why), "")
        yield Told(
            about="damage",
            sentence=f"something that the message store holds cannot be read: {named}{why}",
            todo="okmq_fsck says what it is, and okmq_fsck --repair restores what can be derived",
            grave=True,
        )


def cluster(env: Env) -> Iterator[Told]:
    if not addresses.is_cluster(env.redis_url):
        return
    about = "cluster"
    try:
        away, nodes = store.log().run(server.away())
        stops = store.log().run(server.stops_as_a_whole())
    except LogError:
        return  # told above
    if away:
        yield Told(
            about=about,
            sentence=f"{away} of {nodes} nodes do not answer: their streams are refused",
            todo="start them, or promote their replicas (CLUSTER FAILOVER)",
            grave=True,
        )
    else:
        yield Told(about=about, sentence=f"{nodes} nodes answer")
    if stops:
        yield Told(
            about=about,
            sentence="while one node is away the streams of all others are refused",
            todo="cluster-require-full-coverage no",
        )


def clock(env: Env) -> Iterator[Told]:
    try:
        told = store.log().run(server.clocks())
    except LogError:
        return  # told above
    ahead_ms = max((each - int(time.time() * 1000) for each in told), key=abs, default=0)
    if abs(ahead_ms) > LARGEST_SKEW_MS:
        yield Told(
            about="clock",
            sentence=f"the message store's clock is {ahead_ms / 1000:+.1f} s from this machine's",
            todo="let both follow the same time server",
        )


def _figures(section: str) -> dict[str, str]:
    told = store.log().run(one(("INFO", section))).decode()
    return dict(line.partition(":")[::2] for line in told.splitlines() if ":" in line)


def memory_store(env: Env) -> Iterator[Told]:
    if env.memory_redis_url is None:
        yield Told(about="memory store", sentence="there is none: streams in memory are refused")
        return
    try:
        resp.ping(env.memory_redis_url)
        yield Told(about="memory store", sentence="answers")
    except resp.StoreError as error:
        yield Told(
            about="memory store", sentence=str(error), todo="make run; durable streams go on meanwhile"
        )


def has_database() -> bool:
    """Whether there is one to look into: who opens a file that is not there makes it."""
    return connection.vendor != "sqlite" or Path(connection.settings_dict["NAME"]).is_file()
