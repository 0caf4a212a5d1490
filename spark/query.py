"""One query from its text to its answer: checked, run with limits on rows and bytes, cancelled when told to."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark import plans, sentences, tables
from spark.batches import HistoryFile
from spark.growth import Keeps
from spark.history import History, HistoryUnreadable, KnownBatches
from spark.jobs.settings import JobSettings
from spark.rereading import HistoryUnread, begun_again
from spark.session import lives
from spark.steps import steps_wanted
from spark.tables import Seen

ANSWER_BYTES = 16 * 1024 * 1024
"""An answer stops at so many bytes of rows, as a read of messages does."""

SORT_BYTES = 64 * 1024 * 1024
"""The heap that the rows of a sorted answer may take while they are chosen; larger ones are sorted on disk."""

ELIMINATE_LIMITS = "org.apache.spark.sql.catalyst.optimizer.EliminateLimits"
"""Takes a limit away where Spark knows that there are no more rows; it also brings them into one partition."""

_ROWS = pa.schema([pa.field("row", pa.string())])

_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
}


class QueryFailed(RuntimeError):
    """A query was understood but could not be carried out; the message is a sentence for a person."""


class QueryLost(RuntimeError):
    """Something of Spark's ended under a query, which may be asked again; the message is a sentence for a person."""


class QueryTooLarge(RuntimeError):
    """Spark had no memory left under it."""


class QueryStopped(Exception):
    """Nobody waits for the answer any more."""


class Course:
    """How a query goes, between the thread that asks and one that watches it.

    Attributes:
        is_over: set by who watches; no further step is begun.
        is_in_spark: whether Spark works on what the query itself says, which may take it any time, and hear nothing.
        keeps: the rows that it keeps at once, as far as is known.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.is_in_spark = False
        self.keeps = Keeps.NOTHING

    @contextmanager
    def in_spark(self) -> Iterator[None]:
        """A step of Spark's.

        Raises:
            QueryStopped: it is over.
        """
        if self.is_over:
            raise QueryStopped
        self.is_in_spark = True
        try:
            yield
        finally:
            self.is_in_spark = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query found.

    Attributes:
        columns: names and Spark's types, in order; a name may stand twice.
        rows: each the JSON text of an array.
        truncated: whether there was more, by rows or by bytes.
    """

    columns: list[tuple[str, str]]
    rows: list[str]
    truncated: bool


def ask(
    session: SparkSession,
    settings: JobSettings,
    sql: str,
    *,
    seen: Seen,
    known: KnownBatches,
    limit: int,
    course: Course | None = None,
) -> Answer:
    """Answer a query in the calling thread, whose job group and pool it runs in.

    Args:
        session: the process's session; the query gets one of its own, with nothing but its tables.
        limit: most rows.
        course: for who watches it from another thread.

    Raises:
        QueryStopped: whoever watches said that it is over.
        QueryRefused: it does not only read, or is not understood.
        QueryFailed: Spark could not carry it out, and says why.
        QueryLost: a Python process of Spark was ended.
        QueryTooLarge: there was no memory.
        Py4JJavaError: something else went wrong in the JVM, such as a job that was cancelled.
        LogError: a store does not answer.
    """
    course = course or Course()
    own = session.newSession()
    with course.in_spark():
        checked = plans.parse(own, sql, tables=tables.COLUMNS)
    course.keeps = checked.keeps
    rows_in_heap = max(1, SORT_BYTES // max(1, tables.widest_body(settings, seen.streams)))
    own.conf.set("spark.sql.execution.topKSortFallbackThreshold", rows_in_heap)
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1000)
    # Or what a query has shuffled stays until Java's collector happens to find that nobody needs it.
    own.conf.set("spark.sql.classic.shuffleDependency.fileCleanup.enabled", "true")
    for rules in ("spark.sql.optimizer.excludedRules", "spark.sql.adaptive.optimizer.excludedRules"):
        own.conf.set(rules, ELIMINATE_LIMITS)
    # Of c columns that stand under k names each, Spark would infer k^c constraints of one condition.
    own.conf.set("spark.sql.constraintPropagation.enabled", "false")

    with course.in_spark():
        steps = steps_wanted(own, checked)

    def answer() -> Answer:
        tables.offer(own, settings, checked.tables, seen=seen, known=known, steps=steps)
        with course.in_spark():
            return _collected(plans.analyzed(own, checked), limit=limit)

    def files() -> Collection[HistoryFile]:
        return known.refresh(History(own, settings.history_url)).files.values()

    try:
        return begun_again(answer, files=files)
    except Py4JNetworkError as error:
        if not lives():
            raise
        raise QueryTooLarge from error  # what answers here had none either
    except (HistoryUnreadable, HistoryUnread) as error:
        raise QueryFailed(str(error)) from error
    except (PySparkException, Py4JJavaError) as error:
        lost = sentences.of_a_worker(error)
        if lost is not None:
            raise QueryLost(lost) from error
        if sentences.is_of_the_heap(error):
            raise QueryTooLarge from error
        said = sentences.sentence(error) if isinstance(error, PySparkException) else sentences.reason(error)
        if said is None:
            raise
        raise QueryFailed(said) from error


def _collected(frame: DataFrame, *, limit: int) -> Answer:
    columns = [(each.name, each.dataType.simpleString()) for each in frame.schema.fields]
    numbered = frame.toDF(*[str(n) for n in range(len(columns))])
    written = numbered.limit(limit + 1).select(sf.to_json(sf.struct("*"), _JSON).alias("row"))
    found = [row.row for row in written.mapInArrow(within(ANSWER_BYTES), "row string").collect()]
    rows, left = [], ANSWER_BYTES
    for row in found[:limit]:
        left -= len(row.encode()) if row is not None else left + 1
        if left < 0:
            break
        rows.append(_as_array(row))
    return Answer(columns=columns, rows=rows, truncated=len(rows) < len(found))


def within(limit_bytes: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows of text of one partition until they have so many bytes; where more came, a null is the last one."""

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = limit_bytes
        for batch in batches:
            sizes = [len(text.encode()) for text in batch.column(0).to_pylist()]
            fit = 0
            while fit < len(sizes) and sizes[fit] <= left:
                left -= sizes[fit]
                fit += 1
            yield pa.RecordBatch.from_arrays([batch.column(0).slice(0, fit).cast(pa.string())], schema=_ROWS)
            if fit < len(sizes):
                yield pa.RecordBatch.from_arrays([pa.nulls(1, pa.string())], schema=_ROWS)
                return

    return cut


def _as_array(row: str) -> str:
    """``{"0":1,"1":"a"}`` as ``[1,"a"]``, each value as Spark wrote it."""
    values = msgspec.json.decode(row, type=dict[str, msgspec.Raw]).values()
    return "[" + ",".join(bytes(value).decode() for value in values) + "]"
