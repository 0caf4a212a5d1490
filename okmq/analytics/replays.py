"""Publishes ranges of the past again, or brings them to one group, beside the runs and queries of the same process.

A replay has a thread while it counts or publishes. What is done stands in the database after each batch, and before
each batch what is about to be done; so after a crash only the ids of one batch have to be looked for in the target, and
each message is published once (docs/history.md).
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError, close_old_connections, connections

from okmq.analytics.causes import kinds, readable
from okmq.analytics.erased import ErasedMeanwhile, ErasedSince
from okmq.analytics.giving import TURN_S, Giving
from okmq.analytics.pools import PROPERTY
from okmq.analytics.reasons import ReasonsKept
from okmq.analytics.replay_watch import STUCK_S, CannotReplay, NotWanted, watched
from okmq.analytics.shared_spark import SharedSpark
from okmq.env import Env
from okmq.supervision.masters import MasterAway
from streams import naming, store
from streams.errors import refusal_of
from streams.log import append, bringing, config
from streams.log.config import Registered
from streams.log.entries import NewMessage
from streams.log.errors import LogError, MessageTooLarge, StoreUnavailable, StreamFull
from streams.models import Group, Replay, ReplayState, Stream
from streams.services import replays as service

if TYPE_CHECKING:
    from spark.positions import Position
    from spark.replay import Past, PastRange

AT_ONCE = 2 * service.MOST_UNFINISHED
"""What one workspace may have under way holds up no other; one with a rate mostly waits for its next batch."""

POLL_S = 0.5
RETRY_S = 5.0
BATCH = append.BATCH_LIMIT
"""Messages that are published with one call."""

SHARES = 4
"""With a rate, batches are at most what it allows in a second over this."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

log = logging.getLogger(__name__)


