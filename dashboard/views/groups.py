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
    context = {
        "section": "groups",
        "caller": caller,
        "query": query,
        "page": group_page_of(selectors.groups_of(caller), query),
        "with_stream": True,
    }
    if is_part(request):
        answer = render(request, "dashboard/parts/group_table.html", context)
    else:
        totals = selectors.group_totals(caller, most=0)
        context |= {
            "statuses": [(status, DOTS.get(status, "empty"), n) for status, n in totals.by_status.items()],
            "base_url": base_url(request),
        }
        answer = render(request, "dashboard/groups.html", context)
    answer["Vary"] = "HX-Request"
    return answer
