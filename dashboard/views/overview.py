"""The first page: how everything stands, and what needs attention."""

import time
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard import timelines
from dashboard.attention import concerns
from dashboard.groups.group_rows import DOTS
from dashboard.lists.event_rows import folded
from dashboard.live import rates
from dashboard.live.live_ranges import ONLY_DEFAULT, live_range_of
from dashboard.stream_rows import FULL_FROM
from dashboard.views.door import base_url, console_page, is_part
from streams import selectors
from streams.access import Caller
from streams.models import Stream
from streams.upkeep import processes

EVENTS_SHOWN = 8
EVENTS_READ = 200
"""Events of one kind and place that follow each other are one row: so many are read to fill the rows."""

CONCERNS_SHOWN = 50
GAP_S = 5
"""The sums come every second: where they did not for so long, nobody knows."""

MOST_STREAMS = 500
"""Of a workspace with more streams what is usual is not said: a first page that waits for it helps nobody."""


@require_GET
@console_page
def overview(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Totals, rates, processes, concerns, newest events; with no stream yet, how to begin. htmx asks for what has no
    socket of its own: groups, concerns and events.
    """
    if is_part(request):
        answer = render(request, "dashboard/parts/attention.html", _attention(caller))
    else:
        series = rates.workspace_series(caller.workspace)
        asked = live_range_of(request.GET, now=timezone.now(), ranges=ONLY_DEFAULT)
        shown = series if asked.is_live else series.within(asked.since_ms / 1000, asked.until_ms / 1000)
        turns = timelines.turns_in(caller.workspace, since=asked.since, until=asked.until)
        context = {
            "section": "overview",
            "caller": caller,
            "totals": rates.totals(caller),
            "asked": asked,
            "turns": turns,
            "minutes": shown.by_minute,
            "seed": asked.seed(shown.times, turns, step_s=1) | shown.lines | {"gap_s": GAP_S},
            "usual": usual_in(caller, rate=series.mean_in),
            "demo": selectors.demo_of(caller.workspace),
            "base_url": base_url(request),
        }
        answer = render(request, "dashboard/overview.html", context | _attention(caller))
    answer["Vary"] = "HX-Request"
    return answer


def usual_in(caller: Caller, *, rate: float) -> selectors.UsualNow | None:
    """What usually comes in at this hour, over all streams that the archive counts, beside what does now."""
    archived = Stream.objects.filter(workspace=caller.workspace, internal=False, archive=True)
    ids = list(archived.values_list("stream_id", flat=True)[:MOST_STREAMS])
    return selectors.usual_now(ids, rate=rate, at=timezone.now()) if len(ids) < MOST_STREAMS else None


def _attention(caller: Caller) -> dict[str, Any]:
    filling = selectors.streams_filling(caller, used=FULL_FROM, most=CONCERNS_SHOWN)
    groups = selectors.group_totals(caller)
    running = processes.read(settings.ENV.processes_file)
    return {
        "processes": running,
        "groups": groups,
        "at_ms": int(time.time() * 1000),
        "statuses": [(status, DOTS[status], count) for status, count in groups.by_status.items()],
        "concerns": concerns(
            processes=running, rows=rates.rows(filling), groups=groups.troubled, now_s=time.time()
        )[:CONCERNS_SHOWN],
        "events": folded(selectors.events_latest(caller.workspace, limit=EVENTS_READ), most=EVENTS_SHOWN),
    }
