"""The heap of Spark's driver, which all that runs on one machine shares: how much of it is held, and by whom.

What is in use says little: it grows until it is collected. What a collection of the old generation left says what is
held; Java keeps that for each pool, and counts the collections.
"""

import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from spark.watching import built_context, stages_of

COLLECTOR = "MarkSweepCompact"
"""What the serial collector, which ``spark.session`` asks for, calls a collection of the whole heap."""

SAMPLED_S = 0.1
"""How long it is looked at who takes new memory."""

_TASK_OF_THREAD = re.compile(r'"[^"\n]*in stage (\d+)\.[^"\n]*"[^\n]*? Id=(\d+) ')


class Heap:
    """Tells after each collection of the whole heap, once, how much it left; of each JVM that comes after another."""

    def __init__(self) -> None:
        self._of: SparkContext | None = None
        self._pools: list[Any] = []
        self._collector: Any = None
        self._collections = 0
        self._bytes = 1

    def held(self) -> float | None:
        """The part of the heap that was in use after the newest collection, 0 to 1; None while there was no other."""
        context = built_context()
        if context is None:
            return None
        try:
            if context is not self._of:
                self._find(context)
                return None
            collections = int(self._collector.getCollectionCount())
            if collections == self._collections:
                return None
            self._collections = collections
            return sum(int(pool.getCollectionUsage().getUsed()) for pool in self._pools) / self._bytes
        except (Py4JError, OSError):
            return None  # the JVM has just gone

    def _find(self, context: SparkContext) -> None:
        beans: Any = context._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
        self._pools = [each for each in beans.getMemoryPoolMXBeans() if str(each.getType()) == "Heap memory"]
        self._collector = next(
            each for each in beans.getGarbageCollectorMXBeans() if each.getName() == COLLECTOR
        )
        self._bytes = sum(int(pool.getUsage().getMax()) for pool in self._pools)
        self._collections = int(self._collector.getCollectionCount())
        self._of = context


def taken(groups: Collection[str]) -> Mapping[str, int]:
    """Bytes that the tasks of each group of jobs take anew in a short while, freed or not; empty where nobody tells."""
    context = built_context()
    if context is None:
        return {}
    try:
        group_of = {stage: group for group in groups for stage in stages_of(context, group)}
        before = _taken_by_stage(context)
        time.sleep(SAMPLED_S)
        after = _taken_by_stage(context)
    except (Py4JError, OSError):
        return {}
    found = dict.fromkeys(groups, 0)
    for of, taken_bytes in after.items():
        if of in before and of[0] in group_of:
            found[group_of[of[0]]] += taken_bytes - before[of]
    return found


def _taken_by_stage(context: SparkContext) -> dict[tuple[int, int], int]:
    """Stage and thread → the bytes that a thread has ever taken, of those that work on a task."""
    jvm: Any = context._jvm
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    ids = threads.getAllThreadIds()
    # Each as one text: to ask thread by thread takes a while, and the heap fills.
    names = str(jvm.scala.runtime.ScalaRunTime.stringOf(threads.getThreadInfo(ids)))
    sizes = str(jvm.java.util.Arrays.toString(threads.getThreadAllocatedBytes(ids)))
    of = str(jvm.java.util.Arrays.toString(ids))
    size_of = dict(zip(_numbers(of), _numbers(sizes), strict=True))
    return {
        (int(stage), int(thread)): size_of[int(thread)] for stage, thread in _TASK_OF_THREAD.findall(names)
    }


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.strip("[]").split(",")]
