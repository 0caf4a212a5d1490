"""Exactly once into the history, whatever is cut off when."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark.batches import Batch
from spark.history import History
from spark.jobs import archive as job
from spark.jobs.archive import ArchiveProgress, Lacking, _ArchiveRun, archive
from spark.jobs.rewrite import Unwanted, erase
from spark.jobs.rollup import rollup
from spark.jobs.settings import JobSettings
from spark.positions import archive_backlog
from spark.source import register
from streams.log import config, keys, meta, trim
from tests.spark import crashes
from tests.spark.crashes import CrashPoint
from tests.spark.jobs import job_process
from tests.spark.published import Published, Row, rows
from tests.waiting import until

pytestmark = pytest.mark.spark

SLOW_TO_BEGIN = """#!/bin/sh
case "$*" in
  *python_streaming_source_runner*) [ -e {began} ] || {{ touch {began}; exit 0; }} ;;
esac
exec {python} "$@"
"""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several micro-batches and several files in a test of some hundred messages."""
    monkeypatch.setattr(job, "MAX_OFFSETS", 400)
    monkeypatch.setattr(job, "ROWS_PER_FILE", 150)


def archived(spark: SparkSession, settings: JobSettings) -> list[Row]:
    """What the log of batches says is in the history."""
    return rows(History(spark, settings.history_url).messages())


def on_disk(spark: SparkSession, settings: JobSettings) -> list[Row]:
    """What anybody finds who reads the folder without knowing of a log."""
    return rows(spark.read.parquet(settings.history_url))


