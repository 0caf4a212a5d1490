"""An old history: what a compaction costs behind a long log of batches, and what a process keeps of that log."""

import gc
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from bench.measure import Figure
from spark.batches import Batch, HistoryFile
from spark.history import History, KnownBatches
from spark.jobs.rewrite import LEAST_FILES, SMALL_BYTES, compact
from spark.jobs.settings import JobSettings
from spark.session import build, end

ENTRIES = (2_000, 8_000)
"""About a day and a half, and five and a half days, of archive runs that each find something every minute."""

STREAM = "aaaaaaaaaaaa"
TURNS = 5


def log_of_batches() -> list[Figure]:
    """One stream; of each ``LEAST_FILES`` batches with a small file, a rewrite made a large one."""
    with tempfile.TemporaryDirectory(prefix="okmq-bench-log-") as name:
        settings = JobSettings(
            redis_url="unix:///nowhere", history_url=f"{name}/warm", spark_dir=Path(name, "spark")
        )
        session = build(settings.session)
        try:
            _behind(session, settings, entries=1)  # the session is warm then
            return [
                figure
                for entries in ENTRIES
                for figure in _behind(
                    session, replace(settings, history_url=f"{name}/{entries}"), entries=entries
                )
            ]
        finally:
            end()


def _behind(session: SparkSession, settings: JobSettings, *, entries: int) -> list[Figure]:
    _write_log(Path(settings.history_url, "_log"), entries)
    history, known = History(session, settings.history_url), KnownBatches()
    read_s = _took_s(lambda: known.refresh(history))
    idle_s = [_took_s(lambda: compact(session, settings, known=known)) for _ in range(TURNS)]
    _add_small(history, first=entries * 10)
    due_s = _took_s(lambda: compact(session, settings, known=known))
    of = f"a log of {entries:,} batches"
    return [
        Figure(name=f"{of}: read whole, once a process", reached=read_s, unit="s"),
        Figure(
            name=f"{of}: a compaction with nothing to do", reached=statistics.median(idle_s) * 1e3, unit="ms"
        ),
        Figure(name=f"{of}: a compaction of {LEAST_FILES} files", reached=due_s, unit="s"),
        Figure(name=f"{of}: kept of it in memory", reached=_kept_kib(history), unit="KiB"),
    ]


def _took_s(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _kept_kib(history: History) -> float:
    tracemalloc.start()
    known = KnownBatches()
    known.refresh(history)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 1024


def _write_log(log: Path, entries: int) -> None:
    """Entries whose files nobody reads, as there is nothing to do with them."""
    log.mkdir(parents=True)
    waiting: list[HistoryFile] = []
    for number in range(1, entries + 1):
        is_rewrite = len(waiting) == LEAST_FILES
        size = SMALL_BYTES if is_rewrite else 1_000
        first, last = (waiting[0].first, waiting[-1].last) if is_rewrite else (number * 10 - 9, number * 10)
        file = _file(number, first=first, last=last, size=size)
        batch = Batch(
            number=number,
            query="" if is_rewrite else "bench",
            batch_id=0 if is_rewrite else number,
            start={} if is_rewrite else {STREAM: first - 1},
            end={} if is_rewrite else {STREAM: last},
            files=[file],
            staging=f"_staging/{number:012d}-0a1b2c3d",
            written_ms=1_800_000_000_000 + number,
            removed=[each.path for each in waiting] if is_rewrite else [],
        )
        waiting = [] if is_rewrite else [*waiting, file]
        (log / f"{number:012d}.json").write_bytes(msgspec.json.encode(batch))
    (log / "HEAD").write_text(str(entries))


def _file(number: int, *, first: int, last: int, size: int) -> HistoryFile:
    return HistoryFile(
        path=f"workspace_id=1/stream_id={STREAM}/day=2026-01-01/{number:012d}-0.parquet",
        workspace_id=1,
        stream_id=STREAM,
        messages=10,
        bytes=size,
        first=first,
        last=last,
        first_ms=1_800_000_000_000,
        last_ms=1_800_000_000_000,
    )


def _add_small(history: History, *, first: int) -> None:
    """As many small files of another day as are put together."""
    at = datetime(2026, 1, 2, tzinfo=UTC).isoformat()
    rows = history.session.range(first, first + 1_600, 1, LEAST_FILES).selectExpr(
        "1 AS workspace_id",
        f"'{STREAM}' AS stream_id",
        "'bench' AS stream",
        "id AS offset",
        f"timestamp'{at}' AS timestamp",
        "cast(id AS string) AS id",
        "cast(NULL AS string) AS key",
        "cast(NULL AS map<string, string>) AS headers",
        "'1' AS body",
        "1L AS bytes",
    )
    history.append(rows, query="more", batch_id=0, start={STREAM: first - 1}, end={STREAM: first + 1_599})
