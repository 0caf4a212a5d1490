"""Erasing from a stream's history: what would go is said before, and again where it has grown; how each one ends."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.confirmations import ConfirmForm
from dashboard.history.erasure_forms import ErasureEffect, ErasureForm, erasure_effect_of
from dashboard.quantities import LARGEST, number_of
from dashboard.views.door import console_form, is_part
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import stream_context
from dashboard.views.stream_runs import obstacle
from streams import selectors
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.models import Stream
from streams.services.erasure_previews import erasure_preview
from streams.services.erasures import UNFINISHED, erasure_request

PAGE_SIZE = 20


@console_form
def erasures(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The form and the erasures of the stream; a POST previews one, or asks for what was previewed."""
    stream = stream_for(caller, name, may="erase")
    if request.method == "GET" and is_part(request):
        return _page(
            request, "dashboard/parts/erasures.html", {"stream": stream, **_erasures(request, stream)}
        )
    form = ErasureForm(request.POST if request.method == "POST" else None, initial=request.GET.dict())
    told: dict[str, Any] = {}
    status = 200
    if request.method == "POST":
        answer = _asked(request, caller, stream, form)
        if answer is None:
            return redirect("dashboard:stream_erasures", name=stream.name)
        told, status = answer
    context = stream_context(request, caller, name, tab="history", may="erase")
    context |= {"form": form, "obstacle": obstacle(), **told}
    if is_part(request):
        return _page(request, "dashboard/parts/erasure_effect.html", context, status=status)
    return _page(
        request, "dashboard/stream/erasures.html", context | _erasures(request, stream), status=status
    )


def _page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    answer = render(request, template, context, status=status)
    answer["Vary"] = "HX-Request"
    return answer


def _asked(
    request: HttpRequest, caller: Caller, stream: Stream, form: ErasureForm
) -> tuple[dict[str, Any], int] | None:
    """What to tell and ask, with the status of the answer; None where an erasure was asked for as it was shown."""
    if not form.is_valid():
        return {}, 422
    wanted = form.wanted()
    try:
        preview = erasure_preview(caller, stream=stream.name, anew="anew" in request.POST, **wanted)
        effect = erasure_effect_of(preview)
        told = {"effect": effect, "confirm": ConfirmForm(phrase=effect.phrase)}
        if not is_of_page(request, stream):
            return told | {"another": ANOTHER}, 409
        if "erase" not in request.POST:
            return told, 200
        up_to = number_of(request.POST.get("seen_up_to"), default=-1, low=0, high=2**62)
        if effect.is_counting or up_to < 0 or _has_grown(request, effect):
            return told | {"grown": True}, 409
        confirm = ConfirmForm(request.POST, phrase=effect.phrase)
        if not confirm.is_valid():
            return told | {"confirm": confirm}, 422
        erasure = erasure_request(caller, stream=stream.name, up_to=up_to, **wanted)
    except Refusal as refusal:
        if refusal.code in {"forbidden", "stream_not_found"}:
            raise
        form.add_error(None, refusal.message)
        return {}, 422
    messages.success(request, _("Erasure %(number)s was requested.") % {"number": erasure.pk})
    return None


def _has_grown(request: HttpRequest, effect: ErasureEffect) -> bool:
    seen, letters = (
        number_of(request.POST.get(f"seen_{what}"), default=0, low=0, high=2**62)
        for what in ("messages", "letters")
    )
    return effect.has_grown(messages=seen, letters=letters, was_counted="seen_uncounted" not in request.POST)


def _erasures(request: HttpRequest, stream: Stream) -> dict[str, Any]:
    """What the list of erasures needs: ``?erasure`` is the id of the one whose whole error is shown."""
    pages = Paginator(selectors.erasures_of(stream), PAGE_SIZE)
    page = pages.page(number_of(request.GET.get("page"), default=1, low=1, high=pages.num_pages))
    shown = list(page)
    events = selectors.erasure_events(stream, shown)
    return {
        "erasures": [(each, events[each.pk]) for each in shown],
        "page": page,
        "opened_erasure": number_of(request.GET.get("erasure"), default=0, low=0, high=LARGEST),
        "is_erasing": any(each.state in UNFINISHED for each in shown),
    }
