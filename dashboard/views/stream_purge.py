"""Purging one stream, or a part of it: what would go is said before it is done, and again where it has moved."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.confirmations import ConfirmForm
from dashboard.quantities import number_of
from dashboard.retention.purge_form import ALL, PurgeEffect, PurgeForm, purge_effect_of
from dashboard.views.door import console_form, is_part, losing_then, shown_then
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.log.preview import Purge
from streams.models import Stream
from streams.services.messages import stream_purge


@console_form
def purge(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """What shall go and what that does; a POST purges no more than was shown."""
    stream = stream_for(caller, name, may="manage")
    context, status = stream_context(request, caller, name, tab="settings"), 200
    asked = request.POST if request.method == "POST" else request.GET
    context["form"] = form = PurgeForm(asked if "what" in asked else {"what": ALL})
    if not form.is_valid():
        status = 200 if is_part(request) else 422
    elif request.method == "GET":
        context |= _question(purge_effect_of(stream, form.purge(stream)))
    else:
        told = _done(request, caller, stream, form)
        if told is None:
            return redirect("dashboard:stream_messages", name=name)
        context, status = context | told, 409 if told.keys() & {"grown", "another"} else 422
    template = "dashboard/parts/purge_now.html" if is_part(request) else "dashboard/stream/purge.html"
    answer = render(request, template, context, status=status)
    answer["Vary"] = "HX-Request"
    if is_part(request):
        answer["HX-Replace-Url"] = request.get_full_path()
    return answer


def _question(effect: PurgeEffect) -> dict[str, Any]:
    return {"effect": effect, "confirm": ConfirmForm(phrase=effect.phrase)}


def _done(request: HttpRequest, caller: Caller, stream: Stream, form: PurgeForm) -> dict[str, Any] | None:
    """Purge what was shown; what to ask again where that is more by now, is of another stream, or the name was
    not typed."""
    if not is_of_page(request, stream):
        return _question(purge_effect_of(stream, form.purge(stream))) | {"another": ANOTHER}
    below = number_of(request.POST.get("seen_below"), default=0, low=0, high=2**62)
    effect = purge_effect_of(stream, Purge(below=below, keys=form.purge(stream).keys))
    if not below or effect.has_grown(then=shown_then(request), losing=losing_then(request)):
        return _question(purge_effect_of(stream, form.purge(stream))) | {"grown": True}
    confirm = ConfirmForm(request.POST, phrase=effect.phrase)
    if not confirm.is_valid():
        return {"effect": effect, "confirm": confirm}
    try:
        gone = stream_purge(stream, actor=caller.actor, below=below, key=effect.key)
    except Refusal as refusal:
        form.add_error(None, refusal.message)
        return {}
    told = ngettext("%(messages)s message was purged.", "%(messages)s messages were purged.", gone)
    messages.success(request, told % {"messages": formats.count(gone)})
    return None
