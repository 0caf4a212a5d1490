"""Questions in SQL: put into the queue, taken from it, answered, cancelled, forgotten; and kept under a name."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, IntegerField, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from streams.access import Caller
from streams.errors import Refusal
from streams.models import UNFINISHED, Query, QueryState, SavedQuery
from streams.services.events import event_record
from streams.services.storable import storable
from streams.services.turns import next_turn
from streams.services.workspace_lock import workspace_held

LONGEST_SQL = 20_000
"""Characters of a query."""

MOST_ROWS = 10_000
DEFAULT_ROWS = 1_000

MOST_UNFINISHED = 10
"""Queries of one workspace that wait or run; each may hold a request for as long as it waits."""

MOST_AT_ONCE = 2
"""Queries of one workspace that run; those of others have their own turn meanwhile."""

KEPT = timedelta(hours=24)
"""How long a query and who asked it are kept."""

ANSWER_KEPT = timedelta(hours=1)
"""How long an answer can be asked for."""

ANSWERS_BYTES_OF_WORKSPACE = 64 * 1024 * 1024
ANSWERS_BYTES = 256 * 1024 * 1024
"""So much of answers is kept at once, of one workspace and in all; one answer has at most 16 MiB (``spark.query``)."""

LOST = "The analytics process ended while this ran; run it again."
LEFT = "The database went away before this was begun; run it again."


def query_ask(caller: Caller, *, sql: str, limit: int = DEFAULT_ROWS) -> Query:
    """Queue a query.

    Raises:
        Refusal: ``forbidden`` without the scope ``read``; ``history_off`` where nothing would answer;
            ``rate_limited`` while too many of the workspace are not answered yet.
    """
    caller.demand("read")
    return query_queue(caller, sql=sql, limit=limit, streams=caller.streams)


def query_queue(
    caller: Caller, *, sql: str, limit: int, streams: Iterable[str], counts_to: int | None = None
) -> Query:
    """Queue a query in a caller's name, whatever they may read.

    Args:
        streams: name patterns that narrow it; none is every stream of the workspace.
        counts_to: of the preview of an erasure, the offset up to which it counts.

    Raises:
        Refusal: ``history_off``; ``rate_limited``.
    """
    if not settings.ENV.history:
        raise Refusal("history_off", "The history is switched off (OKMQ_HISTORY=off).")
    with transaction.atomic():
        workspace_held(caller.workspace)  # who counts together must not exceed together
        waiting = Query.objects.filter(workspace=caller.workspace, state__in=UNFINISHED).count()
        if waiting >= MOST_UNFINISHED:
            raise Refusal(
                "rate_limited",
                f"{waiting} queries of this workspace are still running; wait for one, or cancel one.",
                headers={"Retry-After": "5"},
            )
        return Query.objects.create(
            workspace=caller.workspace,
            sql=sql,
            limit=limit,
            streams=list(streams),
            counts_to=counts_to,
            asked_by=caller.actor.name,
        )


def query_cancel(caller: Caller, query: Query) -> None:
    """End a query that is not answered yet; one that is running within a second or so.

    Raises:
        Refusal: ``forbidden`` for another than who asked it, unless they may manage.
    """
    if not may_cancel(caller, query):
        raise Refusal(
            "forbidden",
            f"{query.asked_by} asked this; only they, or who has the scope 'manage', may cancel it.",
            scope="manage",
        )
    with transaction.atomic():
        if not _finish(query, QueryState.CANCELLED, only=[QueryState.QUEUED]):
            Query.objects.filter(pk=query.pk, state__in=UNFINISHED).update(cancel=True)


def may_cancel(caller: Caller, query: Query) -> bool:
    """Whether a caller may end a query: one of their own (of a token, one of its name), or any if they may manage."""
    return caller.may("manage") or caller.actor.name == query.asked_by


def query_take(*, under_way: Collection[int] = ()) -> Query | None:
    """The query whose turn it is, now starting; None where there is none.

    Args:
        under_way: the workspace of each that was taken and is not over; one that was cancelled may go on for seconds.
    """
    queued = Query.objects.filter(state=QueryState.QUEUED).order_by("id")
    waiting = list(queued.values_list("pk", "workspace_id"))
    turn = next_turn(waiting, under_way, most=MOST_AT_ONCE)
    if turn is None:  # the look is cheap, the lock is not
        return None
    with transaction.atomic():
        query = queued.select_for_update().select_related("workspace").filter(pk=turn).first()
        if query is not None:
            query.state, query.started_at = QueryState.STARTING, timezone.now()
            query.save(update_fields=["state", "started_at"])
        return query


def query_runs(query: Query) -> None:
    """Spark is there."""
    Query.objects.filter(pk=query.pk, state=QueryState.STARTING).update(state=QueryState.RUNNING)


def query_progress(query: Query, progress: float) -> bool:
    """Note how far a query is, 0 to 1; whether it is still wanted."""
    held = Query.objects.filter(pk=query.pk, state__in=UNFINISHED, cancel=False)
    if progress > query.progress:
        query.progress = progress
        return bool(held.update(progress=progress))
    return held.exists()


def query_answer(
    query: Query, *, columns: Iterable[tuple[str, str]], rows: Sequence[str], truncated: bool
) -> None:
    """Keep the answer, and let go of the oldest where there are too many; each row is the JSON text of an array."""
    with transaction.atomic():
        _finish(
            query,
            QueryState.SUCCEEDED,
            columns=[[storable(name), storable(kind)] for name, kind in columns],
            rows=f"[{','.join(rows)}]",
            row_count=len(rows),
            truncated=truncated,
            progress=1.0,
        )
        _answers_bound()


def query_end(query: Query, state: QueryState, *, error: str = "") -> None:
    """End a query without an answer."""
    _finish(query, state, error=storable(error))


def queries_lost(*, but: Collection[int] = (), why: str = LOST) -> int:
    """End the queries that were taken and that nobody works on; returns how many.

    Args:
        but: those that somebody works on.
        why: a sentence.
    """
    held = Query.objects.filter(state__in=[QueryState.STARTING, QueryState.RUNNING]).exclude(pk__in=but)
    return held.update(state=QueryState.LOST, error=why, finished_at=timezone.now())


def queries_refuse(*, reason: str) -> int:
    """End the queries that nothing will answer, with the reason; returns how many."""
    held = Query.objects.filter(state=QueryState.QUEUED)
    return held.update(state=QueryState.LOST, error=reason, finished_at=timezone.now())


def queries_forget() -> None:
    """Let go of answers, and later of queries, that are old."""
    now = timezone.now()
    _answers_let_go(_with_answer().filter(finished_at__lt=now - ANSWER_KEPT))
    Query.objects.filter(created_at__lt=now - KEPT).delete()


def saved_query_put(caller: Caller, *, name: str, sql: str) -> SavedQuery:
    """Keep a query under a name, in place of what stood there.

    Raises:
        Refusal: ``forbidden`` without the scope ``manage``, or for a caller that is narrowed to streams.
    """
    caller.demand("manage")
    caller.demand_every_stream()
    with transaction.atomic():
        held = SavedQuery.objects.filter(workspace=caller.workspace, name=name).first()
        saved, _ = SavedQuery.objects.update_or_create(
            workspace=caller.workspace, name=name, defaults={"sql": sql, "saved_by": caller.actor.name}
        )
        if held is None or held.sql != sql:
            event_record(
                caller.workspace,
                kind="history.query_saved",
                actor=caller.actor,
                before=None if held is None else {"sql": held.sql},
                after={"sql": sql},
                summary=f"Query {name} was saved.",
            )
    return saved


def saved_query_delete(caller: Caller, *, name: str) -> bool:
    """Let go of a saved query; whether there was one.

    Raises:
        Refusal: as ``saved_query_put``.
    """
    caller.demand("manage")
    caller.demand_every_stream()
    with transaction.atomic():
        held = SavedQuery.objects.filter(workspace=caller.workspace, name=name).first()
        if held is None:
            return False
        held.delete()
        event_record(
            caller.workspace,
            kind="history.query_deleted",
            actor=caller.actor,
            before={"sql": held.sql},
            summary=f"Query {name} was deleted.",
        )
    return True


def _finish(
    query: Query, state: QueryState, *, only: Sequence[QueryState] = UNFINISHED, **fields: object
) -> bool:
    """Take a query to an end, once; whether it was this call."""
    held = Query.objects.filter(pk=query.pk, state__in=only)
    return bool(held.update(state=state, finished_at=timezone.now(), **fields))


class _Bytes(Func):
    """How many bytes a text has."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra_context: Any
    ) -> tuple[str, Any]:
        """SQLite has that function since 3.43."""
        template = "LENGTH(CAST(%(expressions)s AS BLOB))"
        return self.as_sql(compiler, connection, template=template, **extra_context)


def _with_answer() -> QuerySet[Query]:
    return Query.objects.filter(state=QueryState.SUCCEEDED).exclude(rows="[]")


def _answers_let_go(queries: QuerySet[Query]) -> None:
    queries.update(rows="[]", columns=[])


def _answers_bound() -> None:
    """Let go of the answers beyond what may be kept; the newest stays."""
    newest_first = _with_answer().order_by("-finished_at", "-id")
    sizes = newest_first.values_list("pk", "workspace_id", _Bytes("rows"))
    in_all, of, beyond = 0, Counter[int](), list[int]()
    for n, (pk, workspace_id, size) in enumerate(sizes):
        of[workspace_id] += size
        in_all += size if of[workspace_id] <= ANSWERS_BYTES_OF_WORKSPACE else 0
        if n and (of[workspace_id] > ANSWERS_BYTES_OF_WORKSPACE or in_all > ANSWERS_BYTES):
            beyond.append(pk)
    if beyond:
        _answers_let_go(Query.objects.filter(pk__in=beyond))
