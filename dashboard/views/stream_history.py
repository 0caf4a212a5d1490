"""What Spark computed for a stream: charts by minute, hour or day, and the runs that computed it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from dashboard.replay_forms import ReplayForm
from dashboard.views.door import console_page, is_part
from dashboard.views.stream_page import stream_context
from dashboard.views.stream_replays import ask, replays_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.models import Rollup, Stream
from streams.models.history import RunState
from streams.services.history import run_request
from streams.upkeep import processes

MOST_BARS = 1500
RUNS_SHOWN = 6
STEPS = {"minute": (_("minute"), 60), "hour": (_("hour"), 3600), "day": (_("day"), 86_400)}
# range: label, seconds (None: all of it), step unless another is asked for
RANGES: dict[str, tuple[Any, int | None, str]] = {
    "1h": (_("1 h"), 3600, "minute"),
    "6h": (_("6 h"), 6 * 3600, "minute"),
    "24h": (_("24 h"), 86_400, "hour"),
    "7d": (_("7 d"), 7 * 86_400, "hour"),
    "30d": (_("30 d"), 30 * 86_400, "day"),
    "1y": (_("1 y"), 365 * 86_400, "day"),
    "all": (_("all"), None, "day"),
}
DEFAULT_RANGE = "24h"


@dataclass(frozen=True, slots=True)
class Choice:
    """A range or a step to choose."""

    id: str
    label: Any
    allowed: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What the query string asks for, checked; ``since`` None is the beginning."""

    range: str
    step: str
    since: datetime | None
    until: datetime


def asked_for(query: Any, *, now: datetime) -> Asked:
    """The range and step; what is unknown or would be too many bars is the default."""
    chosen = query.get("range", DEFAULT_RANGE)
    if chosen not in RANGES:
        chosen = DEFAULT_RANGE
    _label, seconds, default_step = RANGES[chosen]
    step = query.get("step", default_step)
    if step not in STEPS or not is_allowed(chosen, step):
        step = default_step
    since = None if seconds is None else floor(now - timedelta(seconds=seconds), step=step)
    return Asked(chosen, step, since, now)


def is_allowed(chosen: str, step: str) -> bool:
    """Whether a range in these steps is few enough bars; all of it goes by day."""
    seconds = RANGES[chosen][1]
    return step == "day" if seconds is None else seconds // STEPS[step][1] <= MOST_BARS


def floor(moment: datetime, *, step: str) -> datetime:
    """The begin of the minute, hour or day (UTC) that a moment is in."""
    seconds = STEPS[step][1]
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)


def seed_of(points: list[Rollup], *, step: str, since: datetime | None, until: datetime) -> dict[str, Any]:
    """The chart's columns: one bar a step, nought where nothing was published."""
    seconds = STEPS[step][1]
    held = {int(point.start.timestamp()): point for point in points}
    first = int((since or points[0].start).timestamp()) if points or since else int(until.timestamp())
    last = int(floor(until, step=step).timestamp())
    first = max(first, last - MOST_BARS * seconds)
    times = list(range(first, last + 1, seconds))
    return {
        "step_s": seconds,
        "times": times,
        "messages": [held[at].messages if at in held else 0 for at in times],
        "bytes": [held[at].bytes if at in held else 0 for at in times],
    }


@require_http_methods(["GET", "POST"])
@console_page
def history(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Charts, their table, the runs, and what of the past is published again; a POST asks for that."""
    context = stream_context(request, caller, name, tab="history")
    form = ReplayForm(request.POST or None, initial={"target": context["stream"].name})
    if request.method == "POST":
        caller.demand("manage")
        if ask(request, caller, context["stream"], form):
            return redirect("dashboard:stream_history", name=context["stream"].name)
    context |= {"replay_form": form, **replays_context(caller, context["stream"])}
    asked = asked_for(request.GET, now=timezone.now())
    points = selectors.history_points(
        context["stream"], step=asked.step, since=asked.since, until=asked.until + timedelta(seconds=1)
    )
    context |= runs_context(caller, context["stream"])
    context |= {
        "points": points[::-1],
        "seed": seed_of(points, step=asked.step, since=asked.since, until=asked.until),
        "gaps": selectors.history_gaps(context["stream"], since=asked.since),
        "sums": {
            "messages": sum(point.messages for point in points),
            "bytes": sum(point.bytes for point in points),
        },
        "ranges": [Choice(id, label) for id, (label, _seconds, _step) in RANGES.items()],
        "steps": [Choice(id, label, is_allowed(asked.range, id)) for id, (label, _seconds) in STEPS.items()],
        "range": asked.range,
        "step": asked.step,
        "since_ms": asked.since and int(asked.since.timestamp() * 1000),
        "until_ms": int(asked.until.timestamp() * 1000),
    }
    status = 422 if form.errors else 200
    return render(request, "dashboard/stream/history.html", context, status=status)


@require_http_methods(["GET", "POST"])
@console_page
def runs(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The newest runs, for htmx; a POST asks for one."""
    stream = stream_for(caller, name, may="read")
    if request.method == "POST":
        caller.demand("manage")
        run_request(requested_by=caller.actor.name)
    if not is_part(request):
        return redirect("dashboard:stream_history", name=stream.name)
    return render(request, "dashboard/parts/runs.html", {"stream": stream, **runs_context(caller, stream)})


def runs_context(caller: Caller, stream: Stream) -> dict[str, Any]:
    """What the panel of runs needs."""
    newest = selectors.runs_latest(limit=RUNS_SHOWN)
    return {
        "position": selectors.history_position(stream),
        "runs": newest,
        "is_running": any(run.state in (RunState.QUEUED, RunState.RUNNING) for run in newest),
        "may_run": caller.may("manage"),
        "obstacle": obstacle(),
    }


def obstacle() -> str:
    """Why no run can start, and what to do; empty when one can."""
    if not settings.ENV.history:
        return str(
            _("The history is switched off (OKMQ_HISTORY=off). Start with OKMQ_HISTORY=on to have it.")
        )
    for process in processes.read(settings.ENV.processes_file):
        if process.name == "analytics" and process.state in {"unavailable", "stopped"}:
            return process.note or str(_("The analytics process does not run."))
    return ""
