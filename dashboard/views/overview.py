"""The first page: how everything stands, and what needs attention."""

import time

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard import rates
from dashboard.attention import concerns
from dashboard.stream_rows import FULL_FROM
from dashboard.views.door import base_url, console_page
from streams import selectors
from streams.access import Caller
from streams.upkeep import processes

EVENTS_SHOWN = 8
CONCERNS_SHOWN = 50


@require_GET
@console_page
def overview(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Totals, rates, processes, concerns, newest events; with no stream yet, how to begin."""
    filling = selectors.streams_filling(caller, used=FULL_FROM, most=CONCERNS_SHOWN)
    running = processes.read(settings.ENV.processes_file)
    series = rates.workspace_series(caller.workspace)
    return render(
        request,
        "dashboard/overview.html",
        {
            "section": "overview",
            "caller": caller,
            "totals": rates.totals(caller),
            "series": series,
            "concerns": concerns(processes=running, rows=rates.rows(filling), now_s=time.time()),
            "processes": running,
            "events": selectors.events_latest(caller.workspace, limit=EVENTS_SHOWN),
            "demo": selectors.demo_of(caller.workspace),
            "base_url": base_url(request),
        },
    )
