"""Copies what was published to the history: one streaming query over all archived streams, exactly once.

python -m spark.jobs.archive
"""

import json
import logging
from collections.abc import Callable
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
from streams.log import config, stats
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
) -> ArchiveProgress:
    """Archive everything that stands in the log now, and tell the log how far the history has come.

    Args:
        on_progress: called from this thread when there is news, about once a second at most.

    Raises:
        Exception: as Spark reports it, when a micro-batch fails; the next run does it again.
    """
    history = History(session, settings.history_url)
    checkpoint = Files(session, settings.checkpoint_url)
    with closing(settings.log()) as log:
        run = _ArchiveRun(history, checkpoint, log)
        run.catch_up()
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

    def catch_up(self) -> None:
        """Complete and publish what an earlier run could not, and count what waits.

        A history that lacks what the log was told that it has is another one (a new folder, a backup without it): what
        still stands of that is archived again.
        """
        self.history.settle()
        if self.history.last() is None:
            self.checkpoint.delete("")
        has_checkpoint = self.checkpoint.exists("metadata")
        ends: dict[str, int] = {}
        for batch in self.history.archived():
            # Without a checkpoint a stream that is not told would be archived again from where it was told last.
            self._publish(batch, strict=not has_checkpoint)
            if has_checkpoint:
                break  # each batch is published before the next is read: only the last can be missing
            ends = {**batch.end, **ends}
        if not has_checkpoint:
            # One in memory that was lost is told to be archived up to where it began again.
            told = [each for each in self.log.run(archived_offsets()) if not in_memory(each)]
            if told and not ends:
                log.warning(
                    "The history is empty, though it had messages of %s streams: it is another one, or was lost. "
                    "What the streams still hold is archived again.",
                    len(told),
                )
            for stream_id in told:
                self.log.run(config.archived_only(stream_id, ends.get(stream_id, 0)))
        self.progress = ArchiveProgress(waiting=self.log.run(archive_backlog()))

    def add(self, rows: DataFrame, batch_id: int) -> None:
        """Take one micro-batch into the history (Spark calls this again for a batch that it did not see end)."""
        end = self._offsets(batch_id)
        before = self._offsets(batch_id - 1)
        fresh = [stream_id for stream_id in end if stream_id not in before]
        start = {**before, **self.log.run(config.archived_of(fresh))}
        moved = {stream_id: last for stream_id, last in end.items() if last > start[stream_id]}
        batch = self.history.append(
            rows,
            query=json.loads(self.checkpoint.read("metadata") or "{}").get("id", ""),
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

    def _publish(self, batch: Batch, *, strict: bool = False) -> None:
        for stream_id, offset in batch.end.items():
            try:
                self.log.run(config.archived_set(stream_id, offset))
            except StoreUnavailable:
                if strict or not in_memory(stream_id):
                    raise
                continue  # the durable streams go on; the checkpoint knows how far this one is
        volatile = [stream_id for stream_id in batch.end if in_memory(stream_id)]
        if volatile:
            self.log.run(
                stats.touch(volatile)
            )  # the worker keeps a note of what the history has not got of them

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