@pytest.mark.usefixtures("small_batches")
def test_everything_is_archived_once_over_repeated_runs(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    first, second = published.stream("a"), published.stream("b")
    unwanted = published.stream("c", archive=False)
    published.numbered(first, 900, key="k")
    published.numbered(second, 100)
    published.numbered(unwanted, 10)
    progress = archive(spark, settings_of_job)
    assert (progress.messages, progress.offsets, progress.fraction) == (1000, 1000, 1.0)
    assert progress.batches == 3
    assert archive(spark, settings_of_job) == ArchiveProgress()
    published.numbered(first, 50, prefix="later")
    assert archive(spark, settings_of_job).messages == 50
    assert archived(spark, settings_of_job) == published.stored(first, second)
    assert on_disk(spark, settings_of_job) == published.stored(first, second)
    assert published.log.run(config.archived_of([first, second, unwanted])) == {
        first: 950,
        second: 100,
        unwanted: 0,
    }
    assert published.log.run(archive_backlog()) == 0


def test_files_stand_by_workspace_stream_and_day(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 10)
    archive(spark, settings_of_job)
    batch = History(spark, settings_of_job.history_url).last()
    assert batch is not None
    (file,) = batch.files
    assert file.path.startswith(f"workspace_id={published.workspace_id}/stream_id={stream}/day=2")
    assert (file.messages, file.first, file.last) == (10, 1, 10)
    assert (batch.start, batch.end) == ({stream: 0}, {stream: 10})


@pytest.fixture
def slow_to_begin(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An interpreter whose first process that is to read never says that it is there; a file tells that it was."""
    began, interpreter = tmp_path / "began", tmp_path / "python"
    interpreter.write_text(SLOW_TO_BEGIN.format(python=sys.executable, began=began))
    interpreter.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(interpreter))
        patch.setattr(spark.sparkContext, "pythonExec", str(interpreter))
        register(spark)
        yield began
    register(spark)


def test_the_folder_may_be_called_as_patterns_of_files_are_written(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, tmp_path: Path
) -> None:
    folder = tmp_path / "a [b] {c,d} * ?\\ %20 ö"
    (tmp_path / "a b c xy %20 ö").mkdir()
    settings = replace(settings_of_job, history_url=str(folder / "history"), spark_dir=folder / "spark")
    stream = published.stream("a")
    published.numbered(stream, 30)
    archive(spark, settings)
    assert archived(spark, settings) == published.stored(stream)
    published.numbered(stream, 5, prefix="more")
    archive(spark, settings)
    done = erase(spark, settings, stream_ids={stream}, unwanted=[Unwanted(name="1", offset=7)])
    assert done["1"].messages == 1
    assert archived(spark, settings) == [row for row in published.stored(stream) if row[1] != 7]


def test_a_process_that_is_not_there_in_time_is_begun_again(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, slow_to_begin: Path
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 20)
    assert archive(spark, settings_of_job).messages == 20
    assert slow_to_begin.exists()
    assert archived(spark, settings_of_job) == published.stored(stream)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("point", [crashes.HALF_IN_PLACE, crashes.NOT_PUBLISHED], ids=str)
def test_a_crash_between_spark_and_the_history_loses_and_doubles_nothing(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, point: CrashPoint
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 900)
    with point.armed(), pytest.raises(StreamingQueryException):
        archive(spark, settings_of_job)
    published.numbered(stream, 100, prefix="later")
    archive(spark, settings_of_job)
    assert archived(spark, settings_of_job) == published.stored(stream)
    assert on_disk(spark, settings_of_job) == published.stored(stream)
    assert published.log.run(config.archived_of([stream])) == {stream: 1000}


def test_a_killed_driver_loses_and_doubles_nothing(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, tmp_path: Path
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 5000)
    history = History(spark, settings_of_job.history_url)

    def has(number: int) -> Callable[[], bool]:
        return lambda: (last := history.last()) is not None and last.number >= number

    for reached in (1, 3):
        driver = job_process("archive", settings_of_job, tmp_path / "log", patch="job.MAX_OFFSETS = 1000")
        try:
            until(has(reached), within_s=120)
        finally:
            driver.kill()
            driver.wait()
    archive(spark, settings_of_job)
    assert archived(spark, settings_of_job) == published.stored(stream)
    assert on_disk(spark, settings_of_job) == published.stored(stream)


@pytest.mark.parametrize("log_forgets", [False, True])
def test_a_lost_checkpoint_doubles_nothing(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, log_forgets: bool
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 30)
    archive(spark, settings_of_job)
    shutil.rmtree(Path(settings_of_job.checkpoint_url))
    if log_forgets:
        counters = published.log.run(meta.counters_of([stream]))[stream]
        forgotten = msgspec.structs.replace(counters, archived=0)
        published.log.client.hset(keys.meta(stream), "counters", meta.pack(forgotten))
    published.numbered(stream, 20, prefix="later")
    archive(spark, settings_of_job)
    assert archived(spark, settings_of_job) == published.stored(stream)


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_history_that_begins_anew_gets_all_that_the_streams_hold(
    spark: SparkSession,
    published: Published,
    settings_of_job: JobSettings,
    tmp_path: Path,
    has_checkpoint: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 30)
    published.log.run(trim.purge(stream, below=6))
    archive(spark, settings_of_job)
    elsewhere = replace(settings_of_job, history_url=str(tmp_path / "another"))
    if not has_checkpoint:
        elsewhere = replace(elsewhere, spark_dir=tmp_path / "spark of another")
    published.numbered(stream, 20, prefix="later")
    for _ in range(2):
        archive(spark, elsewhere)
    assert [each.levelname for each in caplog.records if "it is another one" in each.message] == ["WARNING"]
    assert archived(spark, elsewhere) == published.stored(stream)
    assert published.log.run(config.archived_of([stream])) == {stream: 50}
    counted = rollup(spark, elsewhere, counted={stream: 30}, archived={stream: 50})
    assert counted.messages == 20, "what was counted before is not counted again"


def test_a_history_that_was_away_for_a_run_is_gone_on_with_where_it_ends(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    """As a disk that is not mounted: its place can be written by nobody, then it is back."""
    still, moving = published.stream("a"), published.stream("b")
    published.numbered(still, 30)
    published.numbered(moving, 30)
    archive(spark, settings_of_job)
    published.numbered(moving, 5, prefix="later")
    archive(spark, settings_of_job)
    history, away = Path(settings_of_job.history_url), Path(f"{settings_of_job.history_url}-away")
    history.rename(away)
    history.write_text("in the way")
    published.numbered(moving, 5, prefix="while away")
    for _ in range(2):
        with pytest.raises(Exception, match=r"ot a directory|ParentNotDirectory"):
            archive(spark, settings_of_job)
    assert published.log.run(config.archived_of([still, moving])) == {still: 30, moving: 35}
    history.unlink()
    away.rename(history)
    published.numbered(moving, 5, prefix="back")
    lacking: list[Lacking] = []
    archive(spark, settings_of_job, on_lacking=lacking.append)
    assert archived(spark, settings_of_job) == published.stored(still, moving)
    assert on_disk(spark, settings_of_job) == published.stored(still, moving)
    assert lacking == []


def test_a_history_that_is_back_after_another_was_begun_lacks_nothing_in_silence(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    """As a disk that was not mounted while the folder beneath it can be written."""
    kept, limited = published.stream("a"), published.stream("b")
    published.numbered(kept, 30)
    published.numbered(limited, 100)
    archive(spark, settings_of_job)
    history, away = Path(settings_of_job.history_url), Path(f"{settings_of_job.history_url}-away")
    history.rename(away)
    published.numbered(kept, 10, prefix="meanwhile")
    published.numbered(limited, 10, prefix="meanwhile")
    archive(spark, settings_of_job)
    published.log.run(trim.purge(limited, keep=5))
    shutil.rmtree(history)
    away.rename(history)
    published.numbered(kept, 10, prefix="back")
    published.numbered(limited, 10, prefix="back")
    lacking: list[Lacking] = []
    for _ in range(2):
        archive(spark, settings_of_job, on_lacking=lacking.append)
    assert lacking == [Lacking(stream_id=limited, first=101, last=105)]
    found = archived(spark, settings_of_job)
    assert [row[1] for row in found if row[0] == limited] == [*range(1, 101), *range(106, 121)]
    assert [row for row in found if row[0] == kept] == published.stored(kept)
    assert on_disk(spark, settings_of_job) == found
    assert published.log.run(config.archived_of([kept, limited])) == {kept: 50, limited: 120}


@pytest.mark.usefixtures("small_batches")
def test_a_history_that_goes_within_a_run_gets_no_batch_that_it_does_not_follow(
    spark: SparkSession,
    published: Published,
    settings_of_job: JobSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 900)
    history, away = Path(settings_of_job.history_url), Path(f"{settings_of_job.history_url}-away")
    real = _ArchiveRun._publish

    def going(run: _ArchiveRun, batch: Batch) -> None:
        real(run, batch)
        history.rename(away)

    with monkeypatch.context() as patched:
        patched.setattr(_ArchiveRun, "_publish", going)
        with pytest.raises(StreamingQueryException, match="another history"):
            archive(spark, settings_of_job)
    shutil.rmtree(history, ignore_errors=True)
    away.rename(history)
    archive(spark, settings_of_job)
    assert archived(spark, settings_of_job) == published.stored(stream)
    assert on_disk(spark, settings_of_job) == published.stored(stream)


def test_new_and_deleted_streams(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    first = published.stream("a")
    published.numbered(first, 30)
    kept = published.stored(first)
    archive(spark, settings_of_job)
    published.remove("a")
    again = published.stream("a")
    published.numbered(again, 20)
    archive(spark, settings_of_job)
    assert archived(spark, settings_of_job) == sorted(
        [*kept, *published.stored(again)], key=lambda row: row[:2]
    )


def test_an_archive_that_is_switched_off_and_on_goes_on_where_it_stopped(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 10)
    archive(spark, settings_of_job)
    published.stream("a", archive=False)
    published.numbered(stream, 10, prefix="off")
    assert archive(spark, settings_of_job).messages == 0
    published.stream("a")
    published.numbered(stream, 10, prefix="on")
    assert archive(spark, settings_of_job).messages == 20
    assert archived(spark, settings_of_job) == published.stored(stream)


def test_what_a_limit_removed_is_kept_and_what_a_person_took_is_not(
    spark: SparkSession, published: Published, settings_of_job: JobSettings
) -> None:
    stream = published.stream("a", max_messages=5)
    published.numbered(stream, 20)
    published.log.run(trim.apply_limits(stream))
    published.log.run(trim.drop(stream))
    published.delete(stream, [18])
    archive(spark, settings_of_job)
    assert [row[1] for row in archived(spark, settings_of_job)] == [n for n in range(1, 21) if n != 18]
    published.numbered(stream, 10, prefix="more")
    published.log.run(trim.purge(stream))
    archive(spark, settings_of_job)
    assert [row[1] for row in archived(spark, settings_of_job)] == [n for n in range(1, 26) if n != 18]
    assert published.log.run(config.archived_of([stream])) == {stream: 30}
