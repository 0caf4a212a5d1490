"""The data source ``okmq`` for PySpark, batch and Structured Streaming, on any session.

from spark.source import register

register(session)
session.read.format("okmq").option("stream", "orders").load()
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark import ranges, reading, schemas
from spark.options import EARLIEST, LATEST, MAP_EARLIEST, MAP_LATEST, Offsets, OptionError, Options, parse
from spark.positions import Position, by_id, positions, streams_meant
from spark.ranges import Range
from streams.log.client import Log, Op, T
from streams.log.config import Registered
from streams.log.errors import StoreUnavailable
from streams.log.keys import in_memory


def register(session: SparkSession) -> None:
    """Make ``format("okmq")`` known to a session.

    On a cluster the workers need this package too (``--py-files`` or an installation); on one machine they find
    it, and the interpreter with its libraries, where this process did.
    """
    folder = str(Path(__file__).resolve().parent.parent)
    context = session.sparkContext
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    environment = context.environment
    paths = environment.get("PYTHONPATH", "").split(":")
    if folder not in paths:
        environment["PYTHONPATH"] = ":".join(filter(None, [folder, *paths]))
    session.dataSource.register(OkmqDataSource)


class OkmqDataSource(DataSource):
    """Messages of OKMQ streams as rows.

    Options (names are case-insensitive):

    ``stream``
        required: a name, names separated by commas, or patterns with ``*``. A pattern also picks up streams that
        are made while a query runs, and never means the system's own streams (``_metrics``).
    ``workspace``
        its name, default ``default``; ``*`` is all of them.
    ``url``
        the store: ``redis://``, ``rediss://`` or ``unix://``; default is the variable ``OKMQ_REDIS_URL``.
    ``memoryUrl``
        the server of the streams in memory; default is the variable ``OKMQ_MEMORY_REDIS_URL``.
    ``startingOffsets``
        ``earliest`` (default of batch), ``latest`` (default of streaming), or a JSON object of stream names and
        first offsets, ``{"orders": 42}``, -2 for earliest, -1 for latest; a stream that it does not name starts
        at the earliest. A streaming query that continues from a checkpoint ignores it.
    ``endingOffsets``
        batch only: ``latest`` (default), or a JSON object of stream names and the first offset **not** to read
        (as in Spark's Kafka source); a stream that it does not name ends at the latest.
    ``maxOffsetsPerTrigger``
        streaming only: most offsets in one micro-batch, shared by the streams in proportion to what waits.
    ``rowsPerPartition``, ``minPartitions``
        most offsets in one task (default 50000) and fewest tasks (default 1).
    ``failOnDataLoss``
        ``true`` (default): an offset that was asked for but has gone (retention, purge) ends the read with an
        error; ``false`` reads on behind the gap. A deleted stream ends a batch in the same way; a streaming query
        just closes it. A stream in memory whose server does not answer ends a batch with an error, or is left
        out of it; in a streaming query it waits where it was.
    ``view``
        ``visible`` (default): what any reader sees. ``archive``: what the history takes: only streams whose
        ``archive`` setting is on, from each one's archived offset on, with what a limit has hidden but what is
        still physically there, and never with what a person deleted or purged.

    Columns: ``workspace_id int, stream_id string, stream string, offset long, timestamp timestamp`` (UTC, to the
    millisecond), ``id string, key string, headers map<string,string>, body string`` (the JSON text as sent),
    ``bytes long`` (UTF-8 bytes of the body). Give ``.schema("offset long, body string")`` to read only some.

    Raises:
        OptionError: an option cannot be used.
        DataLossError: with ``failOnDataLoss``.
    """

    @classmethod
    def name(cls) -> str:
        return "okmq"

    def schema(self) -> StructType:
        parse(self.options)
        return schemas.MESSAGES

    def reader(self, schema: StructType) -> "OkmqReader":
        return OkmqReader(parse(self.options), columns(schema))

    def streamReader(self, schema: StructType) -> "OkmqStreamReader":  # noqa: N802
        options = parse(self.options)
        if options.ending is not None:
            raise OptionError("Option endingOffsets is for batch reads; a streaming query has no end.")
        return OkmqStreamReader(options, columns(schema))


def columns(schema: StructType) -> pa.Schema:
    """The Arrow schema of the columns asked for.

    Raises:
        OptionError: a column that the source has not, or with another type.
    """
    types = {field.name: field.dataType for field in schemas.MESSAGES.fields}
    for field in schema.fields:
        if field.name not in types:
            raise OptionError(f"The source okmq has no column {field.name!r}; it has {', '.join(types)}.")
        if field.dataType.simpleString() != types[field.name].simpleString():
            raise OptionError(
                f"Column {field.name!r} of the source okmq is {types[field.name].simpleString()}."
            )
    return schemas.arrow(schema)


@dataclass
class OffsetRanges(InputPartition):
    """What one task reads."""

    ranges: tuple[Range, ...]


class _Reading:
    """What both readers share: the options and how a task reads its ranges. Holds no connection: it is pickled."""

    # Whether a stream that is deleted under a reader is an error to one that may lose nothing.
    closes_quietly = False

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self.options = options
        self.arrow_schema = schema

    @property
    def is_strict(self) -> bool:
        """Whether what cannot be read ends the read; the history takes what there is."""
        return self.options.fail_on_data_loss and not self.options.archive

    def connect(self) -> Log:
        """A connection to the stores."""
        return Log(self.options.url, memory_url=self.options.memory_url)

    def run(self, op: Op[T]) -> T:
        """Run one operation on a connection of its own."""
        with closing(self.connect()) as log:
            try:
                return log.run(op)
            except StoreUnavailable as error:
                raise StoreUnavailable(f"The store of the streams does not answer: {error}") from None

    def read_ranges(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, OffsetRanges):
            return  # Spark's stand-in for "no partitions at all"
        strict = self.options.fail_on_data_loss
        with closing(self.connect()) as log:
            for wanted in partition.ranges:
                try:
                    yield from reading.batches(
                        log, wanted, schema=self.arrow_schema, archive=self.options.archive, strict=strict
                    )
                except reading.StreamDeletedError:
                    if strict and not self.closes_quietly:
                        raise

    def pack(self, wanted: Sequence[Range]) -> list[InputPartition]:
        packed = ranges.pack(
            wanted, rows=self.options.rows_per_partition, partitions=self.options.min_partitions
        )
        return [OffsetRanges(each) for each in packed]

    def starts(
        self, streams: Sequence[Registered], at: Mapping[str, Position], *, default: str
    ) -> dict[str, int]:
        """Stream id → first offset to read, as ``startingOffsets`` says.

        Raises:
            OptionError: a named stream is not among those read, or an offset lies beyond its end.
            DataLossError: the offset has gone, with ``failOnDataLoss``.
        """
        asked = self.options.starting or default
        _check_named(asked, streams, option="startingOffsets")
        found = {}
        for stream in streams:
            position = at[stream.stream_id]
            earliest = position.next_offset(archive=self.options.archive)
            offset = _place(asked, stream.name, earliest=earliest, latest=position.last + 1, default=earliest)
            if offset > position.last + 1:
                raise OptionError(
                    f"Option startingOffsets: {stream.name!r} has no offset {offset} yet; "
                    f"its last is {position.last}."
                )
            if offset < earliest and self.options.fail_on_data_loss:
                raise reading.DataLossError(
                    f"Stream {stream.name!r}: offsets {offset} to {earliest - 1} are no longer there (retention or "
                    "a purge took them); failOnDataLoss=false reads on without them."
                )
            found[stream.stream_id] = max(offset, earliest)
        return found


class OkmqReader(_Reading, DataSourceReader):
    """A batch read: a fixed range of offsets of every stream meant."""

    def partitions(self) -> Sequence[InputPartition]:
        return self.pack(self.run(self._plan()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_ranges(partition)

    def _plan(self) -> Op[list[Range]]:
        streams = yield from streams_meant(self.options, strict=True)
        at = yield from positions((each.stream_id for each in streams), strict=self.is_strict)
        streams = [each for each in streams if each.stream_id in at]
        first = self.starts(streams, at, default=EARLIEST)
        asked = self.options.ending or LATEST
        if asked == EARLIEST:
            raise OptionError("Option endingOffsets='earliest': expected latest or a JSON object of offsets.")
        _check_named(asked, streams, option="endingOffsets")
        found = []
        for stream in streams:
            end = at[stream.stream_id].last + 1
            below = _place(asked, stream.name, earliest=first[stream.stream_id], latest=end, default=end)
            if below > end:
                raise OptionError(
                    f"Option endingOffsets: {stream.name!r} has no offset {below - 1} yet; its last is {end - 1}."
                )
            found.append(_range(stream, first[stream.stream_id], below - 1))
        return found


class OkmqStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read of all streams meant; its offset maps stream id → last offset taken.

    A stream that appears later starts at its earliest offset; one that is deleted leaves the map, and one in
    memory that cannot be asked stays where it was.
    """

    closes_quietly = True

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self.target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self.run(self._initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return (
            ReadAllAvailable() if self.options.max_offsets is None else ReadMaxRows(self.options.max_offsets)
        )

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.target = self.reportLatestOffset()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        known, latest = self.run(self._latest(start))
        if self.target is not None:
            # What came after the start of an availableNow run waits for the next one.
            target = {**start, **self.target}
            latest = {each: min(last, target[each]) for each, last in latest.items() if each in target}
        # A store that lost its end (fsync other than always) must not take the query back.
        latest = {each: max(last, known.get(each, 0)) for each, last in latest.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return dict(sorted(ranges.admit(known, latest, limit=most).items()))

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return dict(sorted(self.run(self._latest({}))[1].items()))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.pack(self.run(self._plan(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_ranges(partition)

    def _initial(self) -> Op[dict[str, int]]:
        streams = yield from streams_meant(self.options, strict=True)
        at = yield from positions(each.stream_id for each in streams)
        streams = [each for each in streams if each.stream_id in at]
        first = self.starts(streams, at, default=EARLIEST if self.options.archive else LATEST)
        return {stream_id: offset - 1 for stream_id, offset in sorted(first.items())}

    def _latest(self, start: Mapping[str, int]) -> Op[tuple[dict[str, int], dict[str, int]]]:
        """Where each stream is read from (those that are new from their earliest), and its last offset."""
        streams = yield from streams_meant(self.options, strict=False)
        at = yield from positions(each.stream_id for each in streams)
        known = {
            stream_id: start.get(stream_id, position.next_offset(archive=self.options.archive) - 1)
            for stream_id, position in at.items()
        }
        latest = {stream_id: position.last for stream_id, position in at.items()}
        away = [each.stream_id for each in streams if each.stream_id not in at and in_memory(each.stream_id)]
        waiting = {stream_id: start[stream_id] for stream_id in away if stream_id in start}
        return known | waiting, latest | waiting

    def _plan(self, start: Mapping[str, int], end: Mapping[str, int]) -> Op[list[Range]]:
        streams = by_id((yield from streams_meant(self.options, strict=False)))
        moved = [stream_id for stream_id, last in end.items() if last > start.get(stream_id, 0)]
        # Passing over one whose server does not answer would count as having read it.
        at = yield from positions(moved, strict=True)
        found = []
        for stream_id in moved:
            position, stream = at.get(stream_id), streams.get(stream_id)
            if position is None or stream is None:
                continue  # deleted since: closed
            earliest = position.next_offset(archive=False)
            first = start.get(stream_id)
            if first is None:
                first = position.next_offset(archive=self.options.archive) - 1
            elif self.options.fail_on_data_loss and not self.options.archive and earliest > first + 1:
                raise reading.DataLossError(
                    f"Stream {stream.name!r}: offsets {first + 1} to {earliest - 1} went before they were read "
                    "(retention or a purge took them); failOnDataLoss=false reads on without them."
                )
            found.append(_range(stream, first + 1, end[stream_id]))
        return found


def _range(stream: Registered, first: int, last: int) -> Range:
    return Range(
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream=stream.name,
        first=first,
        last=last,
    )


def _check_named(asked: Offsets, streams: Sequence[Registered], *, option: str) -> None:
    if isinstance(asked, str):
        return
    names = {each.name for each in streams}
    for name in asked:
        if name not in names:
            raise OptionError(
                f"Option {option} names {name!r}, which is not among the streams that are read."
            )


def _place(asked: Offsets, name: str, *, earliest: int, latest: int, default: int) -> int:
    """The offset that ``startingOffsets`` or ``endingOffsets`` gives a stream."""
    if isinstance(asked, str):
        return earliest if asked == EARLIEST else latest
    offset = asked.get(name, default)
    return {MAP_EARLIEST: earliest, MAP_LATEST: latest}.get(offset, offset)
