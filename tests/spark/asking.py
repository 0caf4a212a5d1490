"""Asks queries as the analytics process does, beside streams of a test's own."""

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from spark import query
from spark.history import History, KnownBatches
from spark.jobs import archive as job
from spark.jobs.settings import JobSettings
from spark.positions import positions
from spark.query import Answer
from spark.source import register
from spark.tables import COLUMNS, Seen
from streams.log import config
from tests.spark.published import Published


def nothing_counted(table: str) -> pa.Table:
    """A table of what was counted, with no row."""
    kinds = {"string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC"), "double": pa.float64()}
    columns = [("stream_id", "string"), *COLUMNS[table][1:]]
    return pa.schema([(name, kinds.get(kind, pa.int64())) for name, kind in columns]).empty_table()


class Asker:
    """Asks as somebody who sees every stream of one workspace, unless told otherwise."""

    def __init__(self, spark: SparkSession, published: Published, settings: JobSettings) -> None:
        self.spark = spark
        self.published = published
        self.settings = settings
        self.known = KnownBatches()
        self.rollups, self.groups = nothing_counted("rollups"), nothing_counted("groups")
        self.steps_of: dict[str, list[str]] = {}
        """Which steps the last query was brought, by table."""

    def __call__(self, sql: str, *, limit: int = 10_000, only: str | None = None) -> list[Any]:
        """The rows, decoded."""
        return [json.loads(row) for row in self.answer(sql, limit=limit, only=only).rows]

    def answer(self, sql: str, *, limit: int = 10_000, only: str | None = None) -> Answer:
        registered = self.published.log.run(config.streams())
        seen = Seen(
            streams=[each for each in registered if self._is_shown(each, only)],
            metrics_stream=next((each for each in registered if each.internal), None),
            rollups=lambda steps: self._brought("rollups", self.rollups, steps),
            groups=lambda steps: self._brought("groups", self.groups, steps),
        )
        return query.ask(self.spark, self.settings, sql, seen=seen, known=self.known, limit=limit)

    def _brought(self, table: str, counted: pa.Table, steps: Collection[str]) -> pa.Table:
        self.steps_of[table] = sorted(steps)
        return counted.filter(pc.is_in(counted["step"], pa.array(steps, pa.string())))

    def _is_shown(self, stream: config.Registered, only: str | None) -> bool:
        mine = stream.workspace_id == self.published.workspace_id and not stream.internal
        return mine and only in {None, stream.name}

    def archive(self) -> None:
        """Take what is there into the history as the job does, by a batch read: its streaming query starts slowly."""
        log = self.published.log
        register(self.spark)
        names = {each.stream_id: each.name for each in log.run(config.streams()) if each.archive}
        before = log.run(positions(names))
        below = json.dumps({names[stream_id]: at.last + 1 for stream_id, at in before.items()})
        reader = self.spark.read.format("okmq").options(**job.options(self.settings))
        rows = reader.option("endingOffsets", below).load()
        history = History(self.spark, self.settings.history_url)
        history.append(
            rows,
            query="tests",
            batch_id=len(list(history.archived())),
            start={stream_id: at.archived for stream_id, at in before.items() if at.last > at.archived},
            end={stream_id: at.last for stream_id, at in before.items() if at.last > at.archived},
        )
        for stream_id, at in before.items():
            log.run(config.archived_set(stream_id, at.last))
