"""Watches Spark's heap while queries run, and ends the one that fills it before others have no room.

Spark spills to disk what it sorts, joins and counts, within a part of the heap of its own. What an aggregate keeps it
does not: that grows until the heap is full, and everything on this machine shares it (docs/adr/0019).
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from okmq.analytics.shared_spark import SharedSpark

if TYPE_CHECKING:
    from spark.query import Course

MOST_HELD, MOST_HELD_OF_MANY = 0.95, 0.75
"""The part of the heap that a collection may leave in use, and where a query keeps the rows that a join makes. A
``collect_list`` of ten million keys holds 0.93 of 1 GB for a while, and is answered. What a cross join makes fills the
rest within a second, two collections; it is better told before."""

PRESSING, ALARMING = 0.75, 0.5
"""From here on others may have no memory for a while; from here on it is looked at more often."""

POLL_S = 0.25
ALARMED_POLL_S = 0.05

RELIEF_S = 15.0
"""How long it is waited for a query that was told to end, before another is: then Spark has been ended with it."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Asking:
    """A query that Spark may be working on.

    Attributes:
        is_too_large: it was ended, for what it keeps.
        fills_disk: why it was ended, a sentence, for what Spark keeps of it on the disk.
        met: the most that another query keeps that ran beside it.
        is_gone: it is over.
    """

    group: str
    course: "Course"
    is_too_large: bool = False
    fills_disk: str = ""
    met: int = 0
    is_gone: threading.Event = field(default_factory=threading.Event)

    @property
    def is_ended(self) -> bool:
        """Whether a watch has ended it."""
        return self.is_too_large or bool(self.fills_disk)


class HeapWatch:
    """Has a thread while there is a query; safe to share."""

    def __init__(self, spark: SharedSpark) -> None:
        self._spark = spark
        self._changed = threading.Condition()
        self._asking: list[Asking] = []  # the oldest first
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, group: str, course: "Course") -> Iterator[Asking]:
        """Watch a query while this lasts.

        Args:
            group: of its jobs.
        """
        asking = Asking(group, course)
        with self._changed:
            self._asking.append(asking)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="heap", daemon=True)
                self._thread.start()
        try:
            yield asking
        finally:
            with self._changed:
                self._note_meetings()
                self._asking.remove(asking)
                self._changed.notify_all()
            asking.is_gone.set()

    def is_innocent(self, asking: Asking) -> bool:
        """Whether one ran beside a query that had no memory that keeps more rows than this, as far as is known."""
        with self._changed:
            self._note_meetings()
        return asking.met > asking.course.keeps

    def _note_meetings(self) -> None:
        for each in self._asking:
            each.met = max([each.met, *(other.course.keeps for other in self._asking if other is not each)])

    def _serve(self) -> None:
        from spark.heap import Heap

        heap, wait_s = Heap(), POLL_S
        while True:
            with self._changed:
                if not self._asking:
                    self._thread = None
                    return
                self._changed.wait(wait_s)
            try:
                held = heap.held()
                if held is None:
                    continue
                wait_s = ALARMED_POLL_S if held > ALARMING else POLL_S
                if held > PRESSING and self._relieve(held):
                    heap.held()  # what was collected before it had gone
            except Exception:  # or nobody would watch any more
                log.exception("Spark's heap could not be looked at.")

    def _relieve(self, held: float) -> bool:
        """End the query that most likely fills the heap, where it is full; whether there was one."""
        from spark import watching
        from spark.growth import Keeps

        found = self._keeping_most()
        if not found:
            return False
        self._spark.note_pressure()
        if held < (MOST_HELD_OF_MANY if found[0].course.keeps is Keeps.MANY else MOST_HELD):
            return False
        asking = self._largest(found)
        asking.is_too_large = asking.course.is_over = True
        watching.cancel(asking.group)
        log.info("%s is ended: %.0f %% of Spark's heap are held.", asking.group, 100 * held)
        asking.is_gone.wait(RELIEF_S)
        return True

    def _keeping_most(self) -> list[Asking]:
        """The queries that keep most, as far as is known; the oldest first."""
        with self._changed:
            found = [each for each in self._asking if not each.course.is_over]
        most = max((each.course.keeps for each in found), default=0)
        return [each for each in found if each.course.keeps == most]

    def _largest(self, found: list[Asking]) -> Asking:
        """The one whose tasks take most; where nobody tells, the youngest."""
        if len(found) == 1:
            return found[0]
        from spark.heap import taken

        bytes_of = taken([each.group for each in found])
        return max(reversed(found), key=lambda each: bytes_of.get(each.group, 0))
