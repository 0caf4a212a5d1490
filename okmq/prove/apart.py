"""What came of a product of its own, on which the load was put for one kind of fault."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from okmq.instance import Instance
from okmq.prove.faults import Struck
from okmq.prove.history import History
from okmq.prove.load import Load

Say = Callable[[str], None]
"""Tells a line to whoever waits."""

MAY_GROW, MAY_BE_MADE = 1.05, 8
"""Afterwards against before; of open files after a fault, a connection or two may just be made again."""


@dataclass(frozen=True, kw_only=True)
class Holds:
    """What a process has: files and connections, threads, memory that is only its own (bytes)."""

    files: int
    threads: int
    memory: int


Held = Mapping[str, Holds]
"""By the name of the process."""


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
    def histories(self) -> list[History]:
        """What is checked; one after the other, where the store was another one from some time on."""
        return [self.history]

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


def grown(before: Held, after: Held, *, what: str, is_long: bool) -> list[str]:
    """Where a process has more memory, or all together more connections or threads, than they may have come to.

    A caller whose connection was cut off connects anew, to whichever web process takes it.

    Args:
        is_long: whether it worked long enough before to have what it needs: memory, and the threads of its pools, each
            of which is made when so many are busy at once for the first time.
    """
    wrong = []
    to_be_made = 0.0 if is_long else MAY_BE_MADE / 2
    had, has = (sum(each.files for each in some.values()) for some in (before, after))
    if has > had * MAY_GROW:
        wrong.append(f"{what}: there were {had} files and connections before, and are {has}")
    had, has = (sum(each.threads for each in some.values()) for some in (before, after))
    if has > had * MAY_GROW + to_be_made:
        wrong.append(f"{what}: there were {had} threads before, and are {has}")
    for name, then in before.items():
        now = after[name]
        if is_long and now.memory > then.memory * MAY_GROW:
            mib = f"{then.memory / 2**20:.1f} MiB before and has {now.memory / 2**20:.1f} MiB"
            wrong.append(f"{what}: {name} had {mib}")
    return wrong


def held(product: Instance) -> Held:
    """What web processes and worker have; nothing where that cannot be seen."""
    with contextlib.suppress(OSError):
        return {name: _holds(product.pid(name)) for name in ("web-1", "web-2", "worker")}
    return {}


def _holds(pid: int) -> Holds:
    threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    return Holds(files=files_of(pid), threads=threads, memory=memory_of(pid))


def memory_of(pid: int) -> int:
    """What only this process has, bytes: pages that it shares with others are not its own.

    Raises:
        OSError: this cannot be seen.
    """
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = (line.split()[1] for line in lines if line.startswith("Private_"))
    return 1024 * sum(map(int, private))


def files_of(pid: int) -> int:
    """How many files and connections a process has open.

    Raises:
        OSError: this cannot be seen.
    """
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
