"""Bringing back what was purged or deleted, or making it final."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dashboard import formats
from dashboard.views.door import console_page
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.services.undo import removal_end, removal_undo


@require_POST
@console_page
def undo(request: HttpRequest, caller: Caller, name: str, number: int) -> HttpResponse:
    """Bring it back; where limits have taken part of it, ask whether the rest will do."""
    stream = stream_for(caller, name, may="manage")
    address = resolve_url("dashboard:stream_messages", name)
    try:
        back = removal_undo(stream, number, partial="partial" in request.POST, actor=caller.actor)
    except Refusal as refusal:
        if refusal.code == "removal_taken":
            figures = {key: formats.count(refusal.details[key]) for key in ("left", "messages")}
            told = _("Limits have taken part of it: %(left)s of %(messages)s messages can still come back.")
            messages.warning(request, told % figures)
            return redirect(f"{address}?{urlencode({'left': number})}")
        if refusal.code not in ("removal_not_found", "removed_since"):
            raise
        messages.error(request, refusal.message)
    else:
        told = _("%(messages)s messages are back, with their offsets and times.")
        messages.success(request, told % {"messages": formats.count(back.messages)})
    return redirect(address)


@require_POST
@console_page
def end(request: HttpRequest, caller: Caller, name: str, number: int) -> HttpResponse:
    """Make it final now."""
    stream = stream_for(caller, name, may="admin")
    try:
        removal_end(stream, number, actor=caller.actor)
    except Refusal as refusal:
        if refusal.code != "removal_not_found":
            raise
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("What was removed is gone for good."))
    return redirect("dashboard:stream_messages", name)
