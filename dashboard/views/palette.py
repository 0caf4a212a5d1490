"""The search over everything: a page, and its list alone for the palette."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.palette import hits
from dashboard.views.door import base_url, console_page, is_part
from streams.access import Caller


@console_page
def palette(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Streams, groups, pages and actions that ``q`` finds."""
    question = request.GET.get("q", "")
    context = {
        "caller": caller,
        "question": question,
        "hits": hits(caller, question),
        "base_url": base_url(request),
    }
    template = "dashboard/parts/palette_hits.html" if is_part(request) else "dashboard/palette.html"
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    return answer
