"""The demonstration: started and stopped with a button."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from dashboard.views.door import console_action
from streams.access import Caller
from streams.services.demos import A_SECOND, STREAM, demo_start, demo_stop


@console_action
def start(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Fill a stream with live traffic."""
    caller.demand("manage")
    caller.demand_stream(STREAM)
    demo_start(caller.workspace, actor=caller.actor)
    said = _("The demo publishes %(rate)s messages per second to the stream %(name)s for 15 minutes.")
    messages.success(request, said % {"rate": A_SECOND, "name": STREAM})
    return redirect("dashboard:overview")


@console_action
def stop(request: HttpRequest, caller: Caller) -> HttpResponse:
    """End it; the stream stays."""
    caller.demand("manage")
    caller.demand_stream(STREAM)
    demo_stop(caller.workspace, actor=caller.actor)
    messages.success(request, _("The demo has ended; its stream stays."))
    return redirect("dashboard:overview")
