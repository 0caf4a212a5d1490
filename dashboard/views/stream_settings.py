"""A stream's settings to read, and its deletion."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dashboard import formats
from dashboard.forms import DeleteForm
from dashboard.views.door import console_page
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.models import Stream
from streams.models.stream import Discard, Retention, Storage
from streams.services.streams import stream_delete


def settings_shown(stream: Stream) -> list[tuple[str, str, str]]:
    """Each setting in words: name, value, the API's field."""
    yes_no = {True: _("yes"), False: _("no")}
    return [
        (_("Keep for"), formats.duration(stream.ttl) if stream.ttl else _("no limit"), "ttl"),
        (
            _("Keep at most (messages)"),
            formats.count(stream.max_messages) if stream.max_messages else _("no limit"),
            "max_messages",
        ),
        (
            _("Keep at most (size)"),
            formats.size(stream.max_bytes) if stream.max_bytes else _("no limit"),
            "max_bytes",
        ),
        (
            _("Of each key"),
            _("the newest %(count)s") % {"count": formats.count(stream.max_messages_per_key)}
            if stream.max_messages_per_key
            else _("no limit"),
            "max_messages_per_key",
        ),
        (
            _("Messages go"),
            _("when every group is done with them")
            if stream.retention == Retention.INTEREST
            else _("by limits"),
            "retention",
        ),
        (
            _("When full"),
            _("refuse new messages") if stream.discard == Discard.NEW else _("remove the oldest messages"),
            "discard",
        ),
        (
            _("Kept"),
            _("in memory – may be lost at a restart") if stream.storage == Storage.MEMORY else _("on disk"),
            "storage",
        ),
        (_("Largest body"), formats.size(stream.max_message_bytes), "max_message_bytes"),
        (_("An id is remembered for"), formats.duration(stream.dedup_window), "dedup_window"),
        (_("Copied to the history"), yes_no[stream.archive], "archive"),
        (_("Deleting single messages denied"), yes_no[stream.deny_delete], "deny_delete"),
        (_("Purging denied"), yes_no[stream.deny_purge], "deny_purge"),
        (_("Sealed (read-only)"), yes_no[stream.sealed], "sealed"),
        (_("Key patterns"), ", ".join(stream.keys) or _("any key"), "keys"),
        (_("Labels"), ", ".join(f"{k}={v}" for k, v in stream.labels.items()) or "–", "labels"),
        (_("Description"), stream.description or "–", "description"),
        (_("Created"), formats.moment(int(stream.created_at.timestamp() * 1000)), "created_at"),
        (_("Changed"), formats.moment(int(stream.updated_at.timestamp() * 1000)), "updated_at"),
    ]


@require_GET
@console_page
def settings(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The settings, and the form that deletes."""
    context = stream_context(request, caller, name, tab="settings")
    stream = context["stream"]
    context |= {
        "settings": settings_shown(stream),
        "form": DeleteForm(stream=stream),
        "may_manage": caller.may("manage"),
    }
    return render(request, "dashboard/stream/settings.html", context)


@require_POST
@console_page
def delete(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Delete the stream if its name was typed."""
    stream = stream_for(caller, name, may="manage")
    form = DeleteForm(request.POST, stream=stream)
    if form.is_valid():
        stream_delete(stream, actor=caller.actor)
        messages.success(request, _("Stream %(name)s was deleted with all its messages.") % {"name": name})
        return redirect("dashboard:streams")
    context = stream_context(request, caller, name, tab="settings")
    context |= {"settings": settings_shown(stream), "form": form, "may_manage": True}
    return render(request, "dashboard/stream/settings.html", context, status=422)
