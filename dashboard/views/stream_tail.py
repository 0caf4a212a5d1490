"""The newest messages as they arrive: the page hears of them through its socket and asks here for the rows."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.message_rows import MessageRow
from dashboard.quantities import number_of
from dashboard.views.door import console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, stream_for

ROWS_AT_ONCE = 100
RING = 500
"""Rows that the page keeps; the oldest go."""

MOST_OFFSET = 2**63 - 1


@never_cache
@require_GET
@console_page
def tail(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The page, or for its script the newest rows after an offset, newest first, and how many were left out."""
    if is_part(request):
        stream = stream_for(caller, name, may="read")
        form = BrowseForm(request.GET)
        if not form.is_valid():
            return HttpResponse(status=422)
        after = number_of(request.GET.get("after"), default=0, low=0, high=MOST_OFFSET)
        found = selectors.messages_found(
            stream, start=after + 1, limit=ROWS_AT_ONCE, wanted=form.wanted(), newest_first=True
        )
        left_out = selectors.messages_between(stream, found.rest)[0] if found.rest else 0
        context = {
            "stream": stream,
            "rows": [MessageRow(message, form.columns) for message in found.messages],
            "left_out": left_out,
            "width": 5 + len(form.columns),
        }
        return render(request, "dashboard/parts/tail_rows.html", context)
    context = stream_context(request, caller, name, tab="messages")
    form = BrowseForm(request.GET)
    context |= {"form": form, "ring": RING, "filtered": form.is_valid() and form.is_filtered}
    return render(request, "dashboard/stream/tail.html", context, status=200 if form.is_valid() else 422)
