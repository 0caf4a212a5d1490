"""The runs that wrote and counted the history: newest first in pages, those that failed, and the whole error of one."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.quantities import LARGEST, number_of
from dashboard.views.door import console_form, is_part
from streams import selectors
from streams.access import Caller, stream_for
from streams.models import Stream
from streams.models.history import RunState
from streams.services.history import run_request
from streams.upkeep import processes

SHOWN = 6


@console_form
def runs(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """A page of runs, for htmx; a POST asks for one."""
    stream = stream_for(caller, name, may="manage" if request.method == "POST" else "read")
    if request.method == "POST":
        run_request(requested_by=caller.actor.name)
    if not is_part(request):
        return redirect("dashboard:stream_history", name=stream.name)
    context = {"stream": stream, **runs_context(request, caller, stream)}
    return render(request, "dashboard/parts/runs.html", context)


def runs_context(request: HttpRequest, caller: Caller, stream: Stream) -> dict[str, Any]:
    """What the panel of runs needs: ``?runs=failed`` narrows it, ``runs_before`` and ``run`` are ids."""
    before = number_of(request.GET.get("runs_before"), default=0, low=0, high=LARGEST) or None
    only_failed = request.GET.get("runs") == "failed"
    shown, more = selectors.runs_page(
        before=before, limit=SHOWN, state=RunState.FAILED if only_failed else None
    )
    return {
        "position": selectors.history_position(stream),
        "runs": shown,
        "runs_before": before,
        "runs_older": shown[-1].pk if more else None,
        "only_failed": only_failed,
        "opened_run": number_of(request.GET.get("run"), default=0, low=0, high=LARGEST),
        "is_running": any(run.state in (RunState.QUEUED, RunState.RUNNING) for run in shown),
        "may_run": caller.may("manage"),
        "sees_inside": caller.sees_inside_runs,
        "obstacle": obstacle(),
    }


def obstacle() -> str:
    """Why no run can start, and what to do; empty when one can."""
    if not settings.ENV.history:
        return _("The history is switched off (OKMQ_HISTORY=off). Start with OKMQ_HISTORY=on to enable it.")
    for process in processes.read(settings.ENV.processes_file):
        if process.name == "analytics" and process.state in {"unavailable", "off"}:
            return process.note or _("The analytics process is not running.")
    return ""
