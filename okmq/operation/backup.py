"""A copy of everything that one OKMQ keeps, taken while it runs, and a data folder made of such a copy.

The message store first, the database after it: what the copy of the log holds is then known to the copy of the
database. A stream that was made in between is there and empty, an exact prefix like every other.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import monotonic
from urllib.parse import urlsplit

from okmq.env import Env
from okmq.supervision import restoring, rights
from okmq.supervision.claims import take_folder
from okmq.supervision.supervisor import StartError
from streams.log import config, meta
from streams.log.client import Log
from streams.log.commands import Op, one
from streams.log.errors import LogError

LOG, DATABASE, HISTORY, CONTENTS = "log.rdb", "okmq.sqlite3", "history", "backup.json"
JOURNALS = (f"{DATABASE}-wal", f"{DATABASE}-journal", f"{DATABASE}-shm")
"""What SQLite takes for changes of a database that lies beside them, whichever it is."""
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


def backup(env: Env, folder: Path, *, runs: Callable[[], int | None] | None) -> Contents:
    """Copy a running OKMQ into a folder that is empty or not there; it is for its owner only from then on.

    Args:
        runs: how many runs of Spark have begun since before this call, or None while one goes on; without it the
            history's files are not copied.

    Raises:
        BackupError: the folder is as it was before, as after a LogError.
        LogError: the store does not answer.
    """
    source = _history_folder(env) if runs else None
    try:
        _check_possible(env, folder)
        was_there = folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BackupError(f"{folder} cannot be used: {error.strerror}.") from None
    try:
        _close(folder)
        return _written(env, folder, source=source, runs=runs)
    except (OSError, shutil.Error, sqlite3.Error) as error:
        _take_away(folder, keep=was_there)
        raise BackupError(f"The backup cannot be written: {error}.") from None
    except BaseException:
        _take_away(folder, keep=was_there)
        raise


def _written(
    env: Env, folder: Path, *, source: Path | None, runs: Callable[[], int | None] | None
) -> Contents:
    before = _settled(runs) if runs else None
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
    if runs and source is not None and source.is_dir():
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
    for path in _files(folder):
        path.chmod(path.stat().st_mode & 0o700)
    return contents


def _close(folder: Path) -> None:
    """A folder that was there is closed to others, where it is ours to close."""
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(0o700)


def _take_away(folder: Path, *, keep: bool) -> None:
    """Take away what a backup that failed has left."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not keep:
        folder.rmdir()


def restore(folder: Path, env: Env) -> Contents:
    """Make the data folder of a backup; the folder must hold no data yet, and nobody may run on it.

    Raises:
        BackupError: nothing was put there.
    """
    contents = check(folder)
    _check_is_private(env)
    try:
        lock = take_folder(env.data_dir)
    except StartError as error:
        raise BackupError(str(error)) from None
    try:
        places = _places(folder, env)
        for each in restoring.cut_off(env.data_dir) or ():
            _remove(each)  # half of what another restore put in place
        journals = [env.data_dir / name for name in JOURNALS]
        held = [str(each) for each in (*places.values(), *journals) if _is_filled(each)]
        if held:
            there = "is there already" if len(held) == 1 else "are there already"
            raise BackupError(f"{', '.join(held)} {there}; give an empty folder in OKMQ_DATA_DIR.")
        for each in journals:
            _remove(each)
        _put(places, folder, env)
    except OSError as error:  # of which shutil.Error is one
        raise BackupError(f"Nothing was restored: {error}.") from None
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
        _check_types(contents)
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


def _check_types(contents: Contents) -> None:
    """Raises TypeError or ValueError: it is not as a backup writes it."""
    counts, files = (contents.streams, contents.messages), contents.files
    if not all(type(each) is int for each in counts) or not isinstance(files, dict):
        raise TypeError
    if not {LOG, DATABASE} <= files.keys():
        raise ValueError


