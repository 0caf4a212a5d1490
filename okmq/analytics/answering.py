"""Answers a query of somebody's.

It has a thread that asks Spark and one that watches it: whether it is still wanted, how far it is, whether its time is
over. It has a pool of its own (``okmq.analytics.pools``), so that none waits for another's end.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connections

from okmq.analytics.causes import kinds
from okmq.analytics.counted import groups_of, rollups_of
from okmq.analytics.disk_watch import DiskWatch
from okmq.analytics.heap_watch import Asking, HeapWatch
from okmq.analytics.pools import FIRST, PROPERTY
from okmq.analytics.reasons import ReasonsKept
from okmq.analytics.shared_spark import SharedSpark
from okmq.env import Env
from okmq.supervision import masters
from okmq.supervision.masters import MasterAway
from streams import bearer, store
from streams.log import config
from streams.log.errors import LogError
from streams.models import Query, QueryState
from streams.selectors import METRICS_STREAM
from streams.services import queries as service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.query import Answer
    from spark.tables import Seen

POLL_S = 0.25
RETRY_S = 5.0

AWAY = (OperationalError, InterfaceError)
"""What tells of a database that does not answer, and of nothing that was asked of it."""

TRIES = 3
"""How often a query is begun that had no memory because of another."""

CROWDED_OUT = "Another query held Spark's memory while this ran; ask again."
STRANDED = "The cluster gave Spark no executor; ask again, and look whether it has workers."

TIME_LIMIT_S = 300.0
"""How long a query may take, the start of Spark not counted."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    """What became of a query in the thread that asked Spark.

    Attributes:
        erased: how often something had been erased in its workspace when it was begun.
    """

    under: Asking
    pool: str
    erased: int
    session: "SparkSession | None" = None
    is_shown: bool = False  # as running
    answer: "Answer | None" = None
    state: QueryState = QueryState.FAILED
    error: str = ""


class Answering:
    """Answers queries that were taken, each in the thread that asks it to.

    Args:
        reasons: keeps why one failed, unless something was erased meanwhile.
        stop: ends what is under way, which is marked at the next start.
        time_limit_s: seconds that Spark may take for one.
    """

    def __init__(
        self,
        env: Env,
        *,
        spark: SharedSpark,
        reasons: ReasonsKept,
        stop: threading.Event,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        self.env = env
        self.spark = spark
        self.reasons = reasons
        self.stop = stop
        self.time_limit_s = time_limit_s
        self._heap = HeapWatch(spark)
        self.disk = DiskWatch(most_bytes=env.sql_disk)
        self._ending: set[int] = set()

    @property
    def is_ending(self) -> bool:
        """Whether one is coming to its end, with which Spark may have to be told to stop."""
        return bool(self._ending)

    def answer(self, query: Query, *, rank: int = FIRST) -> None:
        """Have Spark answer it, and note how it ended.

        Args:
            rank: of its pool.

        Raises:
            DatabaseError, LogError: one of them does not answer; the query is lost.
        """
        try:
            with self.spark.in_use():
                self._answer(query, rank)
        except Exception:
            self._until_noted(
                query,
                lambda: service.query_end(query, QueryState.LOST, error="Something went wrong; ask again."),
            )
            raise

    def _answer(self, query: Query, rank: int) -> None:
        from spark.query import Course

        with (
            self.spark.pools.own(rank=rank) as pool,
            self._heap.over(group_of(query), Course()) as under,
            self.disk.over(under),
        ):
            self._answer_watched(query, _Asked(under, pool, self.reasons.times(query.workspace_id)))

    def _answer_watched(self, query: Query, asked: _Asked) -> None:
        asking = threading.Thread(target=self._ask, args=(query, asked), daemon=True)
        asking.start()
        is_wanted = is_late = False
        try:
            is_wanted, is_late = self._watch(query, asking, asked)
            self._ending.add(query.pk)
            if self.stop.is_set():
                return  # the next start says so

            def note() -> None:
                self._note_end(query, asked, is_wanted=is_wanted, is_late=is_late)

            is_noted = self._is_noted(query, note)
        finally:
            try:
                if not is_wanted or is_late or asked.under.is_ended:
                    self._see_the_end(query, asking, asked)
            finally:
                self._ending.discard(query.pk)
        if not is_noted:
            self._until_noted(query, note)

    def _note_end(self, query: Query, asked: _Asked, *, is_wanted: bool, is_late: bool) -> None:
        if not is_wanted:
            service.query_end(query, QueryState.CANCELLED)
        elif is_late:
            service.query_end(
                query, QueryState.FAILED, error=f"It took longer than {self.time_limit_s:g} seconds."
            )
        elif asked.answer is not None:
            service.query_answer(
                query, columns=asked.answer.columns, rows=asked.answer.rows, truncated=asked.answer.truncated
            )
        elif asked.under.fills_disk:
            service.query_end(query, QueryState.FAILED, error=asked.under.fills_disk)
        elif asked.under.is_too_large:
            service.query_end(query, QueryState.FAILED, error=self._too_large())
        elif asked.state == QueryState.FAILED:
            with self.reasons.telling(asked.error, of=query.workspace_id, since=asked.erased) as error:
                service.query_end(query, QueryState.FAILED, error=error)
        else:
            service.query_end(query, asked.state, error=asked.error)

    def _until_noted(self, query: Query, note: Callable[[], object]) -> None:
        """Note an end, however long the database is away: nobody else would."""
        while not self._is_noted(query, note) and not self.stop.wait(RETRY_S):
            pass

    def _is_noted(self, query: Query, note: Callable[[], object]) -> bool:
        """Write into the database; whether it answered."""
        try:
            close_old_connections()
            note()
        except AWAY as error:
            log.warning("Query %s waits for the database: %s", query.pk, error)
            return False
        return True

    def _watch(self, query: Query, asking: threading.Thread, asked: _Asked) -> tuple[bool, bool]:
        """Wait for the answer as long as there is a use in it; whether it is wanted, and whether it is late."""
        began: float | None = None
        is_wanted, is_late = True, False
        while is_wanted and not (is_late or asked.under.is_ended or self.stop.is_set()):
            if not asking.is_alive():
                break
            asking.join(POLL_S)
            self.spark.touch()
            if began is None and asked.session is not None:
                began = time.monotonic()
            is_wanted = self._is_wanted(query, asked, is_running=began is not None)
            is_late = began is not None and time.monotonic() - began > self.time_limit_s
        return is_wanted, is_late

    def _is_wanted(self, query: Query, asked: _Asked, *, is_running: bool) -> bool:
        """Note how far it is; it is wanted, too, while the database cannot say so."""
        wanted = True

        def note() -> None:
            nonlocal wanted
            if is_running and not asked.is_shown:
                service.query_runs(query)
                asked.is_shown = True
            wanted = service.query_progress(query, self._progress(query) if is_running else 0.0)

        self._is_noted(query, note)
        return wanted

    def _ask(self, query: Query, asked: _Asked) -> None:
        """Let Spark answer; runs in a thread of its own, whose jobs can be cancelled."""
        from spark.query import QueryFailed, QueryLost, QueryStopped, QueryTooLarge
        from spark.walk import QueryRefused

        began = time.monotonic()
        try:
            session = self.spark.session()
            asked.session = session
            asked.answer = self._asked_of(session, query, asked)
        except QueryStopped:
            pass
        except QueryTooLarge:
            asked.error = self._too_large()
            self.spark.note_pressure()
        except QueryRefused as error:
            asked.state, asked.error = QueryState.REFUSED, str(error)
        except QueryFailed as error:
            asked.error = self._without_places(str(error))
        except (MasterAway, QueryLost) as error:
            asked.state, asked.error = QueryState.LOST, str(error)
        except (DatabaseError, LogError) as error:
            log.warning("Query %s could not be answered: %s", query.pk, error)
            asked.state, asked.error = QueryState.LOST, "A store does not answer; ask again."
        except Exception as error:
            if asked.under.course.is_over:
                return
            self.spark.failed_for_a_query(error, since=began)  # which ends Spark where Java has no memory
            if self.spark.was_broken_off(since=began):
                asked.state = QueryState.LOST
                asked.error = "Spark was ended, because another query did not stop; ask again."
            elif self.spark.was_stranded(since=began):
                asked.state = QueryState.LOST
                master = self.env.spark_master
                asked.error = str(MasterAway(master)) if masters.is_away(master) else STRANDED
            elif self.spark.has_died(since=began) or not self.spark.lives:
                asked.state = QueryState.LOST
                asked.error = (
                    "Spark ended while this ran, perhaps for want of memory; ask again, or for less."
                )
            else:
                log.error("Query %s failed: %s", query.pk, kinds(error))
                asked.error = "Spark could not carry it out; its log names the error."
        finally:
            connections.close_all()

    def _asked_of(self, session: "SparkSession", query: Query, asked: _Asked) -> "Answer":
        """Ask Spark, again where another query had the memory.

        Raises:
            QueryTooLarge: there is no memory for it.
            QueryLost: there was none because of others, again and again.
        """
        from spark import query as asking
        from spark.query import QueryLost, QueryTooLarge

        context = session.sparkContext
        for _ in range(TRIES):
            context.setJobGroup(group_of(query), f"query {query.pk}", interruptOnCancel=True)
            context.setLocalProperty(PROPERTY, asked.pool)
            try:
                return asking.ask(
                    session,
                    self.spark.settings(),
                    query.sql,
                    seen=self._seen(query),
                    known=self.spark.batches(),
                    limit=query.limit,
                    course=asked.under.course,
                )
            except QueryTooLarge:
                if asked.under.is_too_large or not self._heap.is_innocent(asked.under):
                    raise
        raise QueryLost(CROWDED_OUT)

    def _too_large(self) -> str:
        return (
            f"It needed more memory than Spark has here ({self.env.spark_memory}); narrow it by stream, key or time, "
            "take a LIMIT in a subquery, or keep fewer rows at once than collect_list, median or a cross join do. "
            "OKMQ_SPARK_MEMORY gives Spark more."
        )

    def _seen(self, query: Query) -> "Seen":
        from spark.tables import Seen

        registered = store.log().run(config.streams())
        streams = [
            each
            for each in registered
            if each.workspace_id == query.workspace_id
            and not each.internal
            and bearer.streams_cover(query.streams, each.name)
        ]
        ids = [each.stream_id for each in streams]
        return Seen(
            streams=streams,
            metrics_stream=next(
                (each for each in registered if each.internal and each.name == METRICS_STREAM), None
            ),
            rollups=lambda steps: rollups_of(ids, steps=steps),
            groups=lambda steps: groups_of(ids, steps=steps),
        )

    def _progress(self, query: Query) -> float:
        """The part of the tasks, as far as Spark has planned them, that are done."""
        from spark import watching

        return watching.progress(group_of(query))

    def _see_the_end(self, query: Query, asking: threading.Thread, asked: _Asked) -> None:
        """Have Spark stop, or end it."""
        course, session = asked.under.course, asked.session
        course.is_over = True
        if session is not None:
            self.spark.see_the_end(
                session,
                group=group_of(query),
                what=f"Query {query.pk}",
                is_at_work=lambda: course.is_in_spark,
                is_over=lambda: not asking.is_alive(),
                stop=self.stop,
            )

    def _without_places(self, sentence: str) -> str:
        """A sentence of Spark's without the folders of this machine."""
        for place in (self.env.history_url, str(self.env.data_dir)):
            sentence = sentence.replace(place, "…")
        return sentence


def group_of(query: Query) -> str:
    """The name under which Spark's jobs of a query are known."""
    return f"query-{query.pk}"
