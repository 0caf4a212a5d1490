"""What Spark is doing for some of its jobs, and ending them; asked from another thread than the one that waits.

A query's jobs are a group. A run's bear a tag: threads that begin in its own have it, too, such as that of the
archive's streaming query, which names a group of its own.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

_TASK = re.compile(r"in stage (\d+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Spark's stages and tasks, as far as it has planned them. What it passes over, having it already, is done."""

    stages: int = 0
    stages_done: int = 0
    tasks: int = 0
    tasks_done: int = 0


def built_context() -> SparkContext | None:
    """This process's context; None also while another thread is building it, when it lacks what it is asked through."""
    context = SparkContext._active_spark_context
    return None if getattr(context, "_jsc", None) is None else context


def untag(tag: str) -> None:
    """Let the jobs of this thread that come now no longer bear a tag."""
    context = built_context()
    if context is not None:
        try:
            context.removeJobTag(tag)
        except (Py4JError, OSError):
            return  # the JVM has gone, and the thread with it


class Tagged:
    """Watches the jobs with a tag; of what is over it remembers the numbers, as Spark does not for ever."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._over: dict[int, int] = {}
        self._jobs_over: set[int] = set()

    def work(self) -> Work:
        """What Spark has done and has to do for them; nothing before there is any."""
        context = built_context()
        if context is not None:
            try:
                jsc: Any = context._jsc
                jobs = set(jsc.sc().statusTracker().getJobIdsForTag(self._tag)) - self._jobs_over
                return _work(context, jobs, over=self._over, jobs_over=self._jobs_over)
            except (Py4JError, OSError):
                pass  # the JVM has just gone
        return _sum(self._over, {})


def progress(group: str) -> float:
    """The part of the tasks planned so far that are done, 0 to 1; 0 while there is none."""
    context = built_context()
    if context is None:
        return 0.0
    try:
        jobs = context.statusTracker().getJobIdsForGroup(group)
        found = _work(context, jobs, over={}, jobs_over=set())
    except (Py4JError, OSError):
        return 0.0  # the JVM has just gone
    return found.tasks_done / found.tasks if found.tasks else 0.0


def cancel(group: str) -> None:
    """Tell the jobs of a group to end, and their tasks."""
    context = built_context()
    if context is not None:
        try:
            context.cancelJobGroup(group)
        except (Py4JError, OSError):
            return  # the JVM has just gone, and they with it


def tasks_left(group: str) -> bool:
    """Whether a thread of this machine still works on a task of the group; Spark forgets it when it tells it to end."""
    context = built_context()
    if context is None:
        return False
    try:
        stages = set(stages_of(context, group))
        jvm: Any = context._jvm
        threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
        names = [str(thread.getName()) for thread in threads]
    except (Py4JError, OSError):
        return False
    return any(int(found[1]) in stages for name in names if (found := _TASK.search(name)))


def _work(context: SparkContext, jobs: Iterable[int], *, over: dict[int, int], jobs_over: set[int]) -> Work:
    """What jobs come to, each stage once, though several may name it.

    Args:
        over: stage → tasks, of jobs that are over; grows with those that are now, as ``jobs_over`` does.
    """
    tracker = context.statusTracker()
    under_way: dict[int, tuple[int, int]] = {}
    for job_id in jobs:
        job = tracker.getJobInfo(job_id)
        for stage_id in () if job is None else job.stageIds:
            stage = tracker.getStageInfo(stage_id)
            planned, done = (0, 0) if stage is None else (stage.numTasks, stage.numCompletedTasks)
            if job is not None and job.status != "RUNNING":
                over[stage_id] = planned
            else:
                under_way[stage_id] = planned, done
        if job is not None and job.status != "RUNNING":
            jobs_over.add(job_id)
    return _sum(over, under_way)


def _sum(over: Mapping[int, int], under_way: Mapping[int, tuple[int, int]]) -> Work:
    still = [each for stage_id, each in under_way.items() if stage_id not in over]
    return Work(
        stages=len(over) + len(still),
        stages_done=len(over) + sum(0 < planned <= done for planned, done in still),
        tasks=sum(over.values()) + sum(planned for planned, _ in still),
        tasks_done=sum(over.values()) + sum(done for _, done in still),
    )


def stages_of(context: SparkContext, group: str) -> list[int]:
    """The stages of the jobs of a group that Spark still knows."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return sorted({stage for job in jobs if job is not None for stage in job.stageIds})
