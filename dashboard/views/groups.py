"""The groups of all streams, on one page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.group_list import group_page_of, group_query_of
from dashboard.group_rows import DOTS
from dashboard.views.door import base_url, console_page, is_part
from streams import selectors
from streams.access import Caller


@require_GET
@console_page
def groups(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Who reads what, and how that goes; the query string holds status, search, sort and page."""
    query = group_query_of(request.GET)
    found = selectors.groups_of(caller)
    context = {"section": "groups", "caller": caller, "query": query, "with_stream": True}
    if is_part(request):
        context["page"] = group_page_of(found, query)
        answer = render(request, "dashboard/parts/group_table.html", context)
    else:
        judged = selectors.groups_judged(found)
        counts = selectors.by_status(judged)
        context |= {
            "page": group_page_of(found, query, judged=judged),
            "statuses": [(status, DOTS.get(status, "empty"), n) for status, n in counts.items()],
            "base_url": base_url(request),
        }
        answer = render(request, "dashboard/groups.html", context)
    answer["Vary"] = "HX-Request"
    return answer
