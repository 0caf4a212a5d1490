"""Keeps the censuses of the streams that have keys up to date, in moments of its own choice."""

import time

from streams.log import keys, meta
from streams.log.censuses import Censuses
from streams.log.client import Log, Op, Pipeline, Reachable
from streams.log.errors import LogError
from streams.log.looking import look

WORK_S = 0.02
"""So long it works at a time; then it rests as long, so that others have the store."""

LOOKED_AT_ONCE = 200
"""Streams asked in one round trip whether they have grown."""

SAVED_AFTER = 0.1
"""A census is written down when it grew by this part."""


class Following:
    """Looks at some streams each second, and reads on in those that have grown.

    Attributes:
        cursor: 0 when the next look is at the first streams again.
    """

    def __init__(self, log: Log, censuses: Censuses) -> None:
        self._log, self._censuses = log, censuses
        self.cursor = 0
        self._there: set[str] = set()
        self._behind: dict[str, None] = {}

    def look_around(self) -> None:
        """Find streams that have grown: among those that did before, and in the next part of all others.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        self.cursor, listed = self._log.run(_listed(self.cursor))
        self._there |= listed
        if not self.cursor:
            for stream_id in set(self._censuses) - self._there:
                self._censuses.forget(stream_id)
            self._censuses.tidy(self._there)
            self._there = set()
        asked = sorted({*listed, *self._censuses})
        for first in range(0, len(asked), LOOKED_AT_ONCE):
            part = asked[first : first + LOOKED_AT_ONCE]
            for stream_id, counters in self._log.run(_with_keys(part)).items():
                if counters.last > self._censuses.last(stream_id):
                    self._behind.setdefault(stream_id)

    def go_on(self) -> bool:
        """Read on for a moment in a stream that has grown; whether there is more to do."""
        stream_id = next(iter(self._behind), None)
        if stream_id is None:
            return False
        del self._behind[stream_id]
        held = self._censuses.of(stream_id)
        try:
            looked = self._log.run(look(stream_id, held, until_s=time.monotonic() + WORK_S, always=1))
        except LogError:
            return bool(self._behind)
        if not looked.is_complete and held.census is not None and not held.census.is_full:
            self._behind[stream_id] = None  # after the others
        self._censuses.save(stream_id, grown=SAVED_AFTER, beside=True)
        return bool(self._behind)

    def save(self) -> None:
        """Write everything down, before the process ends."""
        for stream_id in self._censuses:
            self._censuses.save(stream_id)


def _listed(cursor: int) -> Op[tuple[int, set[str]]]:
    """The next part of all streams, without those of the installation's own."""
    following, flat = yield ("HSCAN", keys.REGISTRY, cursor, "COUNT", LOOKED_AT_ONCE)
    pairs = zip(flat[0::2], flat[1::2], strict=True)
    return int(following), {name.decode() for name, told in pairs if b'"internal": true' not in told}


def _with_keys(stream_ids: list[str]) -> Op[dict[str, meta.Counters]]:
    """The counters of those of these streams that may hold a message with a key, or have a group with a filter."""
    counters = yield from meta.counters_of((yield Reachable(stream_ids)))
    plain = [stream_id for stream_id, each in counters.items() if not each.keyed]
    filtered = (yield Pipeline([("EXISTS", keys.went(each)) for each in plain])) if plain else []
    left_out = {stream_id for stream_id, exists in zip(plain, filtered, strict=True) if not exists}
    return {stream_id: each for stream_id, each in counters.items() if stream_id not in left_out}
