"""Looking into a stream. Looking moves nothing: no group, no committed offset."""

import time
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard import timelines
from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.message_rows import MessageRow
from dashboard.browse.readings import browse_form, reading_of, remember
from dashboard.browse.windows import FIRST_SLICE_S, Window, window_of
from dashboard.groups.message_in_groups import in_groups
from dashboard.stream_rows import StreamRow
from dashboard.timelines import Timeline
from dashboard.views.door import console_page, is_part
from dashboard.views.opened import opened_of
from dashboard.views.stream_page import standing, stream_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.log.errors import MessageNotFound
from streams.models import Stream


@console_page
def browse(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """A page of messages, or a slice of a search; the query string says which."""
    form = browse_form(request)
    valid = form.is_valid()
    if not caller.may("read"):
        return _volume(request, caller, name, form)
    if is_part(request):
        stream = stream_for(caller, name, may="read")
        found = {"stream": stream, "window": window_of(stream, form) if valid else Window([])}
        answer = render(request, "dashboard/parts/message_slice.html", found, status=200 if valid else 422)
    else:
        context = stream_context(request, caller, name, tab="messages")
        window = window_of(context["stream"], form, search_s=FIRST_SLICE_S) if valid else Window([])
        context |= {
            "form": form,
            "window": window,
            "start": form.cleaned_data.get("start", "newest"),
            **_opened(context["stream"], request, form, window),
            "timeline": timeline_of(caller, context["row"], form),
        }
        answer = render(request, "dashboard/stream/messages.html", context, status=200 if valid else 422)
        remember(answer, request, name, form)
    answer["Vary"] = "HX-Request"
    return answer


def _volume(request: HttpRequest, caller: Caller, name: str, form: BrowseForm) -> HttpResponse:
    """How much there is and when, for whom may not read what."""
    if is_part(request):
        caller.demand("read")
    context = stream_context(request, caller, name, tab="messages", may="observe")
    timeline = timeline_of(caller, context["row"], form)
    if timeline is not None:
        # What was done may name the key or the id of a message.
        timeline = replace(timeline, marks=[mark for mark in timeline.marks if mark.kind != "event"])
    return render(request, "dashboard/stream/messages_counted.html", context | {"timeline": timeline})


def _opened(stream: Stream, request: HttpRequest, form: BrowseForm, window: Window) -> dict[str, Any]:
    def find(offset: int) -> MessageRow:
        return MessageRow(selectors.message_at(stream, offset), reading=form.reading)

    opened, apart, missing = opened_of(request, {row.message.offset for row in window.rows}, find)
    return {"opened": opened, "apart": apart, "missing": missing}


def timeline_of(caller: Caller, row: StreamRow, form: BrowseForm) -> Timeline | None:
    """The volume of the span that was chosen, or of the whole stream; None for an empty one."""
    if row.first_ms is None or row.last_ms is None:
        return None
    retained = timelines.retained_from_ms(row.stream)
    chosen = form.range
    if chosen is not None:
        start, end = (int(moment.timestamp() * 1000) for moment in chosen)
        if end - start <= timelines.STEPS_MS[-1]:
            return timelines.timeline_of(
                caller, row.stream, first_ms=start, last_ms=end - 1, zoomed=True, retained_from_ms=retained
            )
    return timelines.timeline_of(
        caller, row.stream, first_ms=row.first_ms, last_ms=row.last_ms, retained_from_ms=retained
    )


@console_page
def message(request: HttpRequest, caller: Caller, name: str, offset: int) -> HttpResponse:
    """One message: a page of its own, or what opens under its row."""
    stream = stream_for(caller, name, may="read")
    try:
        row = MessageRow(selectors.message_at(stream, offset), reading=reading_of(request))
    except MessageNotFound:
        answer = _missing(request, caller, stream, offset)
    else:
        if is_part(request):
            shown = {"stream": stream, "shown": row, "in_place": True, "caller": caller}
            answer = render(request, "dashboard/parts/message.html", shown)
        else:
            context = stream_context(request, caller, name, tab="messages")
            found = selectors.groups_of_message(stream, row.message)
            context |= {
                "shown": row,
                "in_groups": in_groups(found),
                "groups_of_it": len(found),
                "seen_ms": int(time.time() * 1000),
            }
            answer = render(request, "dashboard/stream/message.html", context)
    answer["Vary"] = "HX-Request"
    return answer


def _missing(request: HttpRequest, caller: Caller, stream: Stream, offset: int) -> HttpResponse:
    """That a message is not there: a note in the place of what opens under its row, or a page."""
    if is_part(request):
        # The note is what was asked for; a page that lists a message has seen it.
        found = {"row": standing(stream)["row"], "offset": offset}
        return render(request, "dashboard/parts/message_missing.html", found)
    context = stream_context(request, caller, stream.name, tab="messages") | {"offset": offset}
    return render(request, "dashboard/stream/message_missing.html", context, status=404)


@console_page
def raw(request: HttpRequest, caller: Caller, name: str, offset: int) -> HttpResponse:
    """The whole body exactly as sent; plain text, so that no browser makes a page of it. ``?download`` saves it."""
    stream = stream_for(caller, name, may="read")
    body = selectors.message_at(stream, offset).body
    if "download" in request.GET:
        answer = HttpResponse(body, content_type="application/json")
        answer["Content-Disposition"] = f'attachment; filename="{name}-{offset}.json"'
        return answer
    answer = HttpResponse(body, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="{name}-{offset}.json.txt"'
    return answer
