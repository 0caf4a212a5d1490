"""From which groups somebody fetches through this process: where that begins or ends the worker takes a sample.

A fetch that gets nothing changes nothing in a stream, so a group at rest is not sampled because of it. Between two
samples a group is then either fetched from all along or by nobody, which a look back at *no consumer* goes by.
"""

import time
from collections.abc import Collection

from streams.alarms import EVERY_S

Named = tuple[str, str]
"""An internal stream id and the name of a group."""


class Fetching:
    """Remembers when each group was fetched from last, until it is silent for as long as between two looks."""

    def __init__(self) -> None:
        self._fetched_s: dict[Named, float] = {}
        self._active: set[Named] = set()

    def note(self, stream_id: str, group: str) -> None:
        """Somebody fetched, now."""
        self._fetched_s[stream_id, group] = time.monotonic()

    def changed(self, open_polls: Collection[Named]) -> set[str]:
        """The streams of groups that somebody fetches from again, or nobody any more, since the last call."""
        now_s = time.monotonic()
        self._fetched_s = {each: at for each, at in self._fetched_s.items() if now_s - at < EVERY_S}
        active = self._fetched_s.keys() | open_polls
        changed = {stream_id for stream_id, _ in active ^ self._active}
        self._active = active
        return changed
