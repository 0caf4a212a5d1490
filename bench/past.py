"""Spark beside plain reading: the source against an XRANGE loop that builds Arrow, and the archive."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.measure import Figure
from bench.product import Product
from bench.store_load import fill
from spark.jobs.archive import archive
from spark.jobs.settings import JobSettings
from spark.session import SessionSettings, build, end
from streams.log import keys

MESSAGES = 1_000_000
PAGE = 1000
TURNS = 3
SCHEMA = "offset long, timestamp timestamp, id string, body string"


def past(ours: Product, *, messages: int = MESSAGES) -> list[Figure]:
    """The session is warm: each was run once before. The bare loop and the source take turns."""
    cores = os.cpu_count() or 1
    streams = [ours.stream() for _ in range(2)]
    (name, stream_id), _ = streams
    with tempfile.TemporaryDirectory(prefix="okmq-bench-spark-") as folder:
        session = build(SessionSettings(folder=Path(folder) / "spark", master=f"local[{cores}]"))
        settings = JobSettings(
            redis_url=ours.keeper_url, history_url=f"{folder}/history", spark_dir=Path(folder) / "spark"
        )
        try:
            fill(ours.keeper_url, stream_id, messages=messages)
            archive(session, settings)
            _read(session, ours, name, tasks=cores)
            turns = [
                (
                    _rate(lambda: _bare(ours.keeper_url, keys.log(stream_id)), messages),
                    _rate(lambda: _read(session, ours, name, tasks=cores), messages),
                )
                for _ in range(TURNS)
            ]
            fill(ours.keeper_url, streams[1][1], messages=messages)
            archived = _rate(lambda: archive(session, settings).messages, messages)
        finally:
            end()
    for made, _ in streams:
        ours.drop(made)
    ratio = statistics.median(read / (bare * cores) for bare, read in turns)
    return [
        Figure(
            name=f"XRANGE and Arrow in one process, {messages:,} messages",
            reached=statistics.median(bare for bare, _ in turns),
            unit="messages/s",
        ),
        Figure(
            name=f"Spark's source in {cores} tasks",
            reached=statistics.median(read for _, read in turns),
            unit="messages/s",
        ),
        Figure(name=f"the source against the loop × {cores}", reached=ratio, unit="of it", at_least=0.7),
        Figure(
            name=f"archive of {messages:,} into Parquet, the whole run",
            reached=archived,
            unit="messages/s",
            at_least=60_000,
        ),
    ]


def _rate(work: Callable[[], int], messages: int) -> float:
    began = time.perf_counter()
    done = work()
    took = time.perf_counter() - began
    if done != messages:
        raise RuntimeError(f"{done} messages were read where there are {messages}.")
    return messages / took


def _bare(url: str, log_key: str) -> int:
    """Page after page through redis-py, each as one record batch of the same four columns."""
    client: Any = redis.Redis.from_url(url)
    client.set_response_callback("XRANGE", lambda reply, **_: reply)  # as hiredis gives it, without dicts
    rows: int = 0
    start = "-"
    while True:
        page = client.execute_command("XRANGE", log_key, start, "+", "COUNT", PAGE)
        positions = [entry[0].split(b"-") for entry in page]
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array([int(offset) for offset, _ in positions], pa.int64()),
                pa.array([int(unix_ms) for _, unix_ms in positions], pa.timestamp("ms", tz="UTC")),
                pa.array([entry[1][1] for entry in page], pa.string()),
                pa.array([entry[1][3] for entry in page], pa.string()),
            ],
            ["offset", "timestamp", "id", "body"],
        )
        rows += len(batch)
        if len(page) < PAGE:
            client.close()
            return rows
        start = f"({page[-1][0].decode()}"


def _read(session: SparkSession, ours: Product, name: str, *, tasks: int) -> int:
    """All messages of the stream through Spark, each column looked at."""
    frame = (
        session.read.format("okmq")
        .options(url=ours.keeper_url, stream=name, minPartitions=str(tasks), rowsPerPartition="1000000")
        .schema(SCHEMA)
        .load()
    )
    looked_at = frame.agg(
        sf.count(sf.lit(1)).alias("messages"),
        sf.max("offset"),
        sf.max("timestamp"),
        sf.sum(sf.length("id")),
        sf.sum(sf.length("body")),
    )
    (found,) = looked_at.collect()
    messages: int = found.messages
    return messages
