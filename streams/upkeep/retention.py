"""Retention: what is over is hidden by the scripts at once; here it is counted off and physically removed."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from streams.log import keys, stats, trim, undo
from streams.log.client import AsyncLog
from streams.log.errors import Damaged, StoreFull, StoreUnavailable, StreamLost, StreamNotFound

SWEEP_EVERY_S = 20
"""Every stream is looked after at least this often: what expires is physically gone within 60 s."""

PAGES_A_TURN = 1500
"""What is looked through of a stream kept by interest in one second (45,000 messages)."""

REST_S = 0.003
"""Between two calls that apply a limit a key, which are as long: others have the store in between, however long a call
waits for the processor or the disk."""

TURN_S = 1.0
"""How long one turn takes away what is over by its own time and removes what is hidden; the next second goes on."""

POLITE_MS = 20_000
"""What is over for less long goes half of the time at most, so that others have the store in between."""

MOST_TIMES = 16
"""A call that removes what is hidden works so many times as long as usual at most, 20 ms, where it does not keep up."""

LOOKED_AT_ONCE = 500
"""Streams asked together whether they need anything."""


@dataclass(slots=True)
class Tended:
    """How a turn ended.

    Attributes:
        unfinished: streams that have to be tended in the next second, too.
        is_one_lost: whether there was a stream in memory that its server does not hold.
        damaged: what could not be read of streams that were passed over.
        full: why others were, whose server had no room for what is to be done; None: none were.
    """

    unfinished: set[str] = field(default_factory=set)
    is_one_lost: bool = False
    damaged: list[Damaged] = field(default_factory=list)
    full: StoreFull | None = None


class Paces:
    """How long calls that remove what is hidden work, by stream: twice as long each time that more is left than before.

    A limit hides what is over with the publish that passes it; a store that is busy answers seldom, and what each call
    removes may be less than what comes. So what is left stays bounded, whatever is published.
    """

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._times: dict[str, int] = {}

    def times(self, stream_id: str) -> int:
        """So many times as long as usual."""
        return self._times.get(stream_id, 1)

    def note(self, stream_id: str, some: trim.Dropped) -> None:
        """How a turn ended."""
        if some.is_done:
            self._left.pop(stream_id, None)
            self._times.pop(stream_id, None)
            return
        if some.left >= self._left.get(stream_id, some.left + 1):
            self._times[stream_id] = min(MOST_TIMES, 2 * self.times(stream_id))
        self._left[stream_id] = some.left


async def tend(
    log: AsyncLog,
    stream_ids: Sequence[str],
    *,
    hold_ms: int | None = None,
    paces: Paces | None = None,
    turn_s: float = TURN_S,
) -> Tended:
    """Apply limits and expiry to streams and remove what is hidden.

    Args:
        hold_ms: as of ``trim.drop``.
        paces: of the turns before; each stream has its share of the turn.
    """
    tended, ends_s, paces = Tended(), time.monotonic() + turn_s, paces or Paces()
    due = await _due(log, stream_ids)
    for place, stream_id in enumerate(due):
        began_s = time.monotonic()
        until_s = began_s + max(0.0, ends_s - began_s) / (len(due) - place)
        try:
            expired, all_expired = await _expire(log, stream_id, until_s=until_s)
            hidden = await log.run(trim.apply_limits(stream_id))
            pushed_out, all_seen = await _keep_newest_of_keys(log, stream_id, until_s=until_s)
            let_go, all_done = await log.run(trim.release(stream_id, pages=PAGES_A_TURN))
            await log.run(undo.end(stream_id))
            gone = await _drop(log, stream_id, hold_ms=hold_ms, until_s=until_s, times=paces.times(stream_id))
            paces.note(stream_id, gone)
        except StreamNotFound:
            continue
        except StreamLost:
            tended.is_one_lost = True
            continue
        except Damaged as error:
            tended.damaged.append(error)
            continue
        except StoreFull as error:
            tended.full = error
            continue
        except StoreUnavailable:
            if not keys.in_memory(stream_id):
                raise
            continue  # its server has just gone; the durable streams go on
        if not (all_expired and all_seen and all_done and gone.is_done):
            tended.unfinished.add(stream_id)
        if hidden.messages or expired or pushed_out or let_go.messages:
            await log.run(stats.touch([stream_id]))  # the pages see a quiet stream shrink, too
    return tended


async def _expire(log: AsyncLog, stream_id: str, *, until_s: float) -> tuple[int, bool]:
    """How many messages went because their own time is over, and whether none is left."""
    total = 0
    while True:
        began = time.monotonic()
        some = await log.run(trim.expire_some(stream_id, until_s=began))
        total += some.messages
        if some.is_done or time.monotonic() >= until_s:
            return total, some.is_done
        if some.late_ms < POLITE_MS:
            await asyncio.sleep(time.monotonic() - began)


async def _keep_newest_of_keys(log: AsyncLog, stream_id: str, *, until_s: float) -> tuple[int, bool]:
    """How many messages newer ones of their key pushed out, and whether all have been looked through."""
    went, is_done = await log.run(trim.keep_newest_of_keys(stream_id, until_s=0))
    total = went.messages
    with contextlib.suppress(StoreFull):
        while not is_done and time.monotonic() < until_s:
            await asyncio.sleep(REST_S)
            went, is_done = await log.run(trim.push_out_some(stream_id))
            total += went.messages
    return total, is_done


async def _drop(
    log: AsyncLog, stream_id: str, *, hold_ms: int | None, until_s: float, times: int
) -> trim.Dropped:
    """How the last call ended."""
    while True:
        began = time.monotonic()
        some = await log.run(trim.drop(stream_id, hold_ms=hold_ms, until_s=began, times=times))
        if some.is_done or time.monotonic() >= until_s:
            return some
        # As long as it took on a store that has room: where others keep it busy, they have it in between anyway.
        await asyncio.sleep(min(REST_S, time.monotonic() - began))


async def _due(log: AsyncLog, stream_ids: Sequence[str]) -> list[str]:
    """Of thousands of streams that take messages hardly any needs tending, which is seven round trips each."""
    found: list[str] = []
    for first in range(0, len(stream_ids), LOOKED_AT_ONCE):
        found += await log.run(trim.due(stream_ids[first : first + LOOKED_AT_ONCE]))
    return found


class Round:
    """Deals all streams out over the seconds of a sweep, so that each second has its share."""

    def __init__(self) -> None:
        self._left: list[str] = []
        self._share = 0

    def next(self, stream_ids: Sequence[str]) -> list[str]:
        """The streams whose turn it is in this second."""
        if not self._left:
            self._left = list(stream_ids)
            self._share = max(1, -(-len(self._left) // SWEEP_EVERY_S))
        turn, self._left = self._left[: self._share], self._left[self._share :]
        return turn
