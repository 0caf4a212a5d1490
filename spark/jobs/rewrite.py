"""Rewrites files of the history: many small ones as few, or without messages that must not be kept.

    python -m spark.jobs.rewrite

puts small files together; an erasure is asked for over the API.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from spark.batches import Erased, HistoryFile
from spark.history import History, KnownBatches
from spark.jobs.settings import JobSettings, main_session

SMALL_BYTES = 32 * 1024 * 1024
"""Bytes of bodies up to which a file is small."""

LEAST_FILES = 16
"""Small files of one stream and day from which on they are put together."""

ROUND_BYTES = 256 * 1024 * 1024
ROUND_FILES = 500
"""Bytes of bodies and files that one rewrite reads; it is repeated until all is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Files that were there before and that are there instead, the messages in them, and files not yet reached."""

    files: int = 0
    into: int = 0
    messages: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """What an erasure means: the message at an offset, all messages of a key, or with neither all.

    Attributes:
        name: what the erasure is known by, now and when it is done again.
        up_to: the last offset that it may mean; None is all of them.
    """

    name: str
    offset: int | None = None
    key: str | None = None
    up_to: int | None = None

    @property
    def condition(self) -> Column:
        """Whether it means a message."""
        wanted = sf.lit(True) if self.key is None else sf.col("key").eqNullSafe(self.key)
        if self.offset is not None:
            wanted = sf.col("offset").eqNullSafe(self.offset)
        return wanted if self.up_to is None else wanted & (sf.col("offset") <= self.up_to)

    def may_be_in(self, file: HistoryFile) -> bool:
        is_reached = self.up_to is None or file.first <= self.up_to
        return is_reached and (self.offset is None or file.first <= self.offset <= file.last)

    def reached(self, last: int) -> int:
        """How far it goes in a history that ends at an offset."""
        return last if self.up_to is None else min(last, self.up_to)


def compact(
    session: SparkSession,
    settings: JobSettings,
    *,
    known: KnownBatches | None = None,
    on_progress: Callable[[Compacted], None] = lambda done: None,
    gives_way: Callable[[], bool] = lambda: False,
) -> Compacted:
    """Put small files of a stream and day together, wherever there are many.

    Args:
        known: what was read of the log before; without it the log is read whole.
        gives_way: asked between two rewrites; it ends there where something else is to be done first.
    """
    history = History(session, settings.history_url)
    history.settle()
    done = Compacted()
    held = (known or KnownBatches()).refresh(history)
    # What was too much for one file is not tried again: each round takes what the last one has left.
    rounds = list(_rounds(small_files(held.files.values())))
    left = sum(map(len, rounds))
    for files in rounds:
        if done.files and gives_way():
            break
        left -= len(files)
        rows = (
            history.read(files)
            .repartition("workspace_id", "stream_id", "day")
            .sortWithinPartitions("workspace_id", "stream_id", "day", "offset")
        )
        batch = history.rewrite(files, rows, messages=sum(file.messages for file in files))
        done = Compacted(
            files=done.files + len(files),
            into=done.into + len(batch.files),
            messages=done.messages + batch.messages,
            left=left,
        )
        on_progress(done)
    return done


def small_files(files: Iterable[HistoryFile]) -> list[list[HistoryFile]]:
    """The small files of each stream and day that has many, in the order of their offsets, cut where a file is full."""
    small = sorted(
        (file for file in files if file.bytes < SMALL_BYTES), key=lambda file: (_folder(file), file.first)
    )
    found = []
    for _, held in groupby(small, _folder):
        group = list(held)
        if len(group) >= LEAST_FILES:
            found += [part for part in _filled(group) if len(part) > 1]
    return found


def _filled(group: Sequence[HistoryFile]) -> Iterator[list[HistoryFile]]:
    part: list[HistoryFile] = []
    for file in group:
        if part and sum(each.bytes for each in part) + file.bytes > ROUND_BYTES:
            yield part
            part = []
        part.append(file)
    if part:
        yield part


def _rounds(groups: Iterable[list[HistoryFile]]) -> Iterator[list[HistoryFile]]:
    """Groups put together as far as one rewrite takes them, never two of one stream and day."""
    files: list[HistoryFile] = []
    folders: set[str] = set()
    size = 0
    for group in groups:
        more = sum(file.bytes for file in group)
        is_full = size + more > ROUND_BYTES or len(files) + len(group) > ROUND_FILES
        if files and (is_full or _folder(group[0]) in folders):
            yield files
            files, folders, size = [], set(), 0
        files = [*files, *group]
        folders.add(_folder(group[0]))
        size += more
    if files:
        yield files


def _folder(file: HistoryFile) -> str:
    return file.path.rpartition("/")[0]


def erase(
    session: SparkSession,
    settings: JobSettings,
    *,
    stream_ids: Collection[str],
    unwanted: Sequence[Unwanted],
    known: KnownBatches | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, Erased]:
    """Take what erasures mean out of the history of some streams; what each took, by its name.

    The files that held it are written anew without it and then removed, once for all of these erasures; a message that
    several mean was taken by the first of them. Cut off at any moment, it is done again; what an erasure has taken out
    by then is in what is told of it.

    Args:
        known: what was read of the log before; without it the log is read whole.
        on_progress: is told, after each part of the files, how much of them was looked through, by their bytes.
    """
    history = History(session, settings.history_url)
    history.settle()
    history.forget_unfinished()
    held = (known or KnownBatches()).refresh(history)
    files = [file for file in held.files.values() if file.stream_id in stream_ids]
    last = max((file.last for file in files), default=0)
    erased = {each.name: _begun(held.erased.get(each.name), last=each.reached(last)) for each in unwanted}
    whose = sf.coalesce(*[sf.when(each.condition, sf.lit(each.name)) for each in unwanted])
    wanted = [file for file in files if any(each.may_be_in(file) for each in unwanted)]
    total, seen = sum(file.bytes for file in wanted), 0
    for part in _parts(wanted):
        holding = _holding(history, part, whose)
        if holding:
            hit = [file for file in part if file.path in holding]
            taken = sum(holding.values(), Counter[str]())
            history.rewrite(
                hit,
                history.read(hit).where(whose.isNull()),
                messages=sum(file.messages for file in hit) - taken.total(),
                erased={name: replace(erased[name], messages=messages) for name, messages in taken.items()},
            )
            for name, messages in taken.items():
                erased[name] = replace(erased[name], messages=erased[name].messages + messages)
        seen += sum(file.bytes for file in part)
        on_progress(seen / max(1, total))
    return erased


def _begun(before: Erased | None, *, last: int) -> Erased:
    """What an erasure took before it was cut off, if it was; now it goes up to an offset."""
    return Erased(through=last) if before is None else replace(before, through=max(before.through, last))


def streams_deleted(
    session: SparkSession,
    settings: JobSettings,
    *,
    workspace_ids: Collection[int],
    name: str | None,
    spared: Callable[[], Collection[str]],
    known: KnownBatches | None = None,
) -> set[str]:
    """The ids of the streams of a name that the history has, without those that are spared.

    Args:
        name: None is any.
        spared: gives the ids of all that are there, and of others; asked once the files are known, so no new one is
            taken for an old.
        known: what was read of the log before; without it the log is read whole.
    """
    history = History(session, settings.history_url)
    held = (known or KnownBatches()).refresh(history)
    files = {file.stream_id: file for file in held.files.values() if file.workspace_id in workspace_ids}
    kept = spared()
    gone = [file for stream_id, file in files.items() if stream_id not in kept]  # one tells the name
    if name is None:
        return {file.stream_id for file in gone}
    found = history.read(gone).where(sf.col("stream").eqNullSafe(name)).select("stream_id").distinct()
    return {row.stream_id for row in found.collect()}


def _parts(files: Sequence[HistoryFile]) -> Iterator[list[HistoryFile]]:
    for group in _filled(files):
        for at in range(0, len(group), ROUND_FILES):
            yield group[at : at + ROUND_FILES]


def _holding(history: History, files: Sequence[HistoryFile], whose: Column) -> dict[str, Counter[str]]:
    """Path → how many messages of whom a file holds, of those that hold any."""
    path_of = {file.path.rpartition("/")[2]: file.path for file in files}
    file_name = sf.col("_metadata.file_name").alias("file_name")
    counted = (
        history.read(files)
        .select(file_name, whose.alias("whose"))
        .where(sf.col("whose").isNotNull())
        .groupBy("file_name", "whose")
        .agg(sf.count(sf.lit(1)).alias("messages"))
        .collect()
    )
    found: dict[str, Counter[str]] = {}
    for row in counted:
        found.setdefault(path_of[row.file_name], Counter())[row.whose] = row.messages
    return found


def main() -> None:
    """Put small files together, with the settings of the environment."""
    settings = JobSettings.from_environ()
    with main_session(settings) as session:
        done = compact(session, settings)
        print(f"{done.files} files with {done.messages} messages are {done.into} now.")


if __name__ == "__main__":
    main()
