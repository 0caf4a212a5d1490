"""The data source ``okmq`` for PySpark 4.x, batch and Structured Streaming, on any session.

from spark.source import register

register(session)
session.read.format("okmq").option("stream", "orders").load()
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark import bounds, pushed, ranges, reading, schemas, versions
from spark.options import EARLIEST, LATEST, OptionError, Options, parse
from spark.positions import by_id, positions, streams_meant
from spark.ranges import Range
from spark.versions import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from spark.writing import OkmqStreamRowWriter, OkmqStreamWriter, OkmqWriter
from streams.log import config
from streams.log.client import Log, Op, T
from streams.log.errors import StoreUnavailable
from streams.log.keys import in_memory

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


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
    # Spark refuses a source that filters by itself, unless this is on.
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(OkmqDataSource)


class OkmqDataSource(DataSource):
    """Messages of OKMQ streams as rows, and rows as new messages (``spark.writing``).

    Options of a read (names are case-insensitive):

    ``stream``
        required: a name, names separated by commas, or patterns with ``*``. A pattern also picks up streams that
        are made while a query runs, and never means the system's own streams (``_metrics``).
    ``workspace``
        its name, default ``default``; ``*`` is all of them.
    ``url``
        the store: ``redis://``, ``rediss://``, ``unix://`` or ``redis+cluster://``; default is the variable
        ``OKMQ_REDIS_URL``.
    ``memoryUrl``
        the server of the streams in memory; default is the variable ``OKMQ_MEMORY_REDIS_URL``.
    ``startingOffsets``
        ``earliest`` (default of batch), ``latest`` (default of streaming), or a JSON object of stream names and
        first offsets, ``{"orders": 42}``, -2 for earliest, -1 for latest; a stream that it does not name starts
        at the earliest. A streaming query that continues from a checkpoint ignores it.
    ``endingOffsets``
        batch only: ``latest`` (default), or a JSON object of stream names and the first offset **not** to read
        (as in Spark's Kafka source); a stream that it does not name ends at the latest.
    ``startingTimestamp``, ``endingTimestamp``
        RFC 3339 or unix ms, instead of the offsets above, for all streams: the first message at or after it is the
        first to read, or (batch only) the first not to read.
    ``startingOffsetsByTimestampStrategy``
        where a stream has nothing as new as ``startingTimestamp``: ``error`` (default), or ``latest`` to begin at
        its end.
    ``maxOffsetsPerTrigger``
        streaming only, from PySpark 4.2 on: most offsets in one micro-batch, shared by the streams in proportion to
        what waits.
    ``rowsPerPartition``, ``minPartitions``
        most offsets in one task (default 50000) and fewest tasks (default 1).
    ``failOnDataLoss``
        ``true`` (default): an offset that was asked for but lies below what the stream still holds (retention, purge)
        ends the read with an error; ``false`` reads on behind the gap, and a warning in Spark's log names it. What went
        from between others (deleted, expired, replaced by a newer one of its key) is no loss. A deleted stream ends a
        batch in the same way, and a streaming query, where something of it had not been read; one that was read to its
        end is just closed. A stream in memory whose server does not answer ends a batch with an error, or is left
        out of it; in a streaming query it waits where it was.
    ``pushFilters``
        batch only, from PySpark 4.1 on: ``true`` has comparisons of ``offset``, ``timestamp`` and ``key`` with
        constants done here: offsets and times bound what is read of the log, and of messages with other keys no
        column is built. For a frame that is loaded for one query: Spark keeps what a Python source planned with the
        loaded table, so any other query of the same ``load()`` would be answered from what the first one wanted.
        Default ``false``.
    ``view``
        ``visible`` (default): what any reader sees. ``archive``: what the history takes: only streams whose
        ``archive`` setting is on, from each one's archived offset on, with what a limit has hidden but what is
        still physically there, and never with what a person deleted or purged.

    Columns: ``workspace_id int, stream_id string, stream string, offset long, timestamp timestamp`` (UTC, to the
    millisecond), ``id string, key string, headers map<string,string>, body string`` (the JSON text as sent),
    ``bytes long`` (UTF-8 bytes of the body). Give ``.schema("offset long, body string")`` to read only some: Spark
    does not tell a Python source which columns a query needs.

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
        options = parse(self.options)
        if options.push_filters and not versions.PUSHES_FILTERS:
            raise OptionError("Option pushFilters needs PySpark 4.1 or later.")
        kind = PushedReader if options.push_filters else OkmqReader
        return kind(options, columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = parse(self.options)
        for name, given in (("endingOffsets", options.ending), ("endingTimestamp", options.ending_ms)):
            if given is not None:
                raise OptionError(f"Option {name} is for batch reads; a streaming query has no end.")
        if options.push_filters:
            raise OptionError("Option pushFilters is for batch reads.")
        if versions.LIMITS_BATCHES:
            return OkmqStreamReader(options, columns(schema))
        if options.max_offsets is not None:
            raise OptionError("Option maxOffsetsPerTrigger needs PySpark 4.2 or later.")
        return UntoldStreamReader(options, columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return OkmqWriter(self.options, schema, overwrites=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        kind = OkmqStreamWriter if versions.WRITES_ARROW_STREAMS else OkmqStreamRowWriter
        return kind(self.options, schema, overwrites=overwrite)


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

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self.options = options
        self.arrow_schema = schema
        self.pushed = pushed.NOTHING

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
        with closing(self.connect()) as log, reading.without_search_for_cycles():
            for wanted in partition.ranges:
                try:
                    yield from reading.batches(
                        log,
                        wanted,
                        schema=self.arrow_schema,
                        archive=self.options.archive,
                        strict=strict,
                        pushed=self.pushed,
                    )
                except reading.StreamDeletedError:
                    if strict:
                        raise
                    reading.warnings.warning(
                        "Stream %r was deleted while offsets %s to %s were read; reading on without them.",
                        wanted.stream,
                        wanted.first,
                        wanted.last,
                    )

    def pack(self, wanted: Sequence[Range]) -> list[InputPartition]:
        packed = ranges.pack(
            wanted, rows=self.options.rows_per_partition, partitions=self.options.min_partitions
        )
        return [OffsetRanges(each) for each in packed]


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
        first = yield from bounds.starts(self.options, streams, at, default=EARLIEST)
        below = yield from bounds.ends(self.options, streams, at, first)
        found = []
        for stream in streams:
            stream_id = stream.stream_id
            whole = bounds.span(stream, first[stream_id], below[stream_id] - 1)
            found.append((yield from bounds.narrowed(whole, at[stream_id], stream, self.pushed)))
        return found


class PushedReader(OkmqReader):
    """A batch read for one query, which does the comparisons that it can itself."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802
        # What a limit has hidden is not found by its time.
        self.pushed, left = pushed.take(filters, by_time=not self.options.archive)
        return left


class _StreamReader(_Reading, DataSourceStreamReader):
    """A streaming read of all streams meant; its offset maps stream id → last offset taken.

    A stream that appears later starts at its earliest offset; one that is deleted leaves the map, which is a loss
    where it was not read to its end, and one in memory that cannot be asked stays where it was.
    """

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self.run(self._initial())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.pack(self.run(self._plan(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_ranges(partition)

    def _initial(self) -> Op[dict[str, int]]:
        streams = yield from streams_meant(self.options, strict=True)
        at = yield from positions(each.stream_id for each in streams)
        streams = [each for each in streams if each.stream_id in at]
        default = EARLIEST if self.options.archive else LATEST
        first = yield from bounds.starts(self.options, streams, at, default=default)
        return {stream_id: offset - 1 for stream_id, offset in sorted(first.items())}

    def _latest(
        self, start: Mapping[str, int], *, strict: bool = False
    ) -> Op[tuple[dict[str, int], dict[str, int]]]:
        """Where each stream is read from (those that are new from their earliest), and its last offset.

        Args:
            strict: streams in memory that cannot be asked are an error.
        """
        streams = yield from streams_meant(self.options, strict=False)
        at = yield from positions((each.stream_id for each in streams), strict=strict)
        known = {
            stream_id: start.get(stream_id, position.next_offset(archive=self.options.archive) - 1)
            for stream_id, position in at.items()
        }
        latest = {
            stream_id: position.last_offset(archive=self.options.archive)
            for stream_id, position in at.items()
        }
        away = [each.stream_id for each in streams if each.stream_id not in at and in_memory(each.stream_id)]
        waiting = {stream_id: start[stream_id] for stream_id in away if stream_id in start}
        return known | waiting, latest | waiting

    def _plan(self, start: Mapping[str, int], end: Mapping[str, int]) -> Op[list[Range]]:
        streams = by_id((yield from streams_meant(self.options, strict=False)))
        moved = [stream_id for stream_id, last in end.items() if last > start.get(stream_id, 0)]
        # Passing over one whose server does not answer would count as having read it.
        at = yield from positions(moved, strict=True)
        found, closed = [], [stream_id for stream_id in start if stream_id not in end]
        for stream_id in moved:
            position, stream = at.get(stream_id), streams.get(stream_id)
            if position is None or stream is None:
                closed.append(stream_id)  # deleted since
                continue
            earliest = position.next_offset(archive=False)
            first = start.get(stream_id)
            if first is None:
                first = position.next_offset(archive=self.options.archive) - 1
            elif earliest > first + 1 and not self.options.archive:
                reading.refuse_or_report(stream.name, first + 1, earliest - 1, strict=self.is_strict)
            found.append(bounds.span(stream, first + 1, end[stream_id]))
        if closed and not self.options.archive:
            yield from self._refuse_unread({stream_id: start.get(stream_id, 0) for stream_id in closed})
        return found

    def _refuse_unread(self, closed: Mapping[str, int]) -> Op[None]:
        """Refuse or report what streams that are read no longer held beyond the last offset that was taken of each."""
        ended = yield from config.ended()
        there = by_id((yield from config.streams()))
        for stream_id, taken in closed.items():
            stream = ended.get(stream_id)
            if stream is not None and stream.last > taken:
                reading.refuse_or_report(
                    stream.name, taken + 1, stream.last, strict=self.is_strict, why="it was deleted"
                )
            elif stream is None and stream_id not in there:
                reading.refuse_or_warn(
                    f"A stream (internal id {stream_id}) was deleted, and whether it had offsets from {taken + 1} on "
                    "is not known any more",
                    strict=self.is_strict,
                )


def not_back(known: Mapping[str, int], latest: Mapping[str, int]) -> dict[str, int]:
    """The last offsets; a store that lost its end (fsync other than always) must not take the query back."""
    return {each: max(last, known.get(each, 0)) for each, last in latest.items()}


class OkmqStreamReader(_StreamReader, SupportsTriggerAvailableNow):
    """A streaming read as PySpark 4.2 and later ask for it."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self.target: dict[str, int] | None = None

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
        latest = not_back(known, latest)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return dict(sorted(ranges.admit(known, latest, limit=most).items()))

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return dict(sorted(self.run(self._latest({}))[1].items()))


class UntoldStreamReader(_StreamReader):
    """A streaming read for PySpark 4.0 and 4.1, which do not tell it where a micro-batch begins or how large it may be.

    Each micro-batch takes what is there. It remembers itself where the last one ended; after a restart it does not
    know, and a stream in memory that cannot be asked then ends the query with an error: without its place in the
    offset it would be read again.
    """

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self.reached: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        self.reached = super().initialOffset()
        return self.reached

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        known, latest = self.run(self._latest(self.reached or {}, strict=self.reached is None))
        self.reached = dict(sorted(not_back(known, latest).items()))
        return self.reached

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self.reached = end
        return super().partitions(start, end)
