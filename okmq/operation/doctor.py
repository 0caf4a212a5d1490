"""What is wrong with an installation and what to do about it: each look says one thing, and breaks on nothing.

The order is that in which things depend on each other; what cannot be looked at because of an earlier trouble says so.
"""

import json
import os
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from okmq.env import Env
from okmq.operation import store_looks
from okmq.operation.told import Look, Told
from okmq.supervision import java, masters, owned, proctable, room
from streams import selectors, store
from streams.log import config, keys
from streams.log.errors import LogError
from streams.upkeep import processes

LEAST_FREE_SHARE = 0.10
FEW_OPEN_FILES = 4096
RECENT_S = 600.0
DAMAGED_FILE = ("malformed", "not a database", "disk I/O error")
"""What SQLite says of a file that it cannot read."""
RESTORE = "stop OKMQ, keep the file, and bring a backup back (okmq_restore)"


def examined(env: Env) -> list[Told]:
    """Everything that can be told, in order."""
    return [told for look in LOOKS for told in look(env)]


def _disk(env: Env) -> Iterator[Told]:
    about = "disk"
    try:
        usage = shutil.disk_usage(env.data_dir)
    except OSError as error:
        yield Told(
            about=about,
            sentence=f"the data folder {env.data_dir} cannot be used: {error.strerror}",
            todo="start OKMQ once (make run), or set OKMQ_DATA_DIR to its folder",
            grave=True,
        )
        return
    aof = sum(path.stat().st_size for path in env.valkey_dir.glob("appendonlydir/*") if path.is_file())
    free = f"{usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.1f} GiB are free"
    if env.private_store and usage.free < room.reserve_of(usage.total):
        yield Told(
            about=about,
            sentence=f"{free} on the disk of {env.data_dir}: nothing new is stored",
            todo=f"make room on the disk of {env.data_dir}; what is published is stored again by itself then",
            grave=True,
        )
    elif usage.free < 2 * aof:
        yield Told(
            about=about,
            sentence=f"{free}; the message store needs up to twice its {aof / 2**30:.1f} GiB to rewrite its file",
            todo=f"make room on the disk of {env.data_dir}: below 256 MiB, or a tenth, nothing new is stored",
        )
    elif usage.free < LEAST_FREE_SHARE * usage.total:
        yield Told(
            about=about,
            sentence=free,
            todo=f"make room on the disk of {env.data_dir} before it is full: nothing can be published then",
        )
    else:
        yield Told(about=about, sentence=free)


def _rights(env: Env) -> Iterator[Told]:
    found = list(owned.open_to_others(env.data_dir))
    if found:
        yield Told(
            about="rights",
            sentence=f"others on this machine can get at {', '.join(map(str, found))}",
            todo=f"chmod go= {' '.join(map(str, found))}",
        )
    else:
        yield Told(about="rights", sentence="the data folder is its owner's")


def _processes(env: Env) -> Iterator[Told]:
    told = processes.read(env.processes_file)
    alive = [each for each in told if each.pid is not None and _lives(each.pid)]
    if not alive:
        yield Told(
            about="processes", sentence="OKMQ does not run on this data folder", todo="make run", grave=True
        )
        return
    for each in told:
        log = env.log_dir / f"{each.name}.log"
        if each.state == "unavailable":
            yield Told(about=each.name, sentence="is not there", todo=each.note)
        elif each.state == "restarting" or (each.pid is not None and not _lives(each.pid)):
            yield Told(about=each.name, sentence=f"does not run: {each.note}", todo=f"see {log}", grave=True)
        elif each.pid is not None and proctable.is_stopped(each.pid):
            yield Told(
                about=each.name,
                sentence=f"is stopped (process {each.pid}): it does nothing",
                todo=f"kill -CONT {each.pid}, or end it with kill -KILL {each.pid} (it starts again by itself)",
                grave=True,
            )
        elif each.restarts and time.time() - each.since < RECENT_S:
            yield Told(about=each.name, sentence=each.sentence(), todo=f"see {log}")
        else:
            yield Told(about=each.name, sentence=each.note or each.state)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _worker(env: Env) -> Iterator[Told]:
    try:
        seen = selectors.sampling()
    except LogError:
        return  # told above
    if seen.is_stale:
        yield Told(
            about="samples",
            sentence=f"the worker has not sampled for {seen.silent_s:.0f} s: limits and alerts wait",
            todo=f"end the worker's process (it starts again by itself), and see {env.log_dir / 'worker.log'}",
            grave=True,
        )


