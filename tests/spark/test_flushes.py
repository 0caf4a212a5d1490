"""What the history has is on the disk before anybody counts on it: a power cut takes only what was not told."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark.batches import Batch
from spark.history import History
from spark.jobs import rewrite
from spark.jobs.archive import _ArchiveRun, archive
from spark.jobs.settings import JobSettings
from tests.spark.crashes import HALF_IN_PLACE, NOT_COUNTING, CrashPoint
from tests.spark.published import Published

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Flush:
    """One call to the disk: of which file or folder, what this names, and what files the history had then."""

    inode: int
    path: Path
    names: frozenset[str]
    there: frozenset[Path]


@dataclass
class Flushes:
    """What was flushed, in order, and what was told in between."""

    folder: Path
    seen: list[Flush] = field(default_factory=list)
    told_at: list[int] = field(default_factory=list)

    def note(self, number: int) -> None:
        found = os.fstat(number)
        names = os.listdir(number) if S_ISDIR(found.st_mode) else []
        there = self.folder.glob("workspace_id=*/**/*.parquet")
        path = Path(f"/proc/self/fd/{number}").readlink()
        self.seen.append(Flush(found.st_ino, path, frozenset(names), frozenset(there)))

    def held(self, path: Path) -> int:
        """When what a file holds was flushed, whatever it was called then, with its checksum."""
        inodes = [file.stat().st_ino for file in (path, path.with_name(f".{path.name}.crc"))]
        return max(next(n for n, each in enumerate(self.seen) if each.inode == inode) for inode in inodes)

    def named(self, path: Path) -> int:
        """When its name was flushed, with those of the folders that it lies in."""
        steps = [step for step in (path, *path.parents) if step.is_relative_to(self.folder)]
        return max(
            next(
                n
                for n, each in enumerate(self.seen)
                if (each.path, step.name in each.names) == (step.parent, True)
            )
            for step in steps
        )

    def gone(self, path: Path, *, after: int) -> int:
        """When it was flushed that there is no file called so any more."""
        return next(
            n
            for n, each in enumerate(self.seen)
            if n > after and each.path == path.parent and path.name not in each.names
        )

    def check(self, batch: Batch) -> int:
        """When a batch counted for good; its files were on the disk and in their places before."""
        entry = self.folder / f"_log/{batch.number:012d}.json"
        counts = self.named(entry)
        assert self.held(entry) < counts
        for file in batch.files:
            assert self.held(self.folder / file.path) < self.held(entry)
            assert self.named(self.folder / file.path) < counts
        return counts


@pytest.fixture
def flushes(settings_of_job: JobSettings, monkeypatch: pytest.MonkeyPatch) -> Flushes:
    noted, flush = Flushes(Path(settings_of_job.history_url)), os.fsync
    tell = _ArchiveRun._tell

    def noting(number: int) -> None:
        flush(number)
        noted.note(number)

    def telling(run: _ArchiveRun, ends: Mapping[str, int], **how: Any) -> None:
        if ends:
            noted.told_at.append(len(noted.seen))
        tell(run, ends, **how)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(_ArchiveRun, "_tell", telling)
    return noted


def newest(spark: SparkSession, settings: JobSettings) -> Batch:
    found = History(spark, settings.history_url).last()
    assert found is not None
    return found


def test_a_batch_is_on_the_disk_before_the_log_is_told_of_it(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, flushes: Flushes
) -> None:
    for name in ("a", "b"):
        published.numbered(published.stream(name), 50)
    archive(spark, settings_of_job)
    batch = newest(spark, settings_of_job)
    assert len(batch.files) == 2
    (told_at,) = flushes.told_at
    assert flushes.check(batch) < told_at


@pytest.mark.parametrize("what", ["compaction", "erasure"])
def test_what_is_written_anew_is_on_the_disk_before_what_was_there_is_removed(
    spark: SparkSession,
    published: Published,
    settings_of_job: JobSettings,
    flushes: Flushes,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    monkeypatch.setattr(rewrite, "LEAST_FILES", 2)
    stream = published.stream("a")
    for prefix in ("first", "second"):
        published.numbered(stream, 50, prefix=prefix, key="k")
        archive(spark, settings_of_job)
    rewritten: dict[str, Callable[[], Any]] = {
        "compaction": lambda: rewrite.compact(spark, settings_of_job),
        "erasure": lambda: rewrite.erase(
            spark,
            settings_of_job,
            stream_ids={stream},
            unwanted=[rewrite.Unwanted(name="1", key="k.1")],
        ),
    }
    flushes.seen.clear()
    rewritten[what]()
    batch = newest(spark, settings_of_job)
    assert batch.is_rewrite
    before = {flushes.folder / path for path in batch.removed}
    assert len(before) == 2
    counts = flushes.check(batch)
    assert before <= flushes.seen[counts].there
    for path in before:
        assert flushes.gone(path, after=counts)


@pytest.mark.parametrize("point", [NOT_COUNTING, HALF_IN_PLACE], ids=str)
def test_a_batch_that_was_cut_off_is_in_its_place_on_the_disk_before_it_counts(
    spark: SparkSession,
    published: Published,
    settings_of_job: JobSettings,
    flushes: Flushes,
    point: CrashPoint,
) -> None:
    for name in ("a", "b"):
        published.numbered(published.stream(name), 50)
    with point.armed(), pytest.raises(StreamingQueryException):
        archive(spark, settings_of_job)
    assert flushes.told_at == []
    archive(spark, settings_of_job)
    assert flushes.check(newest(spark, settings_of_job)) < flushes.told_at[0]
