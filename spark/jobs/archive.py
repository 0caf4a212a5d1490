"""Copies what was published to the history: one streaming query over all archived streams, exactly once.

python -m spark.jobs.archive
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.batches import Batch
from spark.files import Files
from spark.history import History
from spark.jobs.settings import JobSettings, main_session
from spark.positions import archive_backlog, archived_offsets
from spark.ranges import Range
from spark.reading import archive_pages
from streams.log import config, entries, stats
from streams.log.client import Log
from streams.log.errors import StoreUnavailable
from streams.log.keys import in_memory

MAX_OFFSETS = 400_000
"""Most offsets in one micro-batch: what is done again after a crash, and how often progress moves."""

ROWS_PER_FILE = 100_000
POLL_S = 1
STARTS = 5
NOT_BEGUN = "Python worker failed to connect back"
"""What Spark says where the process that is to read was not there within ten seconds, which it always waits: a busy
machine may take longer. Nothing was read then, and the query is begun again, ``STARTS`` times in all."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveProgress:
    """What a run has done so far; ``waiting`` is how many offsets it found in front of it."""

    batches: int = 0
    messages: int = 0
    bytes: int = 0
    offsets: int = 0
    waiting: int = 0

    @property
    def fraction(self) -> float:
        return 1.0 if self.waiting == 0 else min(1.0, self.offsets / self.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Offsets of a stream, both included, that the log was told to be archived, and neither it nor the history has."""

    stream_id: str
    first: int
    last: int


def options(settings: JobSettings) -> dict[str, str]:
    """The options with which the source reads what the history takes."""
    return {
        "url": settings.redis_url,
        **({} if settings.memory_url is None else {"memoryUrl": settings.memory_url}),
        "workspace": "*",
        "stream": "*",
        "view": "archive",
        "maxOffsetsPerTrigger": str(MAX_OFFSETS),
        "rowsPerPartition": str(ROWS_PER_FILE),
    }


def archive(
    session: SparkSession,
    settings: JobSettings,
    *,
    on_progress: Callable[[ArchiveProgress], None] = lambda progress: None,
    on_lacking: Callable[[Lacking], None] = lambda lacking: None,
) -> ArchiveProgress:
    """Archive everything that stands in the log now, and tell the log how far the history has come.

    Args:
        on_progress: called from this thread when there is news, about once a second at most.
        on_lacking: called where the history is another one than before and lacks what nobody else has.

    Raises:
        Exception: as Spark reports it, when a micro-batch fails; the next run does it again.
    """
    history = History(session, settings.history_url)
    checkpoint = Files(session, settings.checkpoint_url)
    with closing(settings.log()) as log:
        run = _ArchiveRun(history, checkpoint, log)
        run.catch_up(on_lacking)
        for left in reversed(range(STARTS)):
            try:
                _follow(_begun(session, settings, run), run, on_progress)
                break
            except StreamingQueryException as error:
                if not left or NOT_BEGUN not in str(error):
                    raise
        return run.progress


def _begun(session: SparkSession, settings: JobSettings, run: "_ArchiveRun") -> StreamingQuery:
    return (
        session.readStream.format("okmq")
        .options(**options(settings))
        .load()
        .writeStream.queryName("archive")
        .option("checkpointLocation", settings.checkpoint_url)
        .trigger(availableNow=True)
        .foreachBatch(run.add)
        .start()
    )


def _follow(
    query: StreamingQuery, run: "_ArchiveRun", on_progress: Callable[[ArchiveProgress], None]
) -> None:
    """Wait for its end."""
    reported = run.progress
    while not query.awaitTermination(POLL_S):
        if run.progress != reported:
            reported = run.progress
            on_progress(reported)


class _ArchiveRun:
    """What one run keeps between its micro-batches."""

    def __init__(self, history: History, checkpoint: Files, log: Log) -> None:
        self.history = history
        self.checkpoint = checkpoint
        self.log = log
        self.progress = ArchiveProgress()

    def catch_up(self, on_lacking: Callable[[Lacking], None]) -> None:
        """Complete and publish what an earlier run could not, and count what waits."""
        self.history.settle()
        newest = next(self.history.archived(), None)
        if newest is not None and self._goes_on_from(newest):
            self._publish(newest)  # each batch is published before the next is read: only this can be missing
        else:
            self._begin_anew(on_lacking)
        self.progress = ArchiveProgress(waiting=self.log.run(archive_backlog()))

    def _goes_on_from(self, newest: Batch) -> bool:
        """Whether the checkpoint is the one with which the newest batch was written, and no newer one was since.

        It is not where it was lost, and where the history is another one: a new folder, a backup, a disk that was away
        for a while and is back.
        """
        return (
            newest.query == self._query_id()
            and self.checkpoint.exists(f"offsets/{newest.batch_id}")
            and not self.checkpoint.exists(f"commits/{newest.batch_id + 1}")
        )

    def _begin_anew(self, on_lacking: Callable[[Lacking], None]) -> None:
        """Have a new query begin behind what the history has, whatever the log was told that it has."""
        # Nothing is told of a history that cannot be written: it may be another one only because its disk is away.
        self.history.begin()
        self.checkpoint.delete("")
        ends: dict[str, int] = {}
        for batch in self.history.archived():
            ends = {**batch.end, **ends}
        # One in memory that was lost is told to be archived up to where it began again.
        told = {
            stream_id: offset
            for stream_id, offset in self.log.run(archived_offsets()).items()
            if not in_memory(stream_id)
        }
        too_far = {each: ends.get(each, 0) for each, offset in told.items() if offset > ends.get(each, 0)}
        if too_far:
            log.warning(
                "The history lacks what was archived of %s streams: it is another one, or was lost. "
                "What the streams still hold is archived again.",
                len(too_far),
            )
        for stream_id, end in too_far.items():
            last = self._stands_from(stream_id, end + 1, told[stream_id]) - 1
            if last > end:
                on_lacking(Lacking(stream_id=stream_id, first=end + 1, last=last))
            self.log.run(config.archived_only(stream_id, end))
        # A stream that is not told would be archived again from where it was told last.
        self._tell(ends, strict=True)

    def add(self, rows: DataFrame, batch_id: int) -> None:
        """Take one micro-batch into the history (Spark calls this again for a batch that it did not see end).

        Raises:
            HistoryReplaced: this is not the history that the query has written to.
        """
        end = self._offsets(batch_id)
        before = self._offsets(batch_id - 1)
        fresh = [stream_id for stream_id in end if stream_id not in before]
        start = {**before, **self.log.run(config.archived_of(fresh))}
        moved = {stream_id: last for stream_id, last in end.items() if last > start[stream_id]}
        batch = self.history.append(
            rows,
            query=self._query_id(),
            batch_id=batch_id,
            start={stream_id: start[stream_id] for stream_id in moved},
            end=moved,
        )
        self._publish(batch)
        self.progress = ArchiveProgress(
            batches=self.progress.batches + 1,
            messages=self.progress.messages + batch.messages,
            bytes=self.progress.bytes + batch.bytes,
            offsets=self.progress.offsets + sum(last - batch.start[each] for each, last in batch.end.items()),
            waiting=self.progress.waiting,
        )

    def _stands_from(self, stream_id: str, first: int, last: int) -> int:
        """The first of these offsets that the log still has for the history; the one after the last where none is."""
        wanted = Range(workspace_id=0, stream_id=stream_id, stream="", first=first, last=last)
        for page in archive_pages(self.log, wanted):
            return entries.position(page[0])[0]
        return last + 1

    def _publish(self, batch: Batch) -> None:
        self._tell(batch.end)

    def _tell(self, ends: Mapping[str, int], *, strict: bool = False) -> None:
        for stream_id, offset in ends.items():
            try:
                self.log.run(config.archived_set(stream_id, offset))
            except StoreUnavailable:
                if strict or not in_memory(stream_id):
                    raise
                continue  # the durable streams go on; the checkpoint knows how far this one is
        volatile = [stream_id for stream_id in ends if in_memory(stream_id)]
        if volatile:
            self.log.run(
                stats.touch(volatile)
            )  # the worker keeps a note of what the history has not got of them

    def _query_id(self) -> str:
        """Spark's identity of the query that the checkpoint is of; empty before it has begun."""
        found: str = json.loads(self.checkpoint.read("metadata") or "{}").get("id", "")
        return found

    def _offsets(self, batch_id: int) -> dict[str, int]:
        """Stream id → last offset of a micro-batch, from the checkpoint: Spark wrote it before it ran the batch."""
        text = self.checkpoint.read(f"offsets/{batch_id}")
        if text is None:
            return {}
        found: dict[str, int] = json.loads(text.splitlines()[-1])
        return found


def main() -> None:
    """Archive once, with the settings of the environment."""
    settings = JobSettings.from_environ()
    with main_session(settings) as session:
        done = archive(session, settings, on_progress=lambda progress: print(f"{progress.fraction:.0%}"))
        print(f"{done.messages} messages, {done.bytes} bytes in {done.batches} batches.")


if __name__ == "__main__":
    main()
