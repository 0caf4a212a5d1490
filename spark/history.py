"""The history: Parquet files by workspace, stream and day, and a log of the batches that count.

Layout, under one folder or URL:

    workspace_id=1/stream_id=abc…/day=2026-11-21/000000000042-0.parquet
    _log/000000000042.json     the batch that brought the file: its streams' offsets and its files
    _log/HEAD                  a recent batch's number: where to start looking for the last one
    _log/pending.json          a batch that is written but not yet in its place
    _staging/                  a batch that is being written

A batch may also put files in the place of others (``rewrite``): small ones together, or without what was erased. The
others are removed once it counts.

A batch counts from the moment its entry stands in the log. Its files are written aside first; then the pending
entry says where they belong, and from there on the batch is only ever completed, never written again. So a crash
at any moment leaves either nothing, or something that ``settle`` completes (docs/adr/0003). In a folder of this
machine each step is on the disk before the next, so that is so of a power cut, too.
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark.batches import Batch, Erased, HistoryFile, Snapshot
from spark.files import Files
from spark.rereading import HistoryMovedOn
from spark.schemas import HISTORY, PARTITION_COLUMNS
from spark.turns import TURNS

STAGING = "_staging"
PENDING = "_log/pending.json"
HEAD = "_log/HEAD"


class HistoryUnreadable(RuntimeError):
    """The log of batches cannot be read, or lacks a part; the message is a sentence for a person."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The history cannot be read: {why}. Put back what is missing there (a disk, a right, a backup of its "
            "folder); nothing is archived, counted or erased until then."
        )


