"""How topics stand, asked once for all pages that wait: a crowd that comes back asks about as often as one page.

Each page for itself would take the one thread that has the database, and in it several answers of the store: of a
thousand that come at once the last one waited for a minute.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from dashboard.live import topics
from dashboard.live.topics import Told, Topic

MOST_AT_ONCE = 2_000
"""Topics of one call; what more is wanted waits for the next one."""


@dataclass(eq=False)
class _Call:
    """One call that has not begun: for which topics, and who will have its answer."""

    wanted: set[Topic] = field(default_factory=set)
    task: "asyncio.Task[list[Told]] | None" = None


class Snapshots:
    """``topics.snapshots`` for all sockets of a loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        # By workspace, within which the name of a topic means one thing.
        self._next: dict[int, _Call] = {}

    async def of(self, workspace_id: int, wanted: Collection[Topic]) -> list[Told]:
        """How topics of a workspace stand, looked at after this was called.

        Raises:
            DatabaseError, LogError: as ``topics.snapshots``.
        """
        call = self._next.get(workspace_id)
        if call is None or len(call.wanted) + len(wanted) > MOST_AT_ONCE:
            call = self._next[workspace_id] = _Call()
            call.task = asyncio.create_task(self._carry_out(workspace_id, call))
        assert call.task is not None
        call.wanted.update(wanted)
        told = await asyncio.shield(call.task)
        own = set(wanted)
        return [each for each in told if each[0] in own]

    async def _carry_out(self, workspace_id: int, call: _Call) -> list[Told]:
        async with self._turn:
            if self._next.get(workspace_id) is call:
                del self._next[workspace_id]  # who comes from now on wants to know what is so from now on
            told: list[Told] = await database_sync_to_async(topics.snapshots)(list(call.wanted))
            return told


_of_loops: "WeakKeyDictionary[asyncio.AbstractEventLoop, Snapshots]" = WeakKeyDictionary()


def snapshots_here() -> Snapshots:
    """Those of the loop that runs."""
    return _of_loops.setdefault(asyncio.get_running_loop(), Snapshots())
