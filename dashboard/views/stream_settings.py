"""A stream's settings to read and to change, and its deletion."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard import formats
from dashboard.forms import DeleteForm, refusal_show
from dashboard.lists.bulk import Preview
from dashboard.live import rates
from dashboard.stream_settings_form import LastingForm, StreamSettingsForm
from dashboard.views.door import console_action, console_form
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.models import Stream
from streams.models.stream import Discard, Retention, Storage
from streams.services.streams import stream_change, stream_delete

PAGE = "dashboard/stream/settings.html"


def settings_shown(stream: Stream) -> list[tuple[str, str, str]]:
    """What is set elsewhere or never again, in words: name, value, the API's field."""
    return [
        (_("Policy"), stream.policy or _("none: own limits"), "policy"),
        (_("Max age"), formats.duration(stream.ttl) if stream.ttl else _("no limit"), "ttl"),
        (
            _("Max messages"),
            formats.count(stream.max_messages) if stream.max_messages else _("no limit"),
            "max_messages",
        ),
        (
            _("Max size"),
            formats.size(stream.max_bytes) if stream.max_bytes else _("no limit"),
            "max_bytes",
        ),
        (
            _("Max messages per key"),
            _("the newest %(count)s") % {"count": formats.count(stream.max_messages_per_key)}
            if stream.max_messages_per_key
            else _("no limit"),
            "max_messages_per_key",
        ),
        (
            _("Retention"),
            _("limits and interest") if stream.retention == Retention.INTEREST else _("limits only"),
            "retention",
        ),
        (
            _("When full"),
            _("refuse new") if stream.discard == Discard.NEW else _("discard oldest"),
            "discard",
        ),
        (
            _("Storage"),
            _("in memory – may be lost on restart") if stream.storage == Storage.MEMORY else _("on disk"),
            "storage",
        ),
        (_("Created"), formats.moment(int(stream.created_at.timestamp() * 1000)), "created_at"),
        (_("Changed"), formats.moment(int(stream.updated_at.timestamp() * 1000)), "updated_at"),
    ]


def _context(request: HttpRequest, caller: Caller, name: str) -> dict[str, Any]:
    context = stream_context(request, caller, name, tab="settings")
    stream = context["stream"]
    return context | {
        "settings": settings_shown(stream),
        "form": StreamSettingsForm(stream=stream),
        "lasting": LastingForm(stream=stream),
        "delete_form": DeleteForm(stream=stream, initial={"seen": context["row"].messages or 0}),
        "asks_delete": "delete" in request.GET,
        "may_manage": caller.may("manage"),
    }


@console_form
def settings(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The settings; a POST changes those that differ, or switches on what stays on."""
    stream = stream_for(caller, name, may="manage" if request.method == "POST" else "read")
    if request.method == "GET":
        return render(request, PAGE, _context(request, caller, name))
    if not is_of_page(request, stream):
        return render(request, PAGE, _context(request, caller, name) | {"another": ANOTHER}, status=409)
    is_lasting = "lasting" in request.POST
    form: StreamSettingsForm | LastingForm
    form = (LastingForm if is_lasting else StreamSettingsForm)(request.POST, stream=stream)
    moved = isinstance(form, StreamSettingsForm) and bool(form.moved)
    if form.is_valid() and not moved:
        try:
            stream_change(stream, changes=form.changes(), actor=caller.actor)
        except Refusal as refusal:
            refusal_show(refusal, form)
        else:
            messages.success(request, _("Stream %(name)s was changed.") % {"name": name})
            return redirect("dashboard:stream_settings", name=name)
    context = _context(request, caller, name) | {"lasting" if is_lasting else "form": form}
    return render(request, PAGE, context, status=409 if moved else 422)


@console_action
def delete(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Delete the stream if its name was typed, it is that of the page, and holds what that told of or little more."""
    stream = stream_for(caller, name, may="manage")
    form, context = DeleteForm(request.POST, stream=stream), _context(request, caller, name)
    context["asks_delete"] = True
    if not is_of_page(request, stream):
        return render(request, PAGE, context | {"another": ANOTHER}, status=409)
    if not form.is_valid():
        return render(request, PAGE, context | {"delete_form": form}, status=422)
    seen = form.cleaned_data["seen"] or 0
    if Preview(rates.rows([stream])).has_grown(deed="delete", seen=seen, upto={}):
        return render(request, PAGE, context | {"grown": True}, status=409)
    stream_delete(stream, actor=caller.actor)
    messages.success(request, _("Stream %(name)s was deleted with all its messages.") % {"name": name})
    return redirect("dashboard:streams")
