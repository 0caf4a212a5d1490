"""How ``okmq`` is read: what a batch or a micro-batch covers, cut into tasks, and how a task reads its part."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark import bounds, pushed, ranges, reading, schemas
from spark.options import EARLIEST, LATEST, OptionError, Options
from spark.positions import by_id, positions, streams_meant
from spark.ranges import Range
from spark.versions import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from streams.log import config
from streams.log.client import Log, Op, T
from streams.log.errors import Damaged, StoreUnavailable
from streams.log.keys import in_memory

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


def columns(schema: StructType) -> pa.Schema:
    """The Arrow schema of the columns asked for.

    Raises:
        OptionError: a column that the source has not, with another type, or twice.
    """
    types = {field.name: field.dataType for field in schemas.MESSAGES.fields}
    twice = [name for name, times in Counter(schema.names).items() if times > 1]
    if twice:
        raise OptionError(f"Column {twice[0]!r} is asked for twice.")
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
            except Damaged:
                raise
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
        if not streams:
            reading.warnings.warning(
                "No stream of workspace %r matches %s: nothing is read.",
                self.options.workspace,
                ", ".join(self.options.streams),
            )
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
