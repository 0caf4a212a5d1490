"""Bringing back what was purged or deleted, or making it final."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.confirmations import ConfirmForm, phrase_for
from dashboard.views.door import console_action, console_form
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.errors import Refusal, refusal_of
from streams.log.errors import RemovalNotFound
from streams.services.undo import removal_end, removal_undo


@console_action
def undo(request: HttpRequest, caller: Caller, name: str, number: int) -> HttpResponse:
    """Bring it back; where limits have taken part of it, ask whether the rest will do."""
    stream = stream_for(caller, name, may="manage")
    address = resolve_url("dashboard:stream_messages", name)
    if not is_of_page(request, stream):
        messages.error(request, ANOTHER)
        return redirect(address)
    try:
        back = removal_undo(stream, number, partial="partial" in request.POST, actor=caller.actor)
    except Refusal as refusal:
        if refusal.code == "removal_taken":
            figures = {key: formats.count(refusal.details[key]) for key in ("left", "messages")}
            told = _(
                "Limits have removed part of it: %(left)s of %(messages)s messages can still be restored."
            )
            messages.warning(request, told % figures)
            return redirect(f"{address}?{urlencode({'left': number})}")
        if refusal.code not in ("removal_not_found", "removed_since"):
            raise
        messages.error(request, refusal.message)
    else:
        told = ngettext(
            "%(messages)s message was restored, with its offset and time.",
            "%(messages)s messages were restored, with their offsets and times.",
            back.messages,
        )
        messages.success(request, told % {"messages": formats.count(back.messages)})
    return redirect(address)


@console_form
def end(request: HttpRequest, caller: Caller, name: str, number: int) -> HttpResponse:
    """What making it final ends: it and what was removed before it; a POST makes them final."""
    stream = stream_for(caller, name, may="admin")
    is_meant = request.method == "POST" and is_of_page(request, stream)
    form = ConfirmForm(request.POST if is_meant else None, phrase=phrase_for([stream]))
    context = stream_context(request, caller, name, tab="messages")
    ending = [each for each in context["removals"] if each.number <= number]
    if number not in {each.number for each in ending}:
        messages.error(request, refusal_of(RemovalNotFound(), stream=name).message)
        return redirect("dashboard:stream_messages", name)
    if not (is_meant and form.is_valid()):
        # They are said below, each with what it was.
        context |= {"ending": ending, "number": number, "form": form, "removals": []}
        status = 422 if form.errors else 200
        if request.method == "POST" and not is_meant:
            context, status = context | {"another": ANOTHER}, 409
        return render(request, "dashboard/stream/removal_end.html", context, status=status)
    try:
        removal_end(stream, number, actor=caller.actor)
    except Refusal as refusal:
        if refusal.code != "removal_not_found":
            raise
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("What was removed can no longer be restored."))
    return redirect("dashboard:stream_messages", name)