class HistoryReplaced(RuntimeError):
    """Another history came to its place while it was written; the message is a sentence for a person."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"There is another history at {place} than a moment ago. Nothing was added to it; the next run goes on "
            "behind what it has."
        )


class History:
    """The history at one place. One writer at a time; any number of readers."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.session = session
        self.files = Files(session, url)

    def settle(self) -> None:
        """Complete the batch that a crash left half-way, if there is one."""
        text = self._text(PENDING)
        if text is None:
            last = self.last()
            if last is not None:
                self._remove(last.removed)  # the crash may have come just before
            return
        batch = msgspec.json.decode(text, type=Batch)
        for n, file in enumerate(batch.files):
            staged = _staged(batch.staging, n)
            if self.files.exists(staged):
                self.files.rename(staged, file.path)
        self.files.flush_names([file.path for file in batch.files])
        self.files.rename(PENDING, _entry(batch.number))
        self.files.flush_names([_entry(batch.number)])
        self.files.replace(HEAD, str(batch.number))
        self.files.delete(STAGING)
        self._remove(batch.removed)

    def begin(self) -> None:
        """Have one at this place, if only an empty one.

        Raises:
            OSError, Py4JJavaError: nothing can be written there.
        """
        if self.last() is None:
            self.files.replace(HEAD, "0")

    def forget_unfinished(self) -> None:
        """Remove what a crash left aside before it was a batch; messages may be in it."""
        self._remove([STAGING])

    def _remove(self, paths: Iterable[str]) -> None:
        self.files.flush_names([path for path in paths if self.files.delete(path)])

    def append(
        self, rows: DataFrame, *, query: str, batch_id: int, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Batch:
        """Add a batch of ``schemas.MESSAGES``; one that is there already is not added again.

        Args:
            query: Spark's identity of the query that brings it, or another name of a course of batches.
            batch_id: its number in that query, from 0; only the first may stand behind what another query brought.
            start: stream id → offset after which its messages begin.
            end: stream id → last offset of which nothing is left behind.

        Raises:
            HistoryReplaced: the newest batch is not the one before it.
        """
        self.settle()
        newest = next(self.archived(), None)
        if newest is not None and (newest.query, newest.batch_id) == (query, batch_id):
            return newest
        if batch_id > 0 and (newest is None or (newest.query, newest.batch_id) != (query, batch_id - 1)):
            raise HistoryReplaced(self.files.root)
        return self._add(rows, query=query, batch_id=batch_id, start=dict(start), end=dict(end), removed=[])

    def rewrite(
        self,
        files: Sequence[HistoryFile],
        rows: DataFrame,
        *,
        messages: int,
        erased: Mapping[str, Erased] | None = None,
    ) -> Batch:
        """Put rows in the place of files, all at once.

        Args:
            messages: how many rows there have to be.
            erased: erasures and what they took; it stands in the entry, and so counts exactly if the rewrite does.

        Raises:
            RuntimeError: there were more or fewer; everything is as it was.
        """
        self.settle()
        return self._add(
            rows,
            query="",
            batch_id=0,
            start={},
            end={},
            removed=[file.path for file in files],
            erased=erased,
            messages=messages,
        )

    def _add(
        self,
        rows: DataFrame,
        *,
        query: str,
        batch_id: int,
        start: dict[str, int],
        end: dict[str, int],
        removed: list[str],
        erased: Mapping[str, Erased] | None = None,
        messages: int | None = None,
    ) -> Batch:
        last = self.last()
        number = 1 if last is None else last.number + 1
        written_ms = int(time.time() * 1000)
        # A name of its own: the JVM of a driver that was killed may still be writing an earlier attempt.
        staging = f"{STAGING}/{number:012d}-{secrets.token_hex(4)}"
        batch = Batch(
            number=number,
            query=query,
            batch_id=batch_id,
            start=start,
            end=end,
            files=self._write_aside(rows, staging=staging, number=number),
            staging=staging,
            written_ms=written_ms,
            removed=removed,
            erased=dict(erased or {}),
        )
        if messages is not None and batch.messages != messages:
            raise RuntimeError(f"{batch.messages} messages were written where {messages} were expected.")
        if batch.is_rewrite:
            TURNS.wait()
        self.files.write(PENDING, msgspec.json.encode(batch).decode())
        self.settle()
        return batch

    def last(self) -> Batch | None:
        """The newest batch that counts.

        Raises:
            HistoryUnreadable: its entry is missing, or is none.
        """
        text = self._text(HEAD) or "0"
        if not text.isdecimal():
            raise HistoryUnreadable(f"{HEAD} is damaged")
        number = int(text)
        found = self._there(number) if number else None
        while (newer := self.batch(number + 1)) is not None:
            number, found = number + 1, newer
        return found

    def batch(self, number: int) -> Batch | None:
        """The batch with this number, or None.

        Raises:
            HistoryUnreadable: its entry is none.
        """
        text = self._text(_entry(number))
        try:
            return None if text is None else msgspec.json.decode(text, type=Batch)
        except msgspec.DecodeError:
            raise HistoryUnreadable(f"{_entry(number)} is damaged") from None

    def _there(self, number: int) -> Batch:
        """The batch with a number from 1 to the newest."""
        found = self.batch(number)
        if found is None:
            raise HistoryUnreadable(f"{_entry(number)} is missing")
        return found

    def _text(self, path: str) -> str | None:
        try:
            return self.files.read(path)
        except OSError as error:
            raise HistoryUnreadable(str(error)) from error

    def newest_first(self) -> Iterator[Batch]:
        """All batches, from the newest to the first.

        Raises:
            HistoryUnreadable: one of them is missing, or is none.
        """
        found = self.last()
        while found is not None:
            yield found
            found = self._there(found.number - 1) if found.number > 1 else None

    def archived(self) -> Iterator[Batch]:
        """The batches that brought messages from the streams, from the newest to the first."""
        return (batch for batch in self.newest_first() if not batch.is_rewrite)

    def current_files(self) -> list[HistoryFile]:
        """The files that count."""
        return list(self.snapshot().files.values())

    def snapshot(self, before: Snapshot | None = None) -> Snapshot:
        """What it has now. Of the log only what came after what it had before is read.

        Where that one's newest batch stands in it no more, it is another one (a new folder, an older copy put back)
        and is read whole.

        Raises:
            HistoryUnreadable: a batch is missing, or is none.
        """
        before, last = before or Snapshot(), self.last()
        newest = before.newest
        if last is None:
            return Snapshot()
        if last == newest:
            return before
        if newest is None or self.batch(newest.number) != newest:
            return Snapshot().followed_by(map(self._there, range(1, last.number + 1)))
        return before.followed_by(map(self._there, range(newest.number + 1, last.number + 1)))

    def messages(self, *, stream_id: str | None = None) -> DataFrame:
        """Every message that counts, of one stream or of all, ``schemas.HISTORY``."""
        return self.read(file for file in self.current_files() if stream_id in {None, file.stream_id})

    def read(self, files: Iterable[HistoryFile]) -> DataFrame:
        """The messages in these files, ``schemas.HISTORY``.

        Raises:
            HistoryMovedOn: one of them went just now.
        """
        paths = [self.files.pattern(file.path) for file in files]
        if not paths:
            return self.session.createDataFrame([], HISTORY)
        frame = self.session.read.schema(HISTORY).option("basePath", self.files.root).parquet(*paths)
        # Spark looks whether all are there, and lists them after: what went in between is left out without an error.
        listed: Any = frame._jdf.inputFiles()
        if len(listed) != len(paths):
            raise HistoryMovedOn(
                f"{len(paths) - len(listed)} of {len(paths)} files of the history went meanwhile."
            )
        return frame

    def _write_aside(self, rows: DataFrame, *, staging: str, number: int) -> list[HistoryFile]:
        """Write the rows to the staging folder; returns the files with the places that they will have."""
        self.files.delete(STAGING)
        (
            rows.withColumn("day", sf.to_date("timestamp"))
            .write.mode("overwrite")
            .partitionBy(*PARTITION_COLUMNS)
            .parquet(self.files.url(f"{staging}/rows"))
        )
        written = (
            self.session.read.schema(HISTORY)
            .parquet(self.files.pattern(f"{staging}/rows"))
            .coalesce(1)  # three narrow columns: one task is done sooner than a shuffle is set up
            .groupBy(*PARTITION_COLUMNS, sf.col("_metadata.file_name").alias("file_name"))
            .agg(
                sf.count(sf.lit(1)).alias("messages"),
                sf.sum("bytes").alias("bytes"),
                sf.min("offset").alias("first"),
                sf.max("offset").alias("last"),
                sf.unix_millis(sf.min("timestamp")).alias("first_ms"),
                sf.unix_millis(sf.max("timestamp")).alias("last_ms"),
            )
            .collect()
        )
        files = []
        for n, row in enumerate(
            sorted(written, key=lambda row: (row.workspace_id, row.stream_id, row["first"]))
        ):
            folder = f"workspace_id={row.workspace_id}/stream_id={row.stream_id}/day={row.day}"
            self.files.rename(f"{staging}/rows/{folder}/{row.file_name}", _staged(staging, n))
            files.append(
                HistoryFile(
                    path=f"{folder}/{number:012d}-{n}.parquet",
                    workspace_id=row.workspace_id,
                    stream_id=row.stream_id,
                    messages=row.messages,
                    bytes=row.bytes,
                    first=row["first"],
                    last=row["last"],
                    first_ms=row.first_ms,
                    last_ms=row.last_ms,
                )
            )
        self.files.flush([_staged(staging, n) for n in range(len(files))])
        return files


@dataclass(slots=True)
class KnownBatches:
    """What a process knows of the log of batches; it only grows, so each entry is read once. Safe to share."""

    snapshot: Snapshot = field(default_factory=Snapshot)

    def refresh(self, history: History) -> Snapshot:
        """What the history has now."""
        found = history.snapshot(self.snapshot)
        self.snapshot = found  # as a whole: another thread may put a later one in its place meanwhile
        return found


def _entry(number: int) -> str:
    return f"_log/{number:012d}.json"


def _staged(staging: str, n: int) -> str:
    return f"{staging}/{n}.parquet"
