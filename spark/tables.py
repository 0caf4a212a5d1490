"""The tables of a query: a snapshot of what a caller may see, as temporary views of one session.

``messages`` is the history and the live tail, without gap and without overlap: for each stream the history up to where
its log of batches ends, and the log from there to where it stood when the query began. ``metrics`` are the worker's
samples, ``rollups`` and ``groups`` what the jobs counted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark.batches import HistoryFile
from spark.history import History, KnownBatches
from spark.jobs.settings import JobSettings
from spark.positions import Position, positions
from spark.tail import TailRange, live_tail
from streams.log.config import Registered
from streams.log.counts import OF_GROUPS, OF_STREAMS

_OF_SAMPLES = ("p50", "p90", "p99", "max")

COLUMNS: Mapping[str, Sequence[tuple[str, str]]] = {
    "messages": (
        ("stream", "string"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("id", "string"),
        ("key", "string"),
        ("headers", "map<string,string>"),
        ("body", "string"),
        ("bytes", "bigint"),
    ),
    "metrics": (
        ("stream", "string"),
        ("time", "timestamp"),
        ("offset", "bigint"),
        ("messages", "bigint"),
        ("bytes", "bigint"),
        ("committed", "bigint"),
        ("lag", "bigint"),
        ("messages_in", "double"),
        ("bytes_in", "double"),
        ("messages_out", "double"),
    ),
    "rollups": (
        ("stream", "string"),
        ("step", "string"),
        ("start", "timestamp"),
        *[
            (name, "bigint")
            for name in (
                *("messages", "bytes", "ids", "keys", "missing"),
                *("size_p50", "size_p90", "size_p99", "size_max"),
                *OF_STREAMS,
            )
        ],
    ),
    "groups": (
        ("stream", "string"),
        ("group", "string"),
        ("step", "string"),
        ("start", "timestamp"),
        ("samples", "bigint"),
        *[(f"lag_{of}", "bigint") for of in _OF_SAMPLES],
        *[(f"lag_seconds_{of}", "double") for of in _OF_SAMPLES],
        *[(f"ack_seconds_{of}", "double") for of in _OF_SAMPLES],
        *[(name, "bigint") for name in OF_GROUPS],
    ),
}
"""The tables that can be asked: name → its columns and their types, in order."""

_SAMPLED = (
    "streams map<string, struct<offset: bigint, messages: bigint, bytes: bigint, committed: bigint, lag: bigint, "
    "`in`: double, bytes_in: double, `out`: double>>, at bigint"
)

_OWN = (
    "inline(transform(filter(map_entries(sample.streams), each -> each.key IN ({ids})), "
    "each -> named_struct('at', sample.at, 'stream_id', each.key, 'is', each.value)))"
)
"""Rows of a sample's streams, but of no others than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Which messages are wanted at most: offsets and unix ms, both ends included; None is no bound.

    They choose the files that are read, and what is read of the log; rows beyond them may come along.
    """

    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def meet(self, file: HistoryFile) -> bool:
        """Whether a file may hold what is wanted."""
        return not (
            (self.first is not None and file.last < self.first)
            or (self.last is not None and file.first > self.last)
            or (self.since_ms is not None and file.last_ms < self.since_ms)
            or (self.until_ms is not None and file.first_ms > self.until_ms)
        )


ALL = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a query may see.

    Attributes:
        streams: those whose messages it may read.
        metrics_stream: the internal stream of samples; None where there is none.
        rollups, groups: what was counted of these streams in some steps, with ``stream_id`` and the columns of
            ``COLUMNS`` but ``stream``.
    """

    streams: Sequence[Registered]
    metrics_stream: Registered | None
    rollups: Callable[[Collection[str]], pa.Table]
    groups: Callable[[Collection[str]], pa.Table]


