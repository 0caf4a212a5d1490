"""The groups of all streams, on one page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard import exports
from dashboard.groups.group_rows import DOTS
from dashboard.languages import english
from dashboard.lists.group_list import arranged, group_page_of, group_query_of
from dashboard.views.door import base_url, console_page, is_part
from streams import selectors
from streams.access import Caller


@console_page
def groups(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Who reads what, and how that goes; the query string holds status, search, sort and page."""
    query = group_query_of(request.GET)
    found = selectors.groups_of(caller)
    judged = selectors.groups_judged(found)
    counts = selectors.by_status(judged)
    context = {
        "section": "groups",
        "caller": caller,
        "query": query,
        "with_stream": True,
        "page": group_page_of(found, query, judged=judged),
        "statuses": [(status, DOTS[status], n) for status, n in counts.items()],
        "sums": selectors.sums_of(judged),
        "at_ms": selectors.sampling().at_ms,
        "base_url": base_url(request),
    }
    template = "dashboard/parts/groups_now.html" if is_part(request) else "dashboard/groups.html"
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    return answer


EXPORTED = (
    "stream",
    "group",
    "status",
    "reason",
    "lag",
    "lag_seconds",
    "in_flight",
    "dead_letters",
    "done_in_seconds",
)


@console_page
def export(request: HttpRequest, caller: Caller) -> HttpResponse:
    """All groups that match as CSV, in the order of the list: as the worker saw them last, one read of each."""
    lines = [exports.csv_line(EXPORTED)]
    for each in arranged(selectors.groups_of(caller), group_query_of(request.GET)):
        verdict = each.verdict
        with english():
            reason = verdict.reason
        values = (
            each.stream,
            each.name,
            verdict.status,
            reason,
            *(each.lag, each.lag_seconds, each.pending, each.dead_letters, verdict.eta_seconds),
        )
        lines.append(exports.csv_line(["" if value is None else str(value) for value in values]))
    answer = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="groups.csv"'
    return answer
