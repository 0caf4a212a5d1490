"""What Spark keeps on this machine's disk while it works: shuffles, what it spills, and broadcasts of all that runs."""

import gc
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from spark import session
from spark.watching import built_context, stages_of


def held_bytes() -> int:
    """What the files of this process's Spark come to."""
    return sum(_bytes_in(each) for each in session.folders())


def disk() -> tuple[int, int] | None:
    """Bytes of the disk that they lie on: of all, and those that are free; None where there is no Spark."""
    for each in session.folders():
        usage = shutil.disk_usage(each)
        return usage.total, usage.free
    return None


def written(groups: Collection[str]) -> Mapping[str, int]:
    """Bytes that the tasks of each group of jobs have put on the disk, as of Spark's last heartbeat some seconds ago.

    Empty where Spark does not tell.
    """
    context = built_context()
    if context is None:
        return {}
    try:
        return {
            group: sum(_written_of(context, stage) for stage in stages_of(context, group)) for group in groups
        }
    except (Py4JError, OSError):
        return {}


def clear() -> None:
    """Have Spark remove the files of what nobody refers to any more; it does so a moment later.

    It learns that from Java's collector, which runs when the heap fills, whatever the disk does.
    """
    context = built_context()
    if context is None:
        return
    gc.collect()  # what is not referred to here any more is not referred to there
    try:
        jvm: Any = context._jvm
        jvm.java.lang.System.gc()
    except (Py4JError, OSError):
        return  # the JVM has just gone, and they with it


def _written_of(context: SparkContext, stage: int) -> int:
    status: Any = context._jsc.sc().statusStore()
    try:
        data = status.lastStageAttempt(stage)
    except Py4JJavaError:
        return 0  # so many came after it that Spark has forgotten it
    return int(data.diskBytesSpilled()) + int(data.shuffleWriteBytes())


def _bytes_in(folder: Path | os.DirEntry[str]) -> int:
    """What lies below a folder; what goes while it is looked at is not counted."""
    found = 0
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    found += _bytes_in(each)
                else:
                    found += _size(each)
    except FileNotFoundError:
        pass
    return found


def _size(file: os.DirEntry[str]) -> int:
    try:
        return file.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0
