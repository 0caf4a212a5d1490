"""Asks queries as the analytics process does, beside streams of a test's own."""

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from spark import query
from spark.history import History, KnownBatches
from spark.jobs import archive as job
from spark.jobs.settings import JobSettings
from spark.positions import positions
from spark.query import Answer
from spark.source import register
from spark.tables import Seen
from streams.log import config
from tests.spark.published import Published


class Asker:
    """Asks as somebody who sees every stream of one workspace, unless told otherwise."""

    def __init__(self, spark: SparkSession, published: Published, settings: JobSettings) -> None:
        self.spark = spark
        self.published = published
        self.settings = settings
        self.known = KnownBatches()
        self.rollups = self.groups = pa.table({"stream_id": pa.array([], pa.string())})

    def __call__(self, sql: str, *, limit: int = 10_000, only: str | None = None) -> list[Any]:
        """The rows, decoded."""
        return [json.loads(row) for row in self.answer(sql, limit=limit, only=only).rows]

    def answer(self, sql: str, *, limit: int = 10_000, only: str | None = None) -> Answer:
        registered = self.published.log.run(config.streams())
        seen = Seen(
            streams=[each for each in registered if self._is_shown(each, only)],
            metrics_stream=next((each for each in registered if each.internal), None),
            rollups=lambda: self.rollups,
            groups=lambda: self.groups,
        )
        return query.ask(self.spark, self.settings, sql, seen=seen, known=self.known, limit=limit)

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
