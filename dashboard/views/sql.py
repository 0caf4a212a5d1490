"""Everything ever published, asked in SQL: the editor, the answer as a grid, a chart and a file, saved queries."""

import json
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.history import answers
from dashboard.history.sql_forms import QueryForm
from dashboard.quantities import number_of
from dashboard.templatetags.shell import lacks_for_all
from dashboard.views.door import base_url, console_action, console_form, console_page, is_part
from dashboard.views.stream_runs import obstacle
from streams import selectors
from streams.access import Caller, query_for, stream_for
from streams.errors import Refusal
from streams.models import Query, QueryState
from streams.services import queries as service
from streams.services.answers import answer_publish

TABLES = {
    "messages": "stream, offset, timestamp, id, key, headers, body, bytes",
    "metrics": "stream, time, offset, messages, bytes, committed, lag, messages_in, bytes_in, messages_out",
    "rollups": "stream, step, start, messages, bytes, ids, keys, missing, size_p50, size_p90, size_p99, size_max, "
    "duplicates, removed",
    "groups": "stream, group, step, start, samples, lag_p50, lag_p90, lag_p99, lag_max, lag_seconds_p50, "
    "lag_seconds_p90, lag_seconds_p99, lag_seconds_max, ack_seconds_p50, ack_seconds_p90, ack_seconds_p99, "
    "ack_seconds_max, deliveries, acked, redelivered, dead_lettered, lost",
}
EXAMPLES = (
    "SELECT date_trunc('HOUR', timestamp) AS hour, count(*) AS messages, sum(bytes) AS bytes\n"
    "FROM messages GROUP BY ALL ORDER BY hour",
    "SELECT * FROM messages ORDER BY timestamp DESC LIMIT 20",
    "SELECT key, count(*) AS messages, sum(bytes) AS bytes\nFROM messages GROUP BY key ORDER BY messages DESC",
)
LATEST_SHOWN = 10


@console_form
def editor(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The editor; a POST asks, or saves."""
    caller.demand("read")
    if request.method == "GET":
        begin = _begin(request, caller)
        return _page(request, caller, QueryForm(initial={"sql": begin, "limit": service.DEFAULT_ROWS}))
    form = QueryForm(request.POST)
    if not form.is_valid():
        return _page(request, caller, form)
    asked = form.cleaned_data
    if "save" in request.POST:
        if not asked["name"].strip():
            form.add_error("name", _("Give it a name to save it under."))
            return _page(request, caller, form)
        service.saved_query_put(caller, name=asked["name"], sql=asked["sql"])
        messages.success(request, _("Query %(name)s is saved.") % {"name": asked["name"]})
        return _page(request, caller, form)
    query = service.query_ask(caller, sql=asked["sql"], limit=asked["limit"])
    return redirect("dashboard:sql_answer", query.pk)


@console_page
def answer(request: HttpRequest, caller: Caller, query_id: int) -> HttpResponse:
    """A query with its answer, or how far it is; htmx asks for these alone, so that what is being written stays."""
    query = query_for(caller, query_id)
    context = answer_context(request, query) | {"may_cancel": service.may_cancel(caller, query)}
    if is_part(request):
        context |= {"latest": _latest(caller), "may_publish": caller.may("publish")}
        return render(request, "dashboard/parts/answer_now.html", context)
    return _page(request, caller, QueryForm(initial={"sql": query.sql, "limit": query.limit}), **context)


@console_action
def cancel(request: HttpRequest, caller: Caller, query_id: int) -> HttpResponse:
    """End a query that is not answered yet."""
    query = query_for(caller, query_id)
    service.query_cancel(caller, query)
    return redirect("dashboard:sql_answer", query.pk)


@console_page
def download(request: HttpRequest, caller: Caller, query_id: int) -> StreamingHttpResponse:
    """The answer as a CSV file."""
    query = query_for(caller, query_id)
    if not query.columns:
        raise Refusal("query_not_found", "There is no result of this query, or it is no longer kept.")
    return StreamingHttpResponse(
        answers.csv_of(query),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="query-{query.pk}.csv"'},
    )


@console_action
def publish(request: HttpRequest, caller: Caller, query_id: int) -> HttpResponse:
    """Publish the answer into a stream; what is wrong is said above it."""
    caller.demand("publish")
    query = query_for(caller, query_id)
    name = request.POST.get("stream", "").strip()
    try:
        stream = stream_for(caller, name, may="publish")
        done = answer_publish(query, stream, key=request.POST.get("key") or None)
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("dashboard:sql_answer", query.pk)
    told = ngettext(
        "%(stored)s message was published to %(name)s; rows that it already had: %(known)s.",
        "%(stored)s messages were published to %(name)s; rows that it already had: %(known)s.",
        done.stored,
    )
    counts = {"stored": formats.count(done.stored), "known": formats.count(done.known)}
    messages.success(request, told % {"name": name, **counts})
    if done.truncated:
        messages.warning(
            request, _("The query has more rows than its limit let into the answer; they were not published.")
        )
    return redirect("dashboard:sql_answer", query.pk)


@console_action
def forget(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Let go of a saved query."""
    name = request.POST.get("name", "")
    if service.saved_query_delete(caller, name=name):
        messages.success(request, _("Saved query %(name)s was deleted.") % {"name": name})
    return redirect("dashboard:sql")


def answer_context(request: HttpRequest, query: Query) -> dict[str, Any]:
    """What the part with the answer needs."""
    context: dict[str, Any] = {"query": query}
    if query.state == QueryState.SUCCEEDED:
        found = answers.rows_kept(query)
        pages = Paginator(found, answers.page_rows(query))
        page = pages.page(number_of(request.GET.get("page"), default=1, low=1, high=pages.num_pages))
        chart = answers.charts_of(query, found)
        context |= {
            "headings": answers.headings(query),
            "page": page,
            "rows": answers.cells(query, page),
            "chart": chart,
            "seed": json.dumps(chart),
            "series": [(f"s{n}", name, n + 1) for n, name in enumerate(chart["names"])] if chart else [],
        }
    return context


def _begin(request: HttpRequest, caller: Caller) -> str:
    """The text that the editor begins with: a saved query, one about a stream, or an example."""
    for saved in selectors.queries_saved(caller):
        if saved.name == request.GET.get("saved"):
            return saved.sql
    stream = request.GET.get("stream", "")
    if stream:
        name = stream.replace("\\", "\\\\").replace("'", "\\'")
        return f"SELECT * FROM messages\nWHERE stream = '{name}'\nORDER BY offset DESC LIMIT 100"
    return EXAMPLES[0]


def _latest(caller: Caller) -> list[Query]:
    return selectors.queries_latest(caller, limit=LATEST_SHOWN)


def _page(request: HttpRequest, caller: Caller, form: QueryForm, **more: Any) -> HttpResponse:
    context = {
        "section": "sql",
        "caller": caller,
        "form": form,
        "tables": TABLES.items(),
        "examples": EXAMPLES,
        "saved": selectors.queries_saved(caller),
        "latest": _latest(caller),
        "needs_to_save": lacks_for_all(caller, "manage"),
        "may_publish": caller.may("publish"),
        "obstacle": obstacle(),
        "base_url": base_url(request),
        **more,
    }
    return render(request, "dashboard/sql.html", context, status=422 if form.errors else 200)
