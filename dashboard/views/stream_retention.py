"""The retention editor: what would go is said before it is saved, and again where it has moved."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from dashboard.confirmations import ConfirmForm
from dashboard.quantities import number_of
from dashboard.retention.retention_form import PRESETS, RetentionForm, effect_of
from dashboard.views.door import console_page, is_part, shown_then
from dashboard.views.stream_page import stream_context
from streams.access import Caller
from streams.errors import Refusal
from streams.services.streams import stream_change


@require_http_methods(["GET", "POST"])
@console_page
def retention(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The limits; with some in the address also what they would do; a POST saves what was shown."""
    context = stream_context(request, caller, name, tab="retention")
    if request.method == "POST":
        return _save(request, caller, context)
    form = RetentionForm(request.GET if "discard" in request.GET else None, stream=context["stream"])
    context |= {"form": form, "presets": PRESETS, "may_manage": caller.may("manage")}
    if form.is_bound:
        context |= _shown(request, context, form)
    template = (
        "dashboard/parts/retention_effect.html" if is_part(request) else "dashboard/stream/retention.html"
    )
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    return answer


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
    return {"effect": effect, "confirm": ConfirmForm(phrase=effect.phrase)}


def _save(request: HttpRequest, caller: Caller, context: dict[str, Any]) -> HttpResponse:
    caller.demand("manage")
    stream = context["stream"]
    form = RetentionForm(request.POST, stream=stream)
    context |= {"form": form, "presets": PRESETS, "may_manage": True}
    context |= _shown(request, context, form)
    effect, status = context.get("effect"), 422
    if effect is not None:
        context["confirm"] = confirm = ConfirmForm(request.POST, phrase=effect.phrase)
        if effect.has_grown(then=shown_then(request), losing=_losing(request)):
            context |= {"grown": True, "confirm": ConfirmForm(phrase=effect.phrase)}
            status = 409
        elif confirm.is_valid():
            try:
                stream_change(stream, changes=effect.changes, actor=caller.actor)
            except Refusal as refusal:
                form.add_error(None, refusal.message)
            else:
                messages.success(request, _("What the stream keeps was changed."))
                return redirect("dashboard:stream_retention", name=stream.name)
    return render(request, "dashboard/stream/retention.html", context, status=status)


def _losing(request: HttpRequest) -> dict[str, int]:
    """What the page said that each group would lose at most: ``5:billing``."""
    told = (each.partition(":") for each in request.POST.getlist("losing"))
    return {group: number_of(unread, default=0, low=0, high=2**62) for unread, _, group in told}
