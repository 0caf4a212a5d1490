"""Counts what is new in the history: messages and bytes by minute, hour and day.

    python -m spark.jobs.rollup

prints the points of all time; the analytics process asks for what is new and stores it.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark.batches import Batch, HistoryFile
from spark.history import History
from spark.jobs.settings import JobSettings, main_session
from spark.positions import archived_offsets
from spark.transforms.rollups import not_yet_counted, per_minute, per_step

_COUNTED = StructType(
    [
        StructField("stream_id", StringType(), nullable=False),
        StructField("counted", LongType(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Messages and bytes of one stream in the minute, hour or day that begins at ``start`` (UTC).

    ``first`` and ``last`` are the lowest and highest offset counted into it.
    """

    stream_id: str
    step: str
    start: datetime
    messages: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How far a stream is counted: from where to where, and the time of the last message among them, if any."""

    stream_id: str
    from_offset: int
    to_offset: int
    fresh_to: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """What one run counted; to be added to what is stored in one transaction with the positions."""

    points: list[Point]
    positions: list[Counted]
    messages: int
    bytes: int


def rollup(
    session: SparkSession, settings: JobSettings, *, counted: Mapping[str, int], archived: Mapping[str, int]
) -> RolledUp:
    """Count the messages of the history that are not counted yet.

    Args:
        counted: stream id → offset up to which it is counted; a missing stream is not counted at all.
        archived: stream id → offset up to which the history has it. Others are left alone. It may be above the last
            offset of every batch: a stream in memory that was lost is begun again above what the history has.
    """
    history = History(session, settings.history_url)
    behind = {stream_id for stream_id, last in archived.items() if last > counted.get(stream_id, 0)}
    files, reached = _new_files(history, counted=counted, behind=behind)
    reached = {stream_id: max(archived[stream_id], reached.get(stream_id, 0)) for stream_id in behind}
    newest = _newest(files)
    positions = [
        Counted(
            stream_id=stream_id,
            from_offset=counted.get(stream_id, 0),
            to_offset=last,
            fresh_to=newest.get(stream_id),
        )
        for stream_id, last in sorted(reached.items())
    ]
    points: list[Point] = []
    if files:
        wanted = [(each.stream_id, each.from_offset) for each in positions]
        messages = not_yet_counted(history.read(files), counted=session.createDataFrame(wanted, _COUNTED))
        # As a number: a collected timestamp comes in the time zone of this process.
        rows = per_step(per_minute(messages)).withColumn("start_s", sf.unix_seconds("start")).collect()
        points = [
            Point(
                stream_id=row.stream_id,
                step=row.step,
                start=datetime.fromtimestamp(row.start_s, UTC),
                messages=row.messages,
                bytes=row.bytes,
                first=row["first"],
                last=row["last"],
            )
            for row in rows
        ]
    minutes = [point for point in points if point.step == "minute"]
    return RolledUp(
        points=points,
        positions=positions,
        messages=sum(point.messages for point in minutes),
        bytes=sum(point.bytes for point in minutes),
    )


def _new_files(
    history: History, *, counted: Mapping[str, int], behind: set[str]
) -> tuple[list[HistoryFile], dict[str, int]]:
    """The files that hold what is not counted of the streams behind, and how far they reach, stream by stream.

    Walks the log of batches back only as far as needed: the cost follows what is new.
    """
    files: list[HistoryFile] = []
    reached: dict[str, int] = {}
    rewritten: set[str] = set()
    open_ = set(behind)
    for batch in history.newest_first() if open_ else []:
        for stream_id in open_ & batch.end.keys():
            reached.setdefault(stream_id, batch.end[stream_id])
        files += [file for file in _wanted_files(batch, open_, counted) if file.path not in rewritten]
        rewritten.update(batch.removed)
        open_ -= {stream_id for stream_id, start in batch.start.items() if start <= counted.get(stream_id, 0)}
        if not open_:
            break
    return files, reached


def _wanted_files(batch: Batch, streams: set[str], counted: Mapping[str, int]) -> list[HistoryFile]:
    return [
        file
        for file in batch.files
        if file.stream_id in streams and file.last > counted.get(file.stream_id, 0)
    ]


def _newest(files: Iterable[HistoryFile]) -> dict[str, datetime]:
    """Stream id → time of its newest message in these files."""
    newest_ms: dict[str, int] = {}
    for file in files:
        newest_ms[file.stream_id] = max(file.last_ms, newest_ms.get(file.stream_id, 0))
    return {each: datetime.fromtimestamp(unix_ms / 1000, UTC) for each, unix_ms in newest_ms.items()}


def main() -> None:
    """Print the points of all time, one a line, with the settings of the environment."""
    settings = JobSettings.from_environ()
    with closing(settings.log()) as log:
        archived = log.run(archived_offsets())
    with main_session(settings) as session:
        found = rollup(session, settings, counted={}, archived=archived)
    for point in sorted(found.points, key=lambda each: (each.stream_id, each.step, each.start)):
        print(point.stream_id, point.step, point.start.isoformat(), point.messages, point.bytes)
    print(f"{found.messages} messages, {found.bytes} bytes.")


if __name__ == "__main__":
    main()
