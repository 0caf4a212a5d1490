"""The whole configuration of a workspace as a file: downloaded; pasted or loaded, looked at, applied."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.configuration import ConfigurationForm, ConfigurationPreview, preview_of
from dashboard.confirmations import ConfirmForm
from dashboard.views.door import base_url, console_form, console_page, is_part, shown_then
from streams.access import Caller
from streams.api.declared.applying import Outcome, apply
from streams.api.declared.checking import check_for
from streams.api.declared.reading import Faulty
from streams.api.declared.state import exported


@console_form
def configuration(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A form for a file; what it changes is shown first, and made when it was seen; htmx asks for that again."""
    caller.demand("read" if request.method == "GET" else "admin")
    caller.demand_every_stream()
    if request.method == "GET":
        return _page(request, caller, ConfigurationForm())
    form = ConfigurationForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, caller, form, status=422)
    text, prune = form.cleaned_data["text"], form.cleaned_data["prune"]
    form = ConfigurationForm(initial={"text": text, "prune": prune})
    wanted = _Wanted(request, caller)
    try:
        declared = check_for(text, caller.workspace.name)
        outcome = apply(declared, caller.workspace, actor=caller.actor, prune=prune, agreed=wanted.agrees)
    except Faulty as error:
        return _page(request, caller, form, status=422, faults=[str(fault) for fault in error.faults])
    if outcome.is_done:
        messages.success(request, _("The file was applied: %(what)s") % {"what": wanted.preview.summary})
        return redirect("dashboard:configuration")
    found = {"preview": wanted.preview, "confirm": wanted.confirm, "moved": wanted.has_moved}
    return _page(request, caller, form, status=422 if wanted.confirm.errors else 200, **found)


class _Wanted:
    """What a form asks for, held against what would be done."""

    preview: ConfigurationPreview
    confirm: ConfirmForm
    has_moved: bool

    def __init__(self, request: HttpRequest, caller: Caller) -> None:
        self._request, self._workspace = request, caller.workspace
        self._is_to_apply = request.POST.get("do") == "apply"

    def agrees(self, outcome: Outcome) -> bool:
        """Whether it is to be applied, is what was seen, and was confirmed where that is asked."""
        then = shown_then(self._request)
        seen = (self._request.POST.get(f"seen_{name}", "") for name in ("which", "each"))
        letters_then = shown_then(self._request, what="letters_")
        self.preview = preview_of(outcome, self._workspace, then=then, letters_then=letters_then)
        self.has_moved = self._is_to_apply and not self.preview.is_as(then, *seen)
        is_agreed = self._is_to_apply and not self.has_moved
        self.confirm = ConfirmForm(self._request.POST if is_agreed else None, phrase=self.preview.phrase)
        return is_agreed and self.confirm.is_valid()


@console_page
def download(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The file of now."""
    caller.demand("read")
    caller.demand_every_stream()
    answer = HttpResponse(exported(caller.workspace), content_type="application/yaml; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{caller.workspace.name}.yaml"'
    return answer


def _page(
    request: HttpRequest, caller: Caller, form: ConfigurationForm, *, status: int = 200, **found: Any
) -> HttpResponse:
    """The page; ``found`` is empty, or has ``faults``, or ``preview``, ``confirm`` and whether it ``moved``. The part
    that asks by itself is told nothing while somebody writes what cannot be read.
    """
    if is_part(request):
        if "preview" not in found:
            return HttpResponse(status=204)
        return render(request, "dashboard/parts/configuration_now.html", found)
    context = {
        "section": "configuration",
        "caller": caller,
        "form": form,
        "base_url": base_url(request),
        **found,
    }
    return render(request, "dashboard/configuration.html", context, status=status)
