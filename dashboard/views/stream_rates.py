"""How fast a stream moved in the last hours, live."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.live.live_ranges import live_range_of
from dashboard.live.stream_rates import rate_chart_of
from dashboard.views.door import console_page
from dashboard.views.stream_page import stream_context
from streams.access import Caller


@console_page
def rates(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Messages in and out and bytes in, over a range that is in the address."""
    context = stream_context(request, caller, name, tab="rates", may="observe")
    now = timezone.now()
    asked = live_range_of(request.GET, now=now)
    chart = rate_chart_of(context["stream"], asked, now=now)
    context |= {"asked": asked, "chart": chart if caller.may("read") else replace(chart, turns=[])}
    return render(request, "dashboard/stream/rates.html", context)
