"""A copy of everything that one OKMQ keeps, taken while it runs, and a data folder made of such a copy.

The message store first, the database after it: what the copy of the log holds is then known to the copy of the
database. A stream that was made in between is there and empty, an exact prefix like every other.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import monotonic
from urllib.parse import urlsplit

from okmq.env import Env
from okmq.supervision import rights
from okmq.supervision.claims import take_folder
from okmq.supervision.supervisor import StartError
from streams.log import config, meta
from streams.log.client import Log
from streams.log.commands import Op, one

LOG, DATABASE, HISTORY, CONTENTS = "log.rdb", "okmq.sqlite3", "history", "backup.json"
KEPT = ("secret_key", "admin_token")
SNAPSHOT_WITHIN_S = 3600.0
FORMAT = 1

# How Valkey finds its append-only file: a base, here the snapshot, and after it what is appended.
BASE, AOF_DIR = "appendonly.aof.1.base.rdb", "appendonlydir"
AOF_MANIFEST = f"file {BASE} seq 1 type b\n"


class BackupError(Exception):
    """It cannot be done; the message is one sentence for a person."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a backup says of itself.

    Attributes:
        taken_at: RFC 3339, when the log was copied.
        files: path → SHA-256 of each file.
        streams, messages: how much the log held when its copy was begun.
    """

    taken_at: str
    files: dict[str, str]
    streams: int
    messages: int
    format: int = FORMAT


def backup(env: Env, folder: Path, *, history: bool, runs: Callable[[], int | None]) -> Contents:
    """Copy a running OKMQ into a folder that is empty or not there.

    Args:
        history: whether the history's files are copied, too.
        runs: the number of runs of Spark that were ever begun, or None while one goes on.

    Raises:
        BackupError: nothing of use is in the folder then.
    """
    source = _history_folder(env) if history else None
    _check_possible(env, folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = _settled(runs) if source else None
    log = Log(rights.keeper_url(env.redis_url, env.valkey_dir))
    try:
        streams, messages = log.run(_size())
        _copy_log(log, env.valkey_dir, folder / LOG)
    finally:
        log.close()
    taken_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    _copy_database(env, folder / DATABASE)
    for name in KEPT:
        if (env.data_dir / name).is_file():
            shutil.copy2(env.data_dir / name, folder / name)
    if source is not None and source.is_dir():
        shutil.copytree(source, folder / HISTORY)
        if runs() != before:
            raise BackupError(
                "Spark began to write into the history while it was copied; take the backup again."
            )
    contents = Contents(
        taken_at=taken_at,
        files={str(path.relative_to(folder)): _digest(path) for path in _files(folder)},
        streams=streams,
        messages=messages,
    )
    (folder / CONTENTS).write_text(json.dumps(asdict(contents), indent=1), "utf-8")
    return contents


def restore(folder: Path, env: Env) -> Contents:
    """Make the data folder of a backup; the folder must hold no data yet, and nobody may run on it.

    Raises:
        BackupError: nothing was put there.
    """
    contents = check(folder)
    try:
        lock = take_folder(env.data_dir)
    except StartError as error:
        raise BackupError(str(error)) from None
    try:
        held = [each for each in (env.valkey_dir / AOF_DIR, env.data_dir / DATABASE) if _is_filled(each)]
        if held:
            raise BackupError(f"{held[0]} is there already; give an empty folder in OKMQ_DATA_DIR.")
        _put(folder, env)
    finally:
        os.close(lock)
    return contents


def check(folder: Path) -> Contents:
    """What a backup holds, once every file was found to be as it was written.

    Raises:
        BackupError: it is none, or it was damaged.
    """
    try:
        told = json.loads((folder / CONTENTS).read_text("utf-8"))
        contents = Contents(**told)
    except OSError as error:
        raise BackupError(f"{folder} is no backup: {error.strerror} ({error.filename}).") from None
    except (ValueError, TypeError):
        raise BackupError(f"{folder / CONTENTS} is not as a backup writes it.") from None
    if contents.format != FORMAT:
        raise BackupError(f"{folder} was written by another version (format {contents.format}).")
    for name, digest in contents.files.items():
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            raise BackupError(f"{path} is not as it was written: the backup is damaged.")
    return contents


def _is_filled(path: Path) -> bool:
    """Whether something is kept there; whoever looks into a database that is not there leaves an empty file."""
    return path.is_dir() or (path.is_file() and path.stat().st_size > 0)


def _put(folder: Path, env: Env) -> None:
    place = env.valkey_dir / AOF_DIR
    place.mkdir(mode=0o700, parents=True)
    env.valkey_dir.chmod(0o700)
    shutil.copy2(folder / DATABASE, env.data_dir / DATABASE)
    for name in KEPT:
        if (folder / name).is_file():
            shutil.copy2(folder / name, env.data_dir / name)
    if (folder / HISTORY).is_dir():
        shutil.copytree(folder / HISTORY, _history_folder(env))
    shutil.copy2(folder / LOG, place / BASE)
    # Last: without it a server sees none of the above and begins with nothing.
    (place / "appendonly.aof.manifest").write_text(AOF_MANIFEST, "ascii")


def _check_possible(env: Env, folder: Path) -> None:
    if not env.private_store:
        raise BackupError(
            "OKMQ_REDIS_URL names a server of your own: copy it by its own means (BGSAVE), and the database after it."
        )
    if urlsplit(env.database_url).scheme != "sqlite":
        raise BackupError("The database is a server of your own: copy the log's folder first, then pg_dump.")
    if folder.exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty.")


def _history_folder(env: Env) -> Path:
    if "://" in env.history_url:
        raise BackupError(
            "The history is not a folder of this machine: copy it where it is, without --history."
        )
    return Path(env.history_url)


def _settled(runs: Callable[[], int | None]) -> int:
    """The number of runs begun so far, once none goes on."""
    until, pause = monotonic() + SNAPSHOT_WITHIN_S, Event()
    while monotonic() < until:
        begun = runs()
        if begun is not None:
            return begun
        pause.wait(0.2)
    raise BackupError("Spark writes into the history without a pause; take the backup without --history.")


def _size() -> Op[tuple[int, int]]:
    registered = yield from config.streams()
    counted = yield from meta.counters_of(each.stream_id for each in registered)
    return len(counted), sum(each.messages for each in counted.values())


def _copy_log(log: Log, valkey_dir: Path, target: Path) -> None:
    """A snapshot of one moment, made by the server in a process of its own while it goes on."""
    snapshot = valkey_dir / "dump.rdb"
    snapshot.unlink(missing_ok=True)  # what an earlier one left
    log.run(one(("BGSAVE", "SCHEDULE")))
    until, pause = monotonic() + SNAPSHOT_WITHIN_S, Event()
    while not snapshot.exists():
        told = _persistence(log)
        if told.get("rdb_bgsave_in_progress") == "0" and told.get("rdb_last_bgsave_status") != "ok":
            raise BackupError("The message store could not write a snapshot; its log says why.")
        if monotonic() > until:
            raise BackupError("The message store did not write a snapshot within an hour.")
        pause.wait(0.1)
    shutil.move(snapshot, target)


def _persistence(log: Log) -> dict[str, str]:
    told = log.run(one(("INFO", "persistence"))).decode()
    return dict(line.partition(":")[::2] for line in told.splitlines() if ":" in line)


def _copy_database(env: Env, target: Path) -> None:
    """SQLite's own online copy: one moment, whoever writes meanwhile."""
    source = f"file:{env.data_dir / DATABASE}?mode=ro"
    with (
        closing(sqlite3.connect(source, uri=True, timeout=60)) as held,
        closing(sqlite3.connect(target)) as copy,
    ):
        held.backup(copy)
    target.chmod(0o600)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
