"""The retention editor: what would go is said before it is saved, and again where it has moved."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard.confirmations import ConfirmForm
from dashboard.retention.retention_form import PRESETS, RetentionForm, effect_of
from dashboard.views.door import console_form, console_page, is_part, losing_then, shown_then
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import standing, stream_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.models import Stream
from streams.services.streams import stream_change

AGAIN = "effect-again"
"""The element by which a page asks for the effect again by itself: nobody has asked for another one."""


@console_form
def retention(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The limits; with some in the address also what they would do; a POST saves what was shown."""
    if is_part(request) and "field" in request.GET:
        return _field(request, caller, stream_for(caller, name, may="observe"))
    context = stream_context(request, caller, name, tab="retention", may="observe")
    if request.method == "POST":
        return _save(request, caller, context)
    asks = request.GET.keys() & RetentionForm.base_fields.keys()
    about = _about(caller, context["stream"])
    form = RetentionForm.of_address(request.GET, **about) if asks else RetentionForm(**about)
    context |= {"form": form, "presets": PRESETS, "may_manage": caller.may("manage")}
    if form.is_bound:
        context |= _shown(request, context, form)
    template = "dashboard/parts/retention_now.html" if is_part(request) else "dashboard/stream/retention.html"
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    if is_part(request):
        answer["HX-Replace-Url"] = _address(request, form)
    return answer


@console_page
def kept(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """What an open page of a stream says of its limits: in its header, with ``of=groups`` where it is going."""
    stream, with_groups = stream_for(caller, name, may="observe"), request.GET.get("of") == "groups"
    part = "outlook" if with_groups else "kept"
    return render(request, f"dashboard/parts/{part}.html", standing(stream, with_groups=with_groups))


def _shown(request: HttpRequest, context: dict[str, Any], form: RetentionForm) -> dict[str, Any]:
    """The effect of a valid form, and the question before it; what is wrong is said by the form."""
    if not form.is_valid():
        return {}
    try:
        then = shown_then(request)
        effect = effect_of(context["stream"], context["row"], form.changes(), then=then)
    except Refusal as refusal:
        form.add_error(None, refusal.message)
        return {}
    stays = request.headers.get("HX-Trigger") == AGAIN
    return {
        "effect": effect,
        "differences": form.differences(effect.changes),
        "address": _address(request, form),
        "looks_again": AGAIN,
        "confirm": ConfirmForm(phrase=effect.phrase, stays=stays),
    }


def _address(request: HttpRequest, form: RetentionForm) -> str:
    """Where the form is shown again as it is: what is not saved, also what was emptied, and nothing else."""
    return f"{request.path}?{urlencode(form.unsaved)}" if form.unsaved else request.path


def _about(caller: Caller, stream: Stream) -> dict[str, Any]:
    """The stream of a form, and the policies that it offers."""
    return {"stream": stream, "policies": selectors.policy_names(caller)}


def _field(request: HttpRequest, caller: Caller, stream: Stream) -> HttpResponse:
    """One field that was left, where that is marked as wrong and is not, or the other way round."""
    form, name = RetentionForm(request.GET, **_about(caller, stream)), request.GET["field"]
    form.is_valid()
    if name not in form.fields or (name in form.errors) == (request.GET.get("marked") == "1"):
        return HttpResponse(status=204)
    return render(request, "dashboard/parts/limit_field.html", {"name": stream.name, "field": form[name]})


def _save(request: HttpRequest, caller: Caller, context: dict[str, Any]) -> HttpResponse:
    caller.demand("manage")
    stream = context["stream"]
    form = RetentionForm(request.POST, **_about(caller, stream))
    context |= {"form": form, "presets": PRESETS, "may_manage": True}
    context |= _shown(request, context, form)
    effect, status = context.get("effect"), 422
    if effect is not None:
        context["confirm"] = confirm = ConfirmForm(request.POST, phrase=effect.phrase)
        if not is_of_page(request, stream):
            context |= {"another": ANOTHER, "confirm": ConfirmForm(phrase=effect.phrase)}
            status = 409
        elif form.moved:
            context |= {"saves": True, "confirm": ConfirmForm(phrase=effect.phrase)}
            status = 409
        elif effect.has_grown(then=shown_then(request), losing=losing_then(request)):
            context |= {"grown": True, "confirm": ConfirmForm(phrase=effect.phrase)}
            status = 409
        elif confirm.is_valid():
            try:
                stream_change(stream, changes=effect.changes, actor=caller.actor)
            except Refusal as refusal:
                form.add_error(None, refusal.message)
            else:
                messages.success(request, effect.saved)
                return redirect("dashboard:stream_retention", name=stream.name)
    return render(request, "dashboard/stream/retention.html", context, status=status)