def _is_filled(path: Path) -> bool:
    """Whether something is kept there; whoever looks into a database that is not there leaves an empty file."""
    if path.is_dir():
        return any(path.iterdir())
    return path.is_file() and path.stat().st_size > 0 and path.name not in KEPT


def _places(folder: Path, env: Env) -> dict[Path, Path]:
    """What of a backup goes where, the database last: no OKMQ starts beside a log whose database is not there."""
    places = {folder / LOG: env.valkey_dir / AOF_DIR}
    places |= {folder / name: env.data_dir / name for name in KEPT if (folder / name).is_file()}
    if (folder / HISTORY).is_dir():
        places[folder / HISTORY] = _history_folder(env)
    return {**places, folder / DATABASE: env.data_dir / DATABASE}


def _put(places: Mapping[Path, Path], folder: Path, env: Env) -> None:
    """Copy everything beside its place first: what then only has to be renamed needs no room."""
    env.valkey_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    env.valkey_dir.chmod(0o700)
    copies = {source: place.with_name(f"{place.name}.restoring") for source, place in places.items()}
    try:
        for source, copy in copies.items():
            _remove(copy)  # of a restore that was killed
            if source == folder / LOG:
                copy.mkdir(mode=0o700)
                shutil.copy2(source, copy / BASE)
                (copy / "appendonly.aof.manifest").write_text(AOF_MANIFEST, "ascii")
            elif source.is_dir():
                copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copytree(source, copy)
            else:
                shutil.copy2(source, copy)
                copy.chmod(0o600)
        restoring.begin(env.data_dir, backup=folder, places=places.values())
        for source, copy in copies.items():
            copy.replace(places[source])
        restoring.end(env.data_dir)
    finally:
        for copy in copies.values():
            _remove(copy)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_possible(env: Env, folder: Path) -> None:
    if not env.private_store:
        raise BackupError(
            "OKMQ_REDIS_URL names a server of your own: copy it by its own means (BGSAVE), and the database after it."
        )
    if urlsplit(env.database_url).scheme != "sqlite":
        raise BackupError("The database is a server of your own: copy the log's folder first, then pg_dump.")
    if folder.exists() and not folder.is_dir():
        raise BackupError(f"{folder} is no folder.")
    if folder.exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty.")


def _check_is_private(env: Env) -> None:
    """What is restored is the data folder: a start with other servers would not look at it."""
    for name, is_other in (
        ("OKMQ_REDIS_URL", not env.private_store),
        ("OKMQ_DATABASE_URL", env.database_url != f"sqlite:///{env.data_dir / DATABASE}"),
    ):
        if is_other:
            raise BackupError(f"{name} names another one than the data folder has; restore without it.")


def _history_folder(env: Env) -> Path:
    if "://" in env.history_url:
        raise BackupError(
            "The history is not a folder of this machine: copy it where it is, without --history."
        )
    return Path(env.history_url)


def _settled(runs: Callable[[], int | None]) -> int:
    """How many runs have begun, once none goes on."""
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
    try:
        log.run(one(("BGSAVE", "SCHEDULE")))
        _await_snapshot(log, snapshot)
        shutil.move(snapshot, target)
    except KeyboardInterrupt:
        with suppress(
            LogError
        ):  # a server that cannot end it goes on, and the next backup takes away what it left
            log.run(one(("BGSAVE", "CANCEL")))
        raise
    finally:
        snapshot.unlink(missing_ok=True)


def _await_snapshot(log: Log, snapshot: Path) -> None:
    until, pause = monotonic() + SNAPSHOT_WITHIN_S, Event()
    while not snapshot.exists():
        told = _persistence(log)
        if told.get("rdb_bgsave_in_progress") == "0" and told.get("rdb_last_bgsave_status") != "ok":
            raise BackupError("The message store could not write a snapshot; its log says why.")
        if monotonic() > until:
            raise BackupError("The message store did not write a snapshot within an hour.")
        pause.wait(0.1)


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
