"""The live tail: what stands in the log above what the history has, as a data source for queries.

A query fixes for each stream where the history ends and where the log ended, before it reads anything. While it reads,
the history may go on and retention may take from the log what it then holds; a reader that finds such a gap raises
``HistoryMovedOn``, and the query is begun again with new limits. So it sees each message once, or it says so.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark import ranges, reading, schemas
from spark.positions import positions
from spark.ranges import Range
from spark.rereading import HistoryMovedOn
from streams.log import entries
from streams.log.client import Log
from streams.log.entries import Entry

ROWS_PER_PARTITION = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRange:
    """The offsets of one stream from ``first`` to ``last``, both included, that a query reads from the log.

    Attributes:
        archived: how far the log was told to be archived when the limits were fixed. What is missing up to there is in
            no history.
        archive: whether what a limit has hidden is read too, as the history would have it.
    """

    workspace_id: int
    stream_id: str
    stream: str
    first: int
    last: int
    archived: int
    archive: bool


def live_tail(
    session: SparkSession, wanted: Sequence[TailRange], *, redis_url: str, memory_url: str | None
) -> DataFrame:
    """The messages of these ranges, ``schemas.MESSAGES``."""
    session.dataSource.register(TailDataSource)
    reader = session.read.format(TailDataSource.name()).option("url", redis_url)
    if memory_url is not None:
        reader = reader.option("memoryUrl", memory_url)
    return reader.option("ranges", msgspec.json.encode(wanted).decode()).load()


class TailDataSource(DataSource):
    """Exactly the ranges in the option ``ranges``; ``url`` and ``memoryUrl`` as the source ``okmq`` has them."""

    @classmethod
    def name(cls) -> str:
        return "okmq-tail"

    def schema(self) -> StructType:
        return schemas.MESSAGES

    def reader(self, schema: StructType) -> "TailReader":
        return TailReader(dict(self.options), schemas.arrow(schema))


@dataclass
class TailPartition(InputPartition):
    """What one task reads."""

    ranges: tuple[Range, ...]


class TailReader(DataSourceReader):
    """Holds no connection: it is pickled."""

    def __init__(self, options: dict[str, str], schema: pa.Schema) -> None:
        self.url, self.memory_url = options["url"], options.get("memoryurl")
        self.wanted = msgspec.json.decode(options["ranges"], type=list[TailRange])
        self.arrow_schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        found = [
            Range(
                workspace_id=each.workspace_id,
                stream_id=each.stream_id,
                stream=each.stream,
                first=each.first,
                last=each.last,
            )
            for each in self.wanted
        ]
        return [TailPartition(each) for each in ranges.pack(found, rows=ROWS_PER_PARTITION, partitions=1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, TailPartition):
            return  # Spark's stand-in for "no partitions at all"
        hidden_too = {each.stream_id: each.archived for each in self.wanted if each.archive}
        with (
            closing(Log(self.url, memory_url=self.memory_url)) as log,
            reading.without_search_for_cycles(),
        ):
            for wanted in partition.ranges:
                if wanted.stream_id in hidden_too:
                    pages = _complete_pages(log, wanted, archived=hidden_too[wanted.stream_id])
                else:
                    pages = reading.visible_pages(log, wanted, strict=False)
                try:
                    yield from reading.in_batches(pages, wanted, schema=self.arrow_schema)
                except reading.StreamDeletedError:
                    continue


def _complete_pages(log: Log, wanted: Range, *, archived: int) -> Iterator[list[Entry]]:
    """Pages of what the history would take, without what was removed and can come back.

    Raises:
        HistoryMovedOn: entries are missing that it may have taken since the limits were fixed.
    """

    def refuse_gap(start: int, page: list[Entry], end: int) -> None:
        if len(page) == end - start + 1:
            return
        held = {entries.position(entry)[0] for entry in page}
        since = range(max(start, archived + 1), end + 1)
        missing = next((offset for offset in since if offset not in held), None)
        if missing is None:
            return
        after = log.run(positions([wanted.stream_id], strict=True)).get(wanted.stream_id)
        # Also where a person took it: the history may have got it before. A query that is begun again ends above it.
        if after is not None and after.archived >= missing:
            raise HistoryMovedOn(
                f"Stream {wanted.stream!r}: offset {missing} went into the history meanwhile."
            )

    return reading.archive_pages(log, wanted, on_page=refuse_gap, with_aside=False)
