"""Deleting one message, with a question before it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard import formats
from dashboard.browse.message_rows import MessageRow
from dashboard.browse.readings import reading_of
from dashboard.confirmations import ConfirmForm, phrase_for
from dashboard.views.door import console_form
from dashboard.views.of_page import ANOTHER, is_of_page
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.services import messages as message_services


@console_form
def message_delete(request: HttpRequest, caller: Caller, name: str, offset: int) -> HttpResponse:
    """The message and what deleting it does; a POST deletes it."""
    stream = stream_for(caller, name, may="manage")
    shown = MessageRow(selectors.message_at(stream, offset), reading=reading_of(request))
    is_meant = request.method == "POST" and is_of_page(request, stream)
    form = ConfirmForm(request.POST if is_meant else None, phrase=phrase_for([stream]))
    if is_meant and form.is_valid():
        message_services.message_delete(stream, offset=offset, actor=caller.actor)
        messages.success(request, _("Message %(offset)s was deleted.") % {"offset": formats.count(offset)})
        return redirect("dashboard:stream_messages", name=name)
    context = stream_context(request, caller, name, tab="messages") | {"shown": shown, "form": form}
    status = 422 if form.errors else 200
    if request.method == "POST" and not is_meant:
        context, status = context | {"another": ANOTHER}, 409
    return render(request, "dashboard/stream/message_delete.html", context, status=status)
