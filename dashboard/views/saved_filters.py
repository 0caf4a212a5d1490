"""Filters under a name: saved from the page that they filter, and deleted there."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from dashboard.views.door import console_action, safe_next
from streams.access import Caller, filter_for
from streams.errors import Refusal
from streams.models import FILTER_PAGES
from streams.services.saved_filters import filter_delete, filter_save


@console_action
def save(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Keep the filters of a page; what is wrong with them is said on it."""
    caller.demand("read")
    page, shared = request.POST.get("page", ""), request.POST.get("shared") == "1"
    if shared:
        caller.demand("manage")
    try:
        if page not in FILTER_PAGES:
            raise Refusal("validation_error", "Expected the filters of a list.")
        saved, _is_new = filter_save(
            caller,
            page=page,
            name=request.POST.get("name", ""),
            query=request.POST.get("query", ""),
            shared=shared,
        )
    except Refusal as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("The filters were saved as %(name)s.") % {"name": saved.name})
    return HttpResponseRedirect(safe_next(request, default="dashboard:overview"))


@console_action
def delete(request: HttpRequest, caller: Caller, filter_id: int) -> HttpResponse:
    """Let go of a filter; the list stays as it is filtered."""
    saved = filter_for(caller, filter_id)
    filter_delete(caller, saved)
    messages.success(request, _("The filter %(name)s was deleted.") % {"name": saved.name})
    return HttpResponseRedirect(safe_next(request, default="dashboard:overview"))
