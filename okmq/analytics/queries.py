"""Hands out the queries that web processes put into the database, beside the runs of the same process."""

import logging
import threading
import time

from django.db import DatabaseError, close_old_connections, connections

from okmq.analytics.answering import POLL_S, RETRY_S, Answering
from okmq.analytics.causes import kinds
from okmq.analytics.pools import BESIDE, FIRST
from streams.log.errors import LogError
from streams.models import Query
from streams.services import queries as service

AT_ONCE = 4 * service.MOST_AT_ONCE
"""In all; so several workspaces have theirs at the same time."""

log = logging.getLogger(__name__)


class Queries:
    """Takes queries from the database and has them answered, each in a thread of its own.

    Args:
        answering: answers them; its ``stop`` ends ``serve``, and what is under way is marked at the next start.
    """

    def __init__(self, answering: Answering) -> None:
        self.stop = answering.stop
        self.answering = answering
        self._threads: list[threading.Thread] = []
        self._serving: threading.Thread | None = None
        self._taking = threading.Lock()
        self._held: dict[int, int] = {}
        """Query → workspace, of those that were taken and are not answered."""

        self._may_be_left = False

    def start(self) -> None:
        """Serve in a thread of its own; each query has another."""
        self._serving = threading.Thread(target=self.serve, name="queries", daemon=True)
        self._serving.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads, after they were told to stop."""
        deadline = time.monotonic() + timeout_s
        for thread in ([self._serving] if self._serving else []) + self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def serve(self) -> None:
        """Hand out until told to stop; a database or a store that does not answer is waited for."""
        while not self.stop.is_set():
            try:
                close_old_connections()
                self._tell_what_is_left()
                self.hand_out()
                self.stop.wait(POLL_S)
            except (DatabaseError, LogError) as error:
                self._wait(error)
            except Exception:  # all that come after it would wait
                log.exception("Queries could not be handed out.")
                self.stop.wait(RETRY_S)
        connections.close_all()

    def hand_out(self) -> None:
        """Begin threads for the queries that wait, as many as there may be.

        None is begun while one is being ended: where that does not stop, Spark is ended with all that it does.
        """
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        while len(self._threads) < AT_ONCE and not self.answering.is_ending and (taken := self._take()):
            thread = threading.Thread(target=self._serve_one, args=taken, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve_one(self, query: Query, rank: int) -> None:
        try:
            self._answer_taken(query, rank)
        except (DatabaseError, LogError) as error:
            self._wait(error)
        except Exception as error:
            log.error("Query %s could not be answered: %s", query.pk, kinds(error))
        finally:
            connections.close_all()

    def _wait(self, error: Exception) -> None:
        self._may_be_left = True
        if not self.stop.is_set():
            log.warning("Queries wait: %s", error)
        self.stop.wait(RETRY_S)

    def answer_next(self) -> bool:
        """Answer the query whose turn it is; whether there was one."""
        taken = self._take()
        if taken is None:
            return False
        self._answer_taken(*taken)
        return True

    def _take(self) -> tuple[Query, int] | None:
        """The query whose turn it is, and the rank of its pool."""
        with self._taking:
            query = service.query_take(under_way=list(self._held.values()))
            if query is None:
                return None
            rank = BESIDE if query.workspace_id in self._held.values() else FIRST
            self._held[query.pk] = query.workspace_id
            return query, rank

    def _answer_taken(self, query: Query, rank: int) -> None:
        try:
            self.answering.answer(query, rank=rank)
        finally:
            del self._held[query.pk]

    def _tell_what_is_left(self) -> None:
        """End what was taken when the database went away, so that nobody has it."""
        if self._may_be_left:
            with self._taking:
                service.queries_lost(but=list(self._held), why=service.LEFT)
                self._may_be_left = False
