"""How fast a stream moved in the last hours, live."""

from dataclasses import replace
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.live.live_ranges import live_range_of
from dashboard.live.stream_rates import RateChart, rate_chart_of
from dashboard.views.door import console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller
from streams.models import Stream


@console_page
def rates(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Messages in and out and bytes in, over a range that is in the address; htmx asks for what is usual."""
    context = stream_context(request, caller, name, tab="rates", may="observe")
    now = timezone.now()
    asked = live_range_of(request.GET, now=now)
    chart = rate_chart_of(caller, context["stream"], asked, now=now)
    usual = usual_in(context["stream"], chart, now=now)
    position = selectors.history_position(context["stream"]) if usual else None
    context |= {"usual": usual, "usual_position": position}
    if is_part(request) and "usual" in request.GET:
        answer = render(request, "dashboard/parts/usual.html", context | {"again": True})
    else:
        context |= {"asked": asked, "chart": chart if caller.may("read") else replace(chart, turns=[])}
        answer = render(request, "dashboard/stream/rates.html", context)
    answer["Vary"] = "HX-Request"
    return answer


def usual_in(stream: Stream, chart: RateChart, *, now: datetime) -> selectors.UsualNow | None:
    """What usually comes in at this hour beside what does now; None for a part of the past, and where nobody samples or
    the stream is not archived: then nobody counts it.
    """
    if not (chart.asked.is_live and stream.archive and selectors.sampling().is_going_on):
        return None
    return selectors.usual_now([stream.stream_id], rate=chart.lately, at=now)
