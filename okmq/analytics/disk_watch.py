"""Watches what Spark keeps on the disk while queries run, and ends the one that fills it before others have no room.

What does not fit into Spark's part of the heap it spills: a sort, a join or a window may put any amount on the disk
that streams are published to (docs/adr/0019).
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from okmq.analytics.heap_watch import RELIEF_S, Asking
from okmq.supervision.room import reserve_of

POLL_S = 0.5

RESERVES_FREE = 2
"""With less free than so many times the reserve, below which nothing is published, a query that holds much is ended."""

WORTH_IT_BYTES = 64 * 1024 * 1024
"""With less on the disk than this, to end a query would make no room."""

NARROW_IT = "narrow it by stream, key or time, or count and filter before it sorts, joins or takes a window."

NEARLY_FULL = f"The disk of this machine is nearly full, and it kept much there; make room, or {NARROW_IT}"

log = logging.getLogger(__name__)


class DiskWatch:
    """Has a thread while there is a query; safe to share.

    Attributes:
        most_bytes: that queries may keep on the disk at once.
        reserve_bytes: of the disk, below which nothing is published; None for that of the private store.
    """

    def __init__(self, *, most_bytes: int, reserve_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self.reserve_bytes = reserve_bytes
        self._changed = threading.Condition()
        self._asking: list[Asking] = []  # the oldest first
        self._thread: threading.Thread | None = None
        self._is_cleared = False

    @contextmanager
    def over(self, asking: Asking) -> Iterator[None]:
        """Watch a query while this lasts."""
        with self._changed:
            self._asking.append(asking)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="disk", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._asking.remove(asking)
                self._changed.notify_all()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._asking:
                    self._thread = None
                    return
                self._changed.wait(POLL_S)
            try:
                self._look()
            except Exception:  # or nobody would watch any more
                log.exception("Spark's files could not be looked at.")

    def _look(self) -> None:
        """End a query where there is too much on the disk, also of what is needed."""
        from spark import folders

        why = self._why_to_end()
        if why is None:
            self._is_cleared = False
        elif self._is_cleared:
            self._end_one(why)
        else:
            folders.clear()
            self._is_cleared = True  # what nobody needs has gone when it is looked at again

    def _why_to_end(self) -> str | None:
        """A sentence for who asked; None where there is room."""
        from spark import folders

        held, disk = folders.held_bytes(), folders.disk()
        if held > self.most_bytes:
            return (
                f"It kept more than {shown(self.most_bytes)} on the disk at once; {NARROW_IT} "
                "OKMQ_SQL_DISK allows more."
            )
        if disk is None or held < WORTH_IT_BYTES:
            return None
        total, free = disk
        reserve = reserve_of(total) if self.reserve_bytes is None else self.reserve_bytes
        return NEARLY_FULL if free < RESERVES_FREE * reserve else None

    def _end_one(self, why: str) -> None:
        from spark import folders, watching

        with self._changed:
            found = [each for each in self._asking if not each.course.is_over]
        if not found:
            return
        asking = found[0] if len(found) == 1 else _largest(found)
        asking.fills_disk, asking.course.is_over = why, True
        watching.cancel(asking.group)
        log.info("%s is ended: %s are on the disk.", asking.group, shown(folders.held_bytes()))
        asking.is_gone.wait(RELIEF_S)
        folders.clear()


def shown(size_bytes: int) -> str:
    """``10 GiB``."""
    unit, size = ("GiB", 2**30) if size_bytes >= 2**30 else ("MiB", 2**20)
    return f"{size_bytes / size:.4g} {unit}"


def _largest(found: list[Asking]) -> Asking:
    """The one whose tasks have put most on the disk; where nobody tells, the youngest."""
    from spark.folders import written

    bytes_of = written([each.group for each in found])
    return max(reversed(found), key=lambda each: bytes_of.get(each.group, 0))
