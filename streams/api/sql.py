"""Everything ever published, asked in SQL."""

import json
import re
import time
from typing import ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import query_for, stream_for
from streams.api.base import ApiView
from streams.api.fields import Moment, Name, Strict, Text, WholeNumber
from streams.api.operation import Operation
from streams.errors import Refusal
from streams.models import UNFINISHED, Query, QueryState
from streams.services import queries as service
from streams.services.answers import answer_publish

PATH = "/api/v1/analytics/query"

LONGEST_COLUMN = 1000

WAIT_S = 10.0
"""How long a question waits for its answer before it is told where to ask for it."""

POLL_S = 0.1
REFUSALS: dict[str, str] = {
    QueryState.REFUSED: "query_refused",
    QueryState.FAILED: "query_failed",
    QueryState.LOST: "query_lost",
    QueryState.CANCELLED: "query_cancelled",
}
EXAMPLE = (
    "SELECT stream, date_trunc('hour', timestamp) AS hour, count(*) AS messages "
    "FROM messages WHERE key LIKE 'orders.%' GROUP BY ALL ORDER BY hour"
)


class QueryWanted(Strict):
    """A question."""

    sql = Text(
        max_length=service.LONGEST_SQL,
        help_text="One SELECT over `messages`, `metrics`, `rollups` and `groups`.",
    )
    limit = WholeNumber(
        max_value=service.MOST_ROWS, default=service.DEFAULT_ROWS, help_text="How many rows at most."
    )


class QueryColumn(serializers.Serializer):  # type: ignore[type-arg]
    """A column of an answer."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="Spark's type, such as `bigint` or `map<string,string>`.")


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {}}})
class Rows(serializers.Field):  # type: ignore[type-arg]
    """Rows of values."""


class QueryAnswer(serializers.Serializer):  # type: ignore[type-arg]
    """An answer; a number keeps its digits, a time is RFC 3339 in UTC, and not-a-number is a string."""

    columns = QueryColumn(many=True)
    rows = Rows()
    truncated = serializers.BooleanField(help_text="There was more, by rows or beyond 16 MiB.")
    elapsed = serializers.FloatField(help_text="Seconds from the question to the answer.")


class QueryObject(serializers.Serializer):  # type: ignore[type-arg]
    """A query, without its answer."""

    id = serializers.IntegerField()
    url = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=QueryState.values)
    progress = serializers.FloatField(help_text="0 to 1, by Spark's tasks.")
    sql = serializers.CharField()
    asked_by = serializers.CharField()
    created_at = Moment()
    finished_at = Moment(allow_null=True)
    error = serializers.SerializerMethodField(
        help_text="Why there is no answer, which an erasure in the workspace takes; or null."
    )

    def get_url(self, query: Query) -> str:
        return query_url(query, self.context["request"])

    def get_error(self, query: Query) -> str | None:
        return query.error or None


def query_url(query: Query, request: Request) -> str:
    """Where to ask for the answer."""
    return str(request.build_absolute_uri(f"{PATH}/{query.pk}"))


class SqlQueriesView(ApiView):
    """``/analytics/query``"""

    operations: ClassVar = {
        "GET": Operation(
            id="queries_list",
            summary="List the queries of the last day, newest first",
            scope="read",
            answer=QueryObject,
            many=True,
            description="The newest 100, without their answers.",
        ),
        "POST": Operation(
            id="query_ask",
            summary="Ask in SQL",
            scope="read",
            body=QueryWanted,
            answer=QueryAnswer,
            also={202: "Not answered within 10 s: `{id, url, state, …}`, to be asked for at `url`."},
            refusals=(
                "query_refused",
                "query_failed",
                "query_cancelled",
                "query_lost",
                "history_off",
            ),
            description=(
                "One reading query of Spark's SQL over everything ever published: `messages` is the history and "
                "the live tail, up to the last publish that was acknowledged; `metrics` are the live samples of "
                "the last hours, `rollups` what the history counted, `groups` how groups stood by hour and day. A "
                "token that is narrowed to streams sees these alone."
            ),
            examples={"hours": {"sql": EXAMPLE}, "newest": {"sql": "SELECT * FROM messages", "limit": 10}},
        ),
    }

    def get(self, request: Request) -> Response:
        return Response(self.rows(QueryObject, selectors.queries_latest(self.caller, limit=100)))

    def post(self, request: Request) -> HttpResponse | Response:
        wanted = self.sent(QueryWanted)
        query = service.query_ask(self.caller, sql=wanted["sql"], limit=wanted["limit"])
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and not _is_finished(query):
            time.sleep(POLL_S)
        return answered(query, request)


class SqlQueryView(ApiView):
    """``/analytics/query/{id}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="query_get",
            summary="Get the answer to a query",
            scope="read",
            answer=QueryAnswer,
            also={202: "Not answered yet."},
            refusals=(
                "query_not_found",
                "query_refused",
                "query_failed",
                "query_cancelled",
                "query_lost",
            ),
            description="An answer is kept for an hour.",
        ),
        "DELETE": Operation(
            id="query_cancel",
            summary="Cancel a query",
            scope="read",
            status=204,
            refusals=("query_not_found",),
            description=(
                "Its jobs in Spark end. One that is answered already is let be. "
                "One that somebody else asked needs the scope `manage`, too."
            ),
        ),
    }

    def get(self, request: Request, query_id: str) -> HttpResponse | Response:
        return answered(query_for(self.caller, number_of(query_id)), request)

    def delete(self, request: Request, query_id: str) -> Response:
        service.query_cancel(self.caller, query_for(self.caller, number_of(query_id)))
        return Response(status=204)