def _database(env: Env) -> Iterator[Told]:
    about = "database"
    if not store_looks.has_database():
        yield Told(about=about, sentence="there is none yet", todo="make run", grave=True)
        return
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if missing:
            yield Told(
                about=about,
                sentence=f"{len(missing)} migrations are not applied",
                todo="start OKMQ again (make run), it applies them",
                grave=True,
            )
            return
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA quick_check(1)")
                (found,) = cursor.fetchone()
            if found != "ok":
                yield Told(
                    about=about,
                    sentence=f"it is damaged: {found}",
                    todo=RESTORE,
                    grave=True,
                )
                return
        yield Told(about=about, sentence="answers, and its tables are of this version")
    except DatabaseError as error:
        said = str(error).strip().splitlines()[0]
        todo = "see OKMQ_DATABASE_URL, or whether another program holds it"
        if any(each in said for each in DAMAGED_FILE):
            said, todo = f"its file is damaged: {said}", RESTORE
        yield Told(about=about, sentence=said, todo=todo, grave=True)


def _history(env: Env) -> Iterator[Told]:
    if not env.history:
        yield Told(about="history", sentence="is switched off (OKMQ_HISTORY)")
    elif java.home(os.environ) is None:
        yield Told(about="history", sentence="there is no Java", todo=java.ADVICE)
    elif "://" not in env.history_url and not os.access(env.history_url, os.W_OK):
        yield Told(
            about="history",
            sentence=f"nothing can be written in {env.history_url}",
            todo="let the user that runs OKMQ write there",
            grave=Path(env.history_url).exists(),
        )
    elif trouble := _trouble_of_history(env):
        yield Told(
            about="history",
            sentence=trouble,
            todo=f"put back what is missing in {env.history_url} (a disk, a right, a backup of it)",
        )
    else:
        yield Told(about="history", sentence="Java is there, and its folder can be written")
    if env.history and masters.is_away(env.spark_master):
        yield Told(
            about="Spark",
            sentence=f"its master {env.spark_master} does not answer: runs, SQL, replays and erasures wait",
            todo="start it (sbin/start-master.sh), or correct OKMQ_SPARK_MASTER",
        )


def _trouble_of_history(env: Env) -> str:
    """What is wrong with the batches in a folder of this machine, as ``spark.history`` keeps them; empty: nothing."""
    if "://" in env.history_url:
        return ""
    folder = Path(env.history_url, "_log")
    try:
        numbers = {int(path.stem) for path in folder.glob("[0-9]*.json")}
        head = folder / "HEAD"
        last = max([*numbers, int(head.read_text()) if head.exists() else 0])
        missing = set(range(1, last + 1)) - numbers
        if missing:
            return f"its log lacks batch {min(missing)} of {last}: runs and SQL fail"
        if last:
            json.loads((folder / f"{last:012d}.json").read_text())
        elif archived := _archived_streams():
            return (
                f"its folder holds none, though {archived} streams were archived: SQL sees what they hold now"
            )
    except (OSError, ValueError) as error:
        return f"its log cannot be read ({error}): runs and SQL fail"
    except LogError:
        pass  # told above
    return ""


def _archived_streams() -> int:
    """How many durable streams the log was told to be in the history."""
    streams = store.log().run(config.streams())
    durable = [each.stream_id for each in streams if not keys.in_memory(each.stream_id)]
    return sum(offset > 0 for offset in store.log().run(config.archived_of(durable)).values())


def _machine(env: Env) -> Iterator[Told]:
    limit = _limit_of_files()
    if limit < FEW_OPEN_FILES:
        yield Told(
            about="open files",
            sentence=f"{limit} may be open: so many clients can wait at once",
            todo="ulimit -n 65536 before the start",
        )
    overcommit = Path("/proc/sys/vm/overcommit_memory")
    if overcommit.is_file() and overcommit.read_text().strip() == "2":
        yield Told(
            about="memory of the machine",
            sentence="it is given out strictly: the store's rewrites can fail for want of as much again",
            todo="sysctl vm.overcommit_memory=1",
        )


def _limit_of_files() -> int:

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 2**31 if hard == resource.RLIM_INFINITY else hard


LOOKS: tuple[Look, ...] = (
    _disk,
    _rights,
    _processes,
    store_looks.message_store,
    store_looks.lost,
    store_looks.damaged,
    _worker,
    store_looks.cluster,
    store_looks.clock,
    store_looks.memory_store,
    _database,
    _history,
    _machine,
)
