"""What Spark is doing for one group of jobs, and ending it; asked from another thread than the one that waits."""

import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

_TASK = re.compile(r"in stage (\d+)\.")


def progress(group: str) -> float:
    """The part of the tasks planned so far that are done, 0 to 1; 0 while there is none."""
    context = SparkContext._active_spark_context
    if context is None:
        return 0.0
    done = planned = 0
    try:
        tracker = context.statusTracker()
        for stage_id in _stages(context, group):
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done, planned = done + stage.numCompletedTasks, planned + stage.numTasks
    except (Py4JError, OSError):
        return 0.0  # the JVM has just gone
    return done / planned if planned else 0.0


def cancel(group: str) -> None:
    """Tell the jobs of a group to end, and their tasks."""
    context = SparkContext._active_spark_context
    if context is not None:
        try:
            context.cancelJobGroup(group)
        except (Py4JError, OSError):
            return  # the JVM has just gone, and they with it


def tasks_left(group: str) -> bool:
    """Whether a thread of this machine still works on a task of the group; Spark forgets it when it tells it to end."""
    context = SparkContext._active_spark_context
    if context is None:
        return False
    try:
        stages = set(_stages(context, group))
        jvm: Any = context._jvm
        threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
        names = [str(thread.getName()) for thread in threads]
    except (Py4JError, OSError):
        return False
    return any(int(found[1]) in stages for name in names if (found := _TASK.search(name)))


def _stages(context: SparkContext, group: str) -> list[int]:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return sorted({stage for job in jobs if job is not None for stage in job.stageIds})
