"""Purging, deleting and labelling several streams: first what it would do, then, confirmed, doing it."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.lists import bulk as bulk_deeds
from dashboard.lists.bulk import DEEDS, BulkForm, Outcome, preview_of
from dashboard.views.door import base_url, console_form
from streams.access import Caller
from streams.errors import Refusal


@console_form
def bulk(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The preview of a deed to the streams that the address names; a POST does it, if it still is what was seen."""
    caller.demand("manage")
    deed = request.GET.get("do", "")
    if deed not in DEEDS:
        raise Refusal("validation_error", "Specify purge, delete or label.", fields=["do"])
    preview = preview_of(caller, request.GET.getlist("stream"))
    if not preview.rows:
        messages.error(request, _("No stream was selected."))
        return redirect("dashboard:streams")
    is_post = request.method == "POST"
    phrase = preview.phrase(deed, is_undone=bool(settings.ENV.undo_s))
    form = BulkForm(request.POST if is_post else None, deed=deed, phrase=phrase, initial=preview.seen)
    grown = False
    if is_post and form.is_valid():
        seen, upto = form.cleaned_data.get("seen") or 0, form.cleaned_data.get("upto") or {}
        grown = deed != "label" and preview.has_grown(deed=deed, seen=seen, upto=upto)
        if not grown:
            label, value = (form.cleaned_data.get(name, "") for name in ("label", "value"))
            outcome = bulk_deeds.done(
                preview, deed=deed, actor=caller.actor, upto=upto, label=label, value=value
            )
            is_alone = deed == "purge" and len(preview.rows) == 1
            _tell(request, outcome, deed=deed, with_time=not is_alone)
            if is_alone:  # its page has the Undo
                return redirect("dashboard:stream_messages", preview.rows[0].name)
            return redirect("dashboard:streams")
        form = BulkForm(deed=deed, phrase=phrase, initial=preview.seen)
    context = {
        "section": "streams",
        "caller": caller,
        "deed": deed,
        "preview": preview,
        "form": form,
        "grown": grown,
        "undo_s": settings.ENV.undo_s,
        "base_url": base_url(request),
    }
    status = 409 if grown else 422 if form.errors else 200
    return render(request, "dashboard/streams_bulk.html", context, status=status)


def _said(outcome: Outcome, *, deed: str) -> str:
    streams = outcome.streams
    said = {
        "purge": ngettext(
            "%(streams)s stream was purged of %(messages)s.",
            "%(streams)s streams were purged of %(messages)s.",
            streams,
        ),
        "delete": ngettext(
            "%(streams)s stream was deleted with %(messages)s.",
            "%(streams)s streams were deleted with %(messages)s.",
            streams,
        ),
        "label": ngettext("%(streams)s stream was labelled.", "%(streams)s streams were labelled.", streams),
    }[deed]
    return said % {"streams": formats.count(streams), "messages": formats.messages(outcome.messages)}


def _tell(request: HttpRequest, outcome: Outcome, *, deed: str, with_time: bool) -> None:
    if outcome.streams:
        sentence = _said(outcome, deed=deed)
        if deed == "purge" and settings.ENV.undo_s and with_time:
            time = formats.duration(settings.ENV.undo_s)
            sentence += " " + _("They can be restored for %(time)s on each stream's page.") % {"time": time}
        messages.success(request, sentence)
    for sentence in outcome.refused:
        messages.error(request, sentence)
