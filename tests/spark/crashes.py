"""The moments at which a batch of the archive may be cut off, each as an exception in its place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from spark.files import Files
from spark.history import HEAD, PENDING, History
from spark.jobs.archive import _ArchiveRun
from streams.models import Erasure


class Crash(Exception):
    """Stands for the end of the process."""


@dataclass(frozen=True)
class CrashPoint:
    """Just before this call, where its arguments are those meant."""

    what: str
    owner: type
    method: str
    when: Callable[..., bool]

    def __str__(self) -> str:
        return self.what

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Crash there, as long as this lasts."""
        real = getattr(self.owner, self.method)
        when = self.when

        def crashing(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if when(*args, **kwargs):
                raise Crash(self.what)
            return real(owner, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.owner, self.method, crashing)
            yield


NOT_WRITTEN = CrashPoint("not-written", History, "_write_aside", lambda *_, **__: True)
NOT_PENDING = CrashPoint("written-not-pending", Files, "write", lambda path, _: path == PENDING)
HALF_IN_PLACE = CrashPoint(
    "half-of-the-files-in-place",
    Files,
    "rename",
    lambda _, target: "stream_id=" in target and target.endswith("-1.parquet"),
)
NOT_COUNTING = CrashPoint("in-place-not-counting", Files, "rename", lambda source, _: source == PENDING)
OLD_HEAD = CrashPoint("counting-with-an-old-head", Files, "replace", lambda path, _: path == HEAD)
NOT_REMOVED = CrashPoint(
    "counting-and-nothing-removed",
    Files,
    "delete",
    lambda path: path.endswith(".parquet"),
)
HALF_REMOVED = CrashPoint("half-removed", Files, "delete", lambda path: path.endswith("2-0.parquet"))
NOT_PUBLISHED = CrashPoint(
    "counting-but-spark-does-not-know", _ArchiveRun, "_publish", lambda batch: batch.number == 2
)
NOT_NOTED = CrashPoint(
    "erased-and-not-noted", Erasure, "save", lambda *, update_fields: "messages" in update_fields
)

WITHIN_A_BATCH = [NOT_WRITTEN, NOT_PENDING, HALF_IN_PLACE, NOT_COUNTING, OLD_HEAD]
