"""Gives messages of the past to the one group that a replay is for, as fast as that group takes them.

How far it is stands with the group, in the same step as what it gave, so that nothing is given twice after a crash; the
database is told after each batch.
"""

import threading
import time
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from okmq.analytics.erased import ErasedSince
from okmq.analytics.replay_watch import CannotReplay, NotWanted
from streams import store
from streams.log import append, bringing
from streams.log.bringing import Brought
from streams.log.errors import GroupMoved, GroupNotFound, StreamNotFound
from streams.models import Replay, WaitsFor
from streams.services import replays as service

if TYPE_CHECKING:
    from spark.replay import Past

LOOK_FIRST_S, LOOK_MOST_S = 0.02, 0.5
"""A group that has no room is looked at again after so long, twice as long each time."""

SAID_AFTER_S = 1.0
"""Who waits no longer than this does not say so."""

KEPT_S = 60.0
"""How long messages wait here for their group; then they are read again."""

TURN_S = 60.0
"""A replay whose group has no room for so long lets others have its thread."""


class Giving:
    """What one replay gives its group; for one thread.

    Args:
        most: messages that are given with one call, and that fewer than a second's worth of a rate are.
        erased: tells what was erased since messages were read.
        stop: ends it.
    """

    def __init__(self, replay: Replay, *, most: int, erased: ErasedSince, stop: threading.Event) -> None:
        self.replay, self.most, self.erased, self.stop = replay, most, erased, stop
        self.told = Brought(replay.position, replay.stored, replay.duplicates)

    def give(self, messages: Sequence["Past"], *, end: int, read_at: int) -> list["Past"]:
        """Give messages in offset order, batch by batch, while there is room; then everything up to ``end`` is done.

        Args:
            read_at: how often something had been erased of the stream before they were read.

        Returns:
            What is left for want of room.

        Raises:
            ErasedMeanwhile: what is not given yet is to be read again.
            NotWanted: the replay is not wanted any more, or its group was moved or deleted.
            CannotReplay: the stream was deleted.
            StoreUnavailable: also where the store is full: it is to be taken up again later.
        """
        left = list(messages)
        while True:
            if left and not self.told.room:
                return left
            batch = next(append.batches(islice(left, self.told.room), most=self.most), [])
            due = time.monotonic() + len(batch) / (self.replay.rate or float("inf"))
            with self.erased.giving(self.replay.source_id, read_at=read_at):
                self._call(batch, upto=end if len(batch) == len(left) else batch[-1].offset)
            left = [each for each in left if each.offset > self.told.position]
            if not left:
                return []
            self._wait(due)

    def give_slowly(self, messages: Sequence["Past"], *, end: int, read_at: int) -> None:
        """Give what was left, as the group takes it; what it does not take for long is to be read again.

        Raises as ``give``.
        """
        until = time.monotonic() + KEPT_S
        left = list(messages)
        while left and self.wait_for_room(until=until):
            left = self.give(left, end=end, read_at=read_at)

    def wait_for_room(self, *, until: float = float("inf")) -> bool:
        """Wait until the group may be given something; False: it may not by then (monotonic). Raises as ``give``."""
        began, look_s = time.monotonic(), LOOK_FIRST_S
        while True:
            waits = bool(self.replay.waits_for) or time.monotonic() - began > SAID_AFTER_S
            self._call([], upto=self.told.position, waits=waits)
            if self.told.room:
                return True
            if time.monotonic() > until:
                return False
            self._wait(time.monotonic() + look_s)
            look_s = min(2 * look_s, LOOK_MOST_S)

    def _call(self, batch: Sequence["Past"], *, upto: int, waits: bool = False) -> None:
        replay, generation = self.replay, self.replay.generation
        assert generation is not None
        try:
            self.told = store.log().run(
                bringing.bring_back(
                    replay.source_id,
                    replay.group,
                    replay=replay.pk,
                    generation=generation,
                    known=self.told,
                    letters=list(map(_letter, batch)),
                    upto=upto,
                )
            )
        except StreamNotFound:
            raise CannotReplay(f"Stream {replay.source} was deleted.") from None
        except (GroupNotFound, GroupMoved) as error:
            became = "deleted" if isinstance(error, GroupNotFound) else "moved to another position"
            service.replay_overtaken(replay, why=f"Group {replay.group} was {became}.")
            raise NotWanted from None
        self._note(waits=waits and not self.told.room)

    def _note(self, *, waits: bool) -> None:
        told, replay = self.told, self.replay
        waits_for = (WaitsFor.PAUSED_GROUP if told.is_paused else WaitsFor.GROUP) if waits else ""
        known = (replay.position, replay.stored, replay.duplicates, replay.waits_for)
        if known == (*told[:3], waits_for):
            is_wanted = service.replay_is_wanted(replay)
        else:
            is_wanted = service.replay_brought(
                replay, position=told.position, given=told.given, passed=told.passed, waits_for=waits_for
            )
        if not is_wanted or self.stop.is_set():
            raise NotWanted

    def _wait(self, due: float) -> None:
        while (left := due - time.monotonic()) > 0:
            if self.stop.wait(min(left, LOOK_MOST_S)) or not service.replay_is_wanted(self.replay):
                raise NotWanted


def _letter(past: "Past") -> bytes:
    return bringing.of_history(
        offset=past.offset,
        timestamp_ms=past.timestamp_ms,
        id=past.id,
        body=past.body.decode(),
        key=past.key,
        headers=None if past.headers is None else past.headers.decode(),
    )
