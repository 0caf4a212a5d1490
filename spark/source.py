"""The data source ``okmq`` for PySpark 4.x, batch and Structured Streaming, on any session.

from spark.source import register

register(session)
session.read.format("okmq").option("stream", "orders").load()
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from spark import reading, schemas, versions
from spark.options import OptionError, demand_batch, parse
from spark.readers import OkmqReader, OkmqStreamReader, PushedReader, UntoldStreamReader, columns
from spark.writing import OkmqStreamRowWriter, OkmqStreamWriter, OkmqWriter


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
        ``earliest`` (default of batch), ``latest`` (default of streaming, and refused of a batch), or a JSON object of
        stream names and first offsets, ``{"orders": 42}``, -2 for earliest, -1 (streaming only) for latest; a stream
        that it does not name starts at the earliest. A streaming query that continues from a checkpoint ignores it.
    ``endingOffsets``
        batch only: ``latest`` (default), or a JSON object of stream names and the first offset **not** to read
        (as in Spark's Kafka source), -1 for latest; a stream that it does not name ends at the latest.
    ``startingTimestamp``, ``endingTimestamp``
        RFC 3339 or unix ms, for all streams: the first message at or after it is the first to read, or (batch only) the
        first not to read. Each goes before the offsets above.
    ``startingOffsetsByTimestampStrategy``
        where a stream has nothing as new as ``startingTimestamp``: ``error`` (default), or ``latest`` to begin at
        its end.
    ``maxOffsetsPerTrigger``
        streaming only, from PySpark 4.2 on: most offsets in one micro-batch, shared by the streams in proportion to
        what waits. A batch ignores it, with a warning in Spark's log.
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

    def reader(self, schema: StructType) -> OkmqReader:
        options = parse(self.options)
        demand_batch(options)
        if options.max_offsets is not None:
            reading.warnings.warning(
                "Option maxOffsetsPerTrigger is for streaming queries; a batch ignores it."
            )
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
