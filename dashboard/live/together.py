"""How topics stand, asked once for all pages that wait: a crowd that comes back asks about as often as one page.

Each page for itself would take the one thread that has the database, and in it several answers of the store: of a
thousand that came at once the last one waited for up to a minute.
"""

import asyncio
from collections.abc import Collection
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from dashboard.live import topics
from dashboard.live.topics import Told, Topic

MOST_AT_ONCE = 2_000
"""Topics of one call; what more is wanted waits for the next one."""


class Snapshots:
    """``topics.snapshots`` for all sockets of a loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        # By workspace, within which the name of a topic means one thing: a call that has not begun, for which topics.
        self._next: dict[int, tuple[set[Topic], asyncio.Task[list[Told]]]] = {}

    async def of(self, workspace_id: int, wanted: Collection[Topic]) -> list[Told]:
        """How topics of a workspace stand, looked at after this was called.

        Raises:
            DatabaseError, LogError: as ``topics.snapshots``.
        """
        own = set(wanted)
        call = self._next.get(workspace_id)
        if call is None or len(call[0]) + len(own) > MOST_AT_ONCE:
            asked = set[Topic]()
            call = self._next[workspace_id] = asked, asyncio.create_task(self._carry_out(workspace_id, asked))
        asked, answer = call
        asked |= own
        told = await asyncio.shield(answer)
        return [each for each in told if each[0] in own]

    async def _carry_out(self, workspace_id: int, asked: set[Topic]) -> list[Told]:
        async with self._turn:
            held = self._next.get(workspace_id)
            if held is not None and held[0] is asked:
                del self._next[workspace_id]  # who comes from now on wants to know what is so from now on
            told: list[Told] = await database_sync_to_async(topics.snapshots)(list(asked))
            return told


_of_loops: "WeakKeyDictionary[asyncio.AbstractEventLoop, Snapshots]" = WeakKeyDictionary()


def snapshots_here() -> Snapshots:
    """Those of the loop that runs."""
    return _of_loops.setdefault(asyncio.get_running_loop(), Snapshots())
