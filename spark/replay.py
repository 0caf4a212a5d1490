"""A range of the past in offset order, from the history and the live tail, in chunks of bounded size."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark import plans, ranges, reading, tables
from spark.batches import HistoryFile
from spark.history import History, KnownBatches
from spark.jobs.settings import JobSettings
from spark.positions import positions
from spark.rereading import begun_again
from spark.session import activate
from spark.tables import Bounds
from streams import naming
from streams.log import entries
from streams.log.client import Log
from streams.log.config import Registered

CHUNK_ROWS = 20_000
CHUNK_BYTES = 32 * 1024 * 1024
"""A chunk ends with the message that reaches the one or the other."""

WIDEST_LOOK = 2_000_000
"""Most offsets that are looked through for one chunk; it grows to this where little of a range is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which messages of a stream; bounds are both included, and None is no bound.

    Attributes:
        first, last: offsets.
        since_ms, until_ms: unix ms.
        key: a key or a pattern of keys; None is any, or none.
        filter_keys: patterns of which the key matches one; without any, any key or none.
        where: a condition in SQL on the columns of the table ``messages``.
    """

    stream: Registered
    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    key: str | None = None
    filter_keys: Sequence[str] = ()
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many messages are wanted, the bytes of their bodies, and the lowest and highest offset among them."""

    messages: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A message of the past; ``headers`` is encoded JSON or None."""

    offset: int
    timestamp_ms: int
    id: str
    key: str | None
    headers: bytes | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Messages in offset order: all that are wanted up to offset ``end``, from where they were asked for."""

    messages: list[Past]
    end: int


class PastRange:
    """Reads one range; for one thread.

    Raises:
        QueryRefused: its condition does more than look at a message.
    """

    def __init__(
        self, session: SparkSession, settings: JobSettings, wanted: Wanted, known: KnownBatches
    ) -> None:
        self.session = session.newSession()
        self.settings = settings
        self.wanted = wanted
        self.known = known
        activate(self.session)
        self.condition = None if wanted.where is None else plans.condition(self.session, wanted.where)
        self.look = CHUNK_ROWS
        rows = CHUNK_BYTES // max(1, tables.widest_body(settings, [wanted.stream]))
        self.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", max(1, min(10_000, rows)))

    def count(self) -> Counted:
        """Count what is wanted now, without its bodies."""
        figures = (
            sf.count(sf.lit(1)).alias("messages"),
            sf.coalesce(sf.sum("bytes"), sf.lit(0)).alias("bytes"),
            sf.coalesce(sf.min("offset"), sf.lit(0)).alias("first"),
            sf.coalesce(sf.max("offset"), sf.lit(0)).alias("last"),
        )
        found = self._tried(lambda frame: frame.agg(*figures), self.wanted.first, self.wanted.last)
        return Counted(**found.to_pylist()[0])

    def read(self, first: int, last: int) -> Chunk:
        """The wanted messages from an offset on, not beyond another; as many as fit into a chunk."""
        upto = min(last, first + self.look - 1)
        found = self._tried(_in_order, first, upto)
        messages = [_past(row) for row in found.to_pylist()]
        size = sum(len(each.body) for each in messages)
        if len(messages) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            self.look = max(1_000, min(self.look, 2 * len(messages)))
            return Chunk(messages=messages, end=messages[-1].offset)
        if 2 * len(messages) < CHUNK_ROWS and 2 * size < CHUNK_BYTES:
            self.look = min(WIDEST_LOOK, 2 * self.look)
        return Chunk(messages=messages, end=upto)

    def _tried(self, over: Callable[[DataFrame], DataFrame], first: int | None, last: int | None) -> pa.Table:
        """What a function of the frame of wanted messages gives; begun again where the history moves on."""
        return begun_again(lambda: over(self._frame(first, last)).toArrow(), files=self._files)

    def _files(self) -> Collection[HistoryFile]:
        return self.known.refresh(History(self.session, self.settings.history_url)).files.values()

    def _frame(self, first: int | None, last: int | None) -> DataFrame:
        wanted = self.wanted
        bounds = Bounds(first=first, last=last, since_ms=wanted.since_ms, until_ms=wanted.until_ms)
        found = tables.messages(self.session, self.settings, [wanted.stream], self.known, bounds=bounds)
        for condition in _conditions(wanted, first, last):
            found = found.where(condition)
        return found if self.condition is None else plans.chosen(found, self.condition)


def _conditions(wanted: Wanted, first: int | None, last: int | None) -> Iterator[Column]:
    offset, time = sf.col("offset"), sf.col("timestamp")
    if first is not None:
        yield offset >= first
    if last is not None:
        yield offset <= last
    if wanted.since_ms is not None:
        yield time >= sf.timestamp_millis(sf.lit(wanted.since_ms))
    if wanted.until_ms is not None:
        yield time <= sf.timestamp_millis(sf.lit(wanted.until_ms))
    if wanted.key is not None:
        yield _has_key(wanted.key)
    if wanted.filter_keys:
        yield reduce(or_, map(_has_key, wanted.filter_keys))


def _has_key(pattern: str) -> Column:
    if {"*", ">"} & set(pattern.split(".")):
        return sf.col("key").rlike(rf"\A(?s:{naming.compiled(pattern).pattern})\z")
    return sf.col("key") == pattern


def _in_order(frame: DataFrame) -> DataFrame:
    columns = (
        "offset bigint, timestamp_ms bigint, id string, key string, headers string, bytes bigint, body string"
    )
    time_, headers = sf.unix_millis("timestamp").alias("timestamp_ms"), sf.to_json("headers").alias("headers")
    named = frame.select("offset", time_, "id", "key", headers, "bytes", "body")
    return (
        named.coalesce(1).sortWithinPartitions("offset").mapInArrow(_within(CHUNK_ROWS, CHUNK_BYTES), columns)
    )


def _within(
    most_rows: int, most_bytes: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows up to the one that fills a chunk."""

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = size = 0
        for batch in batches:
            for n, more in enumerate(batch.column("bytes").to_pylist(), start=1):
                rows, size = rows + 1, size + more
                if rows >= most_rows or size >= most_bytes:
                    yield batch.slice(0, n)
                    return
            yield batch

    return cut


def _past(row: dict[str, Any]) -> Past:
    headers = row["headers"]
    return Past(
        offset=row["offset"],
        timestamp_ms=row["timestamp_ms"],
        id=row["id"],
        key=row["key"],
        headers=None if headers is None else headers.encode(),
        body=row["body"].encode(),
    )


def ids_after(log: Log, stream: Registered, *, after: int, wanted: set[str]) -> set[str]:
    """Which of these ids stand in a stream's log above an offset, hidden ones too; a stream that is gone has none."""
    at = log.run(positions([stream.stream_id], strict=True)).get(stream.stream_id)
    if at is None:
        return set()
    looked = ranges.Range(
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream=stream.name,
        first=after + 1,
        last=at.last,
    )
    pages = reading.archive_pages(log, looked)
    return {each.id for page in pages for each in map(entries.parse, page) if each.id in wanted}
