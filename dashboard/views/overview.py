"""The first page: how everything stands, and what needs attention."""

import time
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard import timelines
from dashboard.attention import Failures, concerns
from dashboard.groups.group_rows import DOTS
from dashboard.lists.event_rows import folded
from dashboard.live import rates
from dashboard.live.live_ranges import ONLY_DEFAULT, live_range_of
from dashboard.live.silent import silent_in
from dashboard.stream_rows import FULL_FROM
from dashboard.views.door import base_url, console_page, is_part
from streams import selectors
from streams.access import Caller
from streams.upkeep import processes

EVENTS_SHOWN = 8
EVENTS_READ = 200
"""Events of one kind and place that follow each other are one row: so many are read to fill the rows."""

CONCERNS_SHOWN = 50
GAP_S = 5
"""The sums come every second: where they did not for so long, nobody knows."""

MOST_STREAMS = 500
"""Of a workspace with more streams what is usual is not said: a first page that waits for it helps nobody."""


@console_page
def overview(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Totals, rates, processes, concerns, newest events; with no stream yet, how to begin. htmx asks for what has no
    socket of its own, when the socket says that it has changed and now and then: groups, concerns, events, the demo
    and what is usual.
    """
    if is_part(request):
        context = _attention(caller) | {"again": True}
        if "usual" in request.GET:
            usual = usual_in(caller, rates.workspace_series(caller))
            context |= {"says_usual": True, **_usual_context(caller, usual)}
        answer = render(request, "dashboard/parts/attention.html", context)
    else:
        series = rates.workspace_series(caller)
        asked = live_range_of(request.GET, now=timezone.now(), ranges=ONLY_DEFAULT)
        shown, lines = series, series.means
        if not asked.is_live:
            part = asked.since_ms / 1000, asked.until_ms / 1000
            shown, lines = series.within(*part), lines.within(*part)
        turns = []
        if caller.may("read"):
            turns = timelines.turns_in(caller, since=asked.since, until=asked.until)
        context = {
            "section": "overview",
            "caller": caller,
            "totals": rates.totals(caller),
            "asked": asked,
            "turns": turns,
            "minutes": shown.by_minute,
            "seed": asked.seed(lines.times, turns, step_s=1) | lines.lines | {"gap_s": GAP_S},
            "silent": silent_in(since_ms=asked.since_ms, until_ms=asked.until_ms),
            **_usual_context(caller, usual_in(caller, series)),
            "base_url": base_url(request),
        }
        answer = render(request, "dashboard/overview.html", context | _attention(caller))
    answer["Vary"] = "HX-Request"
    return answer


def usual_in(caller: Caller, series: rates.Series) -> selectors.UsualNow | None:
    """What usually comes in at this hour beside what does now; None where nobody samples now, and where a stream is not
    archived: nobody counts what is usual in it, and it is in the rate.
    """
    if not selectors.sampling().is_going_on:
        return None
    streams = list(selectors.streams_of(caller).values_list("stream_id", "archive")[:MOST_STREAMS])
    if len(streams) == MOST_STREAMS or not all(archive for _, archive in streams):
        return None
    return selectors.usual_now([each for each, _ in streams], rate=series.mean_in, at=timezone.now())


def _usual_context(caller: Caller, usual: selectors.UsualNow | None) -> dict[str, Any]:
    position = selectors.history_position_newest(caller) if usual else None
    return {"usual": usual, "usual_position": position}


def _attention(caller: Caller) -> dict[str, Any]:
    groups_mark = selectors.statuses_changed_ms()
    filling = selectors.streams_filling(caller, used=FULL_FROM, most=CONCERNS_SHOWN)
    groups = selectors.group_totals(caller)
    running = processes.read(settings.ENV.processes_file)
    seen = selectors.sampling()
    away = selectors.servers_away()
    # An event may name the key or the id of a message.
    events = []
    if caller.may("read"):
        events = selectors.events_found(caller, selectors.EventsWanted(), limit=EVENTS_READ)
    return {
        "caller": caller,
        "processes": running,
        "memory_away": away.memory_since_ms is not None,
        "unavailable": selectors.streams_away(caller),
        "groups": groups,
        "groups_mark": groups_mark,
        "demo": selectors.demo_of(caller),
        "seen": seen,
        "statuses": [(status, DOTS[status], count) for status, count in groups.by_status.items()],
        "concerns": concerns(
            processes=running,
            seen=seen,
            rows=rates.rows(filling),
            groups=groups.troubled,
            firing=selectors.firing_for(caller).loud,
            damaged=selectors.damaged_in(caller),
            away=away,
            failures=_failures(caller),
            now_s=time.time(),
        )[:CONCERNS_SHOWN],
        "events": folded(events, most=EVENTS_SHOWN),
        "events_mark": events[0].id if events else 0,
    }


def _failures(caller: Caller) -> Failures:
    """What failed of the history: that a run did everybody may know, as how processes stand; why, not everybody."""
    runs = selectors.runs_failing()
    if not caller.may("read"):
        return Failures(runs)
    archived = selectors.streams_of(caller).filter(archive=True).order_by("name") if runs else None
    return Failures(
        runs,
        selectors.replays_failing(caller),
        stream="" if archived is None else archived.values_list("name", flat=True).first() or "",
        says_why=caller.sees_inside_runs,
    )