def offer(
    session: SparkSession,
    settings: JobSettings,
    wanted: Collection[str],
    *,
    seen: Seen,
    known: KnownBatches,
    steps: Mapping[str, Collection[str]],
) -> None:
    """Make the tables that a query names the session's temporary views.

    Args:
        steps: of ``rollups`` and ``groups`` those that it needs.

    Raises:
        LogError: a store does not answer.
    """
    if "messages" in wanted:
        messages(session, settings, seen.streams, known).createOrReplaceTempView("messages")
    if "metrics" in wanted:
        _metrics(session, settings, seen, known).createOrReplaceTempView("metrics")
    for name, counted in (("rollups", seen.rollups), ("groups", seen.groups)):
        if name in wanted:
            _counted(session, seen, counted(steps[name]), table=name).createOrReplaceTempView(name)


def widest_body(settings: JobSettings, streams: Sequence[Registered]) -> int:
    """Bytes of the largest body that any of these streams ever took."""
    with closing(settings.log()) as log:
        at = log.run(positions(each.stream_id for each in streams))
    return max((each.widest for each in at.values()), default=0)


def messages(
    session: SparkSession,
    settings: JobSettings,
    streams: Sequence[Registered],
    known: KnownBatches,
    *,
    bounds: Bounds = ALL,
) -> DataFrame:
    """The messages of streams in the history and in the live tail, each once, with the columns of ``COLUMNS``.

    Raises:
        LogError: a store does not answer.
    """
    with closing(settings.log()) as log:
        # Before the log of batches: what is archived between the two is in the history, so nothing is missing.
        at = log.run(positions((each.stream_id for each in streams), strict=True))
    history = History(session, settings.history_url)
    held = known.refresh(history)
    files = [file for file in held.files.values() if file.stream_id in at and bounds.meet(file)]
    columns = [name for name, _ in COLUMNS["messages"]]
    tail = [
        _tail_range(each, at[each.stream_id], held.ends.get(each.stream_id, 0), bounds)
        for each in streams
        if each.stream_id in at
    ]
    tail = [each for each in tail if each.first <= each.last]
    if not tail:
        return history.read(files).select(columns)
    live = live_tail(session, tail, redis_url=settings.redis_url, memory_url=settings.memory_url)
    return history.read(files).select(columns).union(live.select(columns)) if files else live.select(columns)


def _tail_range(stream: Registered, at: Position, in_history: int, bounds: Bounds) -> TailRange:
    visible = 1 if stream.archive else at.floor
    # Not from the offset up to which the log is told to be archived: the history may be another one, that lacks it.
    return TailRange(
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream=stream.name,
        first=max(in_history + 1, visible, bounds.first or 1),
        last=at.last if bounds.last is None else min(at.last, bounds.last),
        archived=at.archived,
        archive=stream.archive,
    )


def _metrics(session: SparkSession, settings: JobSettings, seen: Seen, known: KnownBatches) -> DataFrame:
    held = [] if seen.metrics_stream is None else [seen.metrics_stream]
    # In a text, as ``isin`` makes a call to the JVM for each.
    ids = ", ".join(f"'{each.stream_id}'" for each in seen.streams) or "NULL"
    return (
        messages(session, settings, held, known)
        .select(sf.from_json("body", _SAMPLED).alias("sample"))
        # A sample is of all workspaces. Spark tries a query's conditions below a join and below ``inline``, so no row
        # is made of another's stream, and the time, too, comes out of what is narrowed.
        .selectExpr(_OWN.format(ids=ids))
        .join(sf.broadcast(_names(session, seen.streams)), on="stream_id", how="inner")
        .select(
            "stream",
            sf.timestamp_millis("at").alias("time"),
            *[f"is.{name}" for name in ("offset", "messages", "bytes", "committed", "lag")],
            sf.col("is.in").alias("messages_in"),
            "is.bytes_in",
            sf.col("is.out").alias("messages_out"),
        )
    )


def _counted(session: SparkSession, seen: Seen, rows: pa.Table, *, table: str) -> DataFrame:
    own = pc.is_in(rows["stream_id"], pa.array([each.stream_id for each in seen.streams], pa.string()))
    return (
        session.createDataFrame(rows.filter(own))
        .join(sf.broadcast(_names(session, seen.streams)), on="stream_id", how="inner")
        .select([name for name, _ in COLUMNS[table]])
    )


def _names(session: SparkSession, streams: Sequence[Registered]) -> DataFrame:
    rows = [(each.stream_id, each.name) for each in streams]
    return session.createDataFrame(rows, "stream_id string, stream string")