class Replays:
    """Works on the replays in the database, up to ``AT_ONCE`` at a time.

    Args:
        erased: tells what was erased since messages were read that are not given on yet.
        reasons: keeps why one failed, unless something was erased meanwhile.
        stop: ends ``serve``; what is under way goes on at the next start.
        stuck_s: seconds after which it cannot go on where Spark does nothing of it.
    """

    def __init__(
        self,
        env: Env,
        *,
        spark: SharedSpark,
        erased: ErasedSince,
        reasons: ReasonsKept,
        stop: threading.Event,
        stuck_s: float = STUCK_S,
    ) -> None:
        self.env = env
        self.spark = spark
        self.erased = erased
        self.reasons = reasons
        self.stop = stop
        self.stuck_s = stuck_s
        self._threads: dict[int, threading.Thread] = {}

    def start(self) -> None:
        """Serve in a thread of its own."""
        threading.Thread(target=self.serve, name="replays", daemon=True).start()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads, after they were told to stop."""
        deadline = time.monotonic() + timeout_s
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def serve(self) -> None:
        """Give work to threads until told to stop; what stands in the way, as no database, is waited for."""
        while not self.stop.is_set():
            try:
                close_old_connections()
                self.hand_out()
            except Exception as error:
                log.warning("Replays wait: %s", error)
                self.stop.wait(RETRY_S)
            self.stop.wait(POLL_S)
        connections.close_all()

    def hand_out(self) -> None:
        """Begin threads for what has none, as many as there may be."""
        self._threads = {pk: thread for pk, thread in self._threads.items() if thread.is_alive()}
        while len(self._threads) < AT_ONCE:
            replay = service.replay_next(under_way=self._threads)
            if replay is None:
                return
            thread = threading.Thread(target=self._serve_one, args=(replay,), daemon=True)
            self._threads[replay.pk] = thread
            thread.start()

    def _serve_one(self, replay: Replay) -> None:
        try:
            self.work(replay)
        except (DatabaseError, StoreUnavailable, MasterAway) as error:
            if not self.stop.is_set():
                log.warning("Replay %s waits: %s", replay.pk, error)
            self.stop.wait(RETRY_S)  # it is still to be worked on, and taken up again
        finally:
            connections.close_all()

    def work(self, replay: Replay) -> None:
        """Count, or publish, until it is done, cannot go on, or is not wanted any more.

        Raises:
            DatabaseError, StoreUnavailable, MasterAway: it is to be taken up again later.
        """
        started, erased = time.monotonic(), self.reasons.times(replay.workspace_id)
        try:
            self._count_and_publish(replay)
        except NotWanted:
            return
        except (DatabaseError, StoreUnavailable, MasterAway):
            raise
        except CannotReplay as error:
            self._failed(replay, str(error), erased=erased)
        except Exception as error:
            if self.stop.is_set() or self.spark.failed_for_a_query(error, since=started):
                return  # it is taken up again
            if self.spark.died_under(f"Replay {replay.pk}", since=started):
                return
            if _is_of_its_condition(replay, error):
                log.info("Replay %s ends: its condition cannot be used.", replay.pk)
            else:
                log.error("Replay %s failed: %s", replay.pk, kinds(error))
            self._failed(replay, _told(error), erased=erased)
            self.spark.end_if_dead()

    def _failed(self, replay: Replay, reason: str, *, erased: int) -> None:
        with self.reasons.telling(reason, of=replay.workspace_id, since=erased) as error:
            service.replay_failed(replay, error=error)

    def _count_and_publish(self, replay: Replay) -> None:
        if replay.state == ReplayState.COUNTING:
            self._count(replay)
            replay.refresh_from_db()
        if replay.state == ReplayState.RUNNING:
            (self._bring if replay.group else self._publish)(replay)

    def _count(self, replay: Replay) -> None:
        with self.spark.in_use():
            past = self._range(replay)
            with self._step(replay, past):
                counted = past.count()
        service.replay_counted(
            replay, messages=counted.messages, size=counted.bytes, first=counted.first, last=counted.last
        )

    def _publish(self, replay: Replay) -> None:
        target = self._stream(replay.target_id, replay.target)
        service.replay_begins(replay, target_offset=self._position(target.stream_id, target.name).last)
        if replay.position < replay.last:
            with self.spark.in_use():
                past = self._range(replay)
                while replay.position < replay.last:
                    # What was erased since it was read is not published: it is read again.
                    with suppress(ErasedMeanwhile):
                        self._settle(replay, target, past)
                        self._publish_on(replay, past)
        service.replay_done(replay)

    def _publish_on(self, replay: Replay, past: "PastRange") -> None:
        while replay.position < replay.last:
            read_at = self.erased.times(replay.source_id)
            with self._step(replay, past):
                chunk = past.read(replay.position + 1, replay.last)
            self._publish_chunk(replay, chunk.messages, end=chunk.end, read_at=read_at)

    def _bring(self, replay: Replay) -> None:
        service.replay_begins(replay, target_offset=0)
        giving = Giving(replay, most=_most(replay.rate), erased=self.erased, stop=self.stop)
        while replay.position < replay.last:
            if not giving.wait_for_room(until=time.monotonic() + TURN_S):
                return  # it is taken up again
            with suppress(ErasedMeanwhile):
                self._bring_on(replay, giving)
        store.log().run(bringing.forget(replay.source_id, replay.group, replay=replay.pk))
        service.replay_done(replay)

    def _bring_on(self, replay: Replay, giving: Giving) -> None:
        left: list[Past] = []
        end = replay.position
        with self.spark.in_use():
            past = self._range(replay)
            while not left and end < replay.last:
                read_at = self.erased.times(replay.source_id)
                with self._step(replay, past):
                    chunk = past.read(end + 1, replay.last)
                end = chunk.end
                left = giving.give(chunk.messages, end=end, read_at=read_at)
        if left:
            giving.give_slowly(left, end=end, read_at=read_at)  # Spark need not be there for that

    def _settle(self, replay: Replay, target: Registered, past: "PastRange") -> None:
        """Finish the batch that a crash left half-way: what of it the target has is not published again.

        All of it is looked for before anything is noted: its messages may lie further apart than one chunk reaches.
        """
        from spark.replay import ids_after

        if replay.sending_to <= replay.position:
            return
        begun: list[Past] = []
        end, read_at = replay.position, self.erased.times(replay.source_id)
        while end < replay.sending_to:
            with self._step(replay, past):
                chunk = past.read(end + 1, replay.sending_to)
            begun += chunk.messages
            end = chunk.end
        ids = {_id(replay, each) for each in begun}
        there = ids_after(store.log(), target, after=replay.target_offset, wanted=ids)
        left = [each for each in begun if _id(replay, each) not in there]
        self._publish_chunk(replay, left, end=end, read_at=read_at, before=len(begun) - len(left))

    def _publish_chunk(
        self, replay: Replay, messages: Sequence["Past"], *, end: int, read_at: int, before: int = 0
    ) -> None:
        """Publish messages in offset order, batch by batch; then everything up to ``end`` is done.

        Args:
            read_at: how often something had been erased of the stream before they were read.
            before: how many of the same offsets were published earlier and are not counted yet.

        Raises:
            ErasedMeanwhile: what is not published yet is to be read again.
        """
        batches = list(append.batches(messages, most=_most(replay.rate)))
        ends = [*[batch[-1].offset for batch in batches[:-1]], end]
        if not batches:
            self._sent(replay, position=end, stored=before, duplicates=0, target_offset=0, sending_to=end)
            return
        if not service.replay_sending(replay, to=ends[0]):
            raise NotWanted
        for n, batch in enumerate(batches):
            due = time.monotonic() + len(batch) / (replay.rate or float("inf"))
            with self.erased.giving(replay.source_id, read_at=read_at):
                placed, full = self._append(replay, batch)
            if placed:
                position = ends[n] if full is None else batch[len(placed) - 1].offset
                upcoming = ends[min(n + 1, len(ends) - 1)] if full is None else position
                known = sum(each.duplicate for each in placed)
                self._sent(
                    replay,
                    position=position,
                    stored=len(placed) - known + (before if n == 0 else 0),
                    duplicates=known,
                    target_offset=max((each.offset for each in placed if not each.duplicate), default=0),
                    sending_to=upcoming,
                )
            if full is not None:
                raise CannotReplay(refusal_of(full, stream=replay.target).message)
            self._wait(replay, due)

    def _append(
        self, replay: Replay, batch: Sequence["Past"]
    ) -> tuple[list[append.Appended], StreamFull | None]:
        """Publish one batch, as far as the target has room, and why it refused the next one of it."""
        patterns = self._key_patterns(replay)
        for each in batch:
            if patterns and (each.key is None or not naming.matches_any(each.key, patterns)):
                raise CannotReplay(
                    f"The message at offset {each.offset} has the key {each.key!r}, which {replay.target} does not "
                    "take."
                )
        messages = [
            NewMessage(id=_id(replay, each), body=each.body, key=each.key, headers=each.headers)
            for each in batch
        ]
        try:
            return store.log().run(append.append_what_fits(replay.target_id, messages))
        except StoreUnavailable:
            raise
        except MessageTooLarge as error:
            raise CannotReplay(
                f"The body of the message at offset {batch[error.index].offset} has {error.size_bytes:,} bytes; "
                f"{replay.target} takes {error.limit_bytes:,} at most."
            ) from None
        except LogError as error:
            raise CannotReplay(refusal_of(error, stream=replay.target).message) from None

    def _sent(self, replay: Replay, **noted: int) -> None:
        if not service.replay_sent(replay, **noted) or self.stop.is_set():
            raise NotWanted

    def _wait(self, replay: Replay, due: float) -> None:
        """Until a time; looks now and then whether it is still wanted."""
        while (left := due - time.monotonic()) > 0:
            if self.stop.wait(min(left, POLL_S)) or not service.replay_is_wanted(replay):
                raise NotWanted

    @contextmanager
    def _step(self, replay: Replay, past: "PastRange") -> Iterator[None]:
        """Around what Spark does for it at a time: watched, and in a pool that comes before those of earlier steps.

        Raises:
            CannotReplay: the source was deleted, and what is gone reads as empty.
        """
        with (
            self.spark.pools.own() as pool,
            watched(self.spark, past.session, replay, stop=self.stop, stuck_s=self.stuck_s),
        ):
            past.session.sparkContext.setLocalProperty(PROPERTY, pool)
            yield
        self._position(replay.source_id, replay.source)

    def _range(self, replay: Replay) -> "PastRange":
        from spark.replay import PastRange, Wanted

        source = self._stream(replay.source_id, replay.source)
        session = self.spark.session()
        wanted = Wanted(
            stream=source,
            first=replay.from_offset,
            last=replay.to_offset,
            since_ms=None if replay.since is None else _first_ms(replay.since),
            until_ms=None if replay.until is None else _first_ms(replay.until) - 1,
            key=replay.key or None,
            filter_keys=self._filter_keys(replay),
            where=replay.where or None,
        )
        return PastRange(session, self.spark.settings(), wanted, self.spark.batches())

    def _stream(self, stream_id: str, name: str) -> Registered:
        for each in store.log().run(config.streams()):
            if each.stream_id == stream_id:
                return each
        raise CannotReplay(f"Stream {name} was deleted.")

    def _position(self, stream_id: str, name: str) -> "Position":
        from spark.positions import positions

        at = store.log().run(positions([stream_id], strict=True)).get(stream_id)
        if at is None:
            raise CannotReplay(f"Stream {name} was deleted.")
        return at

    def _filter_keys(self, replay: Replay) -> list[str]:
        """Of the group that it is for; of none where it is for all of a stream."""
        groups = Group.objects.filter(stream__stream_id=replay.source_id, name=replay.group)
        return list(groups.values_list("filter_keys", flat=True).first() or [])

    def _key_patterns(self, replay: Replay) -> list[str]:
        found = Stream.objects.filter(stream_id=replay.target_id).values_list("keys", flat=True).first()
        return list(found or [])


def _first_ms(moment: datetime) -> int:
    """The first millisecond that is not before a time."""
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def _id(replay: Replay, message: "Past") -> str:
    return message.id if replay.keeps_ids else f"replay-{replay.pk}-{message.offset}"


def _is_of_its_condition(replay: Replay, error: Exception) -> bool:
    """Whether it ends because of what somebody wrote, which is no fault of this process."""
    from spark.sentences import is_of_what_was_written
    from spark.walk import QueryRefused

    return bool(replay.where) and (isinstance(error, QueryRefused) or is_of_what_was_written(error))


def _told(error: Exception) -> str:
    """Why it cannot go on; what Spark says of a condition comes without Spark's advice."""
    from spark.sentences import of_condition

    return of_condition(error) or readable(error)


def _most(rate: int | None) -> int:
    """Messages in a batch, at so many in a second."""
    return BATCH if rate is None else max(1, min(BATCH, rate // SHARES))