class PublishWanted(Strict):
    """Where the rows of an answer are to go."""

    stream = Name(help_text="The stream that they are published into.")
    key = Text(
        max_length=LONGEST_COLUMN,
        required=False,
        help_text="The column whose values, as text, are the messages' keys; null is none.",
    )


class PublishedObject(serializers.Serializer):  # type: ignore[type-arg]
    """What became of the rows."""

    stored = serializers.IntegerField(help_text="Messages stored now.")
    known = serializers.IntegerField(help_text="Rows that the stream had from an earlier time.")
    truncated = serializers.BooleanField(
        help_text="Whether the query has more rows than its `limit` let into its answer: they were not published."
    )
    first_offset = serializers.IntegerField(allow_null=True)
    last_offset = serializers.IntegerField(allow_null=True)


class SqlQueryPublishView(ApiView):
    """``/analytics/query/{id}/publish``"""

    operations: ClassVar = {
        "POST": Operation(
            id="query_publish",
            summary="Publish the answer to a query into a stream",
            scope="publish",
            body=PublishWanted,
            answer=PublishedObject,
            refusals=("query_not_found", "stream_not_found", "message_too_large", "stream_full"),
            description=(
                "A row is a message: an object of its values, digits as Spark wrote them, with the id "
                "`query-{id}-{row}`. Where it broke off, `details.stored` says how many were new until then, and it "
                "may be asked again: nothing is stored twice. Rows that make no message are refused before anything "
                "is stored."
            ),
            examples={"totals": {"stream": "totals", "key": "stream"}},
        ),
    }

    def post(self, request: Request, query_id: str) -> Response:
        query = query_for(self.caller, number_of(query_id))
        wanted = self.sent(PublishWanted)
        stream = stream_for(self.caller, wanted["stream"], may="publish")
        return Response(PublishedObject(answer_publish(query, stream, key=wanted.get("key"))).data)


def answered(query: Query, request: Request) -> HttpResponse | Response:
    """What there is to say of a query now.

    Raises:
        Refusal: it has ended without an answer.
    """
    query.refresh_from_db()
    if query.state in UNFINISHED:
        shown = QueryObject(query, context={"request": request}).data
        return Response(shown, status=202, headers={"Location": shown["url"], "Retry-After": "1"})
    if query.state != QueryState.SUCCEEDED:
        raise Refusal(REFUSALS[query.state], query.error or "The query was cancelled.", query=query.pk)
    if not query.columns:
        raise Refusal("query_not_found", "The result is no longer kept; run the query again.")
    return HttpResponse(answer_of(query), content_type="application/json")


def answer_of(query: Query) -> bytes:
    """The answer as JSON; the rows are text already, and stay as Spark wrote them."""
    columns = [{"name": name, "type": kind} for name, kind in query.columns]
    rest = json.dumps({"truncated": query.truncated, "elapsed": query.elapsed_s})
    return f'{{"columns": {json.dumps(columns)}, "rows": {query.rows}, {rest[1:]}'.encode()


def number_of(text: str) -> int | None:
    """An id from a path; None for what is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _is_finished(query: Query) -> bool:
    state = Query.objects.filter(pk=query.pk).values_list("state", flat=True).first()
    return state not in UNFINISHED
