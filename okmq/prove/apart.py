"""What came of a product of its own, on which the load was put for one kind of fault."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from okmq.instance import Instance
from okmq.prove.faults import Struck
from okmq.prove.history import History
from okmq.prove.load import Load

Say = Callable[[str], None]
"""Tells a line to whoever waits."""

MAY_GROW, MAY_BE_MADE = 1.05, 8
"""Open files afterwards against before; a connection or two may just be made again."""


@dataclass(kw_only=True)
class Apart:
    """The faults of one scene, and every sentence on what was wrong beside what the history tells."""

    load: Load
    struck: list[Struck] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What of it was not carried out, and why."""

    beside: int = 0
    """Calls in flight during faults that the history does not have."""

    @property
    def history(self) -> History:
        return self.load.scene.history

    @property
    def messages(self) -> int:
        """How many there are in the end."""
        return sum(len(remains.messages) for remains in self.history.remains.values())

    def left_open(self, before: int, after: int, *, what: str) -> None:
        """Note it where more files and connections are open than may be."""
        if after > before * MAY_GROW + MAY_BE_MADE:
            self.wrong.append(f"{what}: {before} files and connections were open before, {after} after")


def open_files(product: Instance) -> int:
    """How many files and connections the web processes have open; 0 where that cannot be seen."""
    with contextlib.suppress(OSError):
        return sum(files_of(product.pid(name)) for name in ("web-1", "web-2"))
    return 0


def files_of(pid: int) -> int:
    """How many files and connections a process has open.

    Raises:
        OSError: this cannot be seen.
    """
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
