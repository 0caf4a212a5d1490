"""The newest messages as they arrive, of a stream or of several: the page hears of them through its socket and asks
here for the rows.
"""

import time
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard import formats
from dashboard.browse.readings import asked, remember
from dashboard.browse.tails import MOST_STREAMS, TailForm, arrived, chosen
from dashboard.live import rates
from dashboard.quantities import number_of
from dashboard.views.door import base_url, console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.models import Stream

MOST_OFFSET = 2**63 - 1
OFFERED = 100
"""Streams that are listed to be ticked."""

AFTER = "after:"
"""Before the name of a stream: the offset after which its rows are asked for."""


@console_page
def tail(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The page, or for its script the newest rows after an offset, newest first, and how many were left out."""
    form = TailForm(asked(request))
    valid = form.is_valid()
    if is_part(request):
        stream = stream_for(caller, name, may="read")
        return _rows(request, form, {stream: _offset(request.GET.get("after"))}, named=False)
    context = stream_context(request, caller, name, tab="messages")
    context |= {"form": form, "followed": [context["row"]], "filtered": valid and form.is_filtered}
    answer = render(request, "dashboard/stream/tail.html", context, status=200 if valid else 422)
    remember(answer, request, name, form)
    return answer


@console_page
def tails(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The same of several streams, by names and patterns; the script names those that have moved."""
    caller.demand("read")
    form = TailForm(asked(request))
    valid = form.is_valid()
    there = selectors.streams_of(caller)
    if is_part(request):
        moved = [key.removeprefix(AFTER) for key in request.GET if key.startswith(AFTER)]
        streams = there.filter(name__in=moved)[:MOST_STREAMS]
        after = {each: _offset(request.GET.get(AFTER + each.name)) for each in streams}
        return _rows(request, form, after, named=True)
    ticked = _ticked(request)
    found = chosen(caller, ticked, form.cleaned_data["streams"] if valid else [])
    asked_for = request.GET.copy()
    asked_for["since"] = str(int(time.time() * 1000))
    offered = list(there.values_list("name", flat=True)[:OFFERED])
    context = {
        "section": "streams",
        "caller": caller,
        "base_url": base_url(request),
        "form": form,
        "filtered": valid and form.is_filtered,
        "followed": rates.rows(found.streams),
        "chosen": found,
        "ticked": ticked,
        "offered": sorted({*offered, *(each.name for each in found.streams if each.name in ticked)}),
        "several": True,
        "most": MOST_STREAMS,
        "more_url": f"{reverse('dashboard:tails_more')}?{asked_for.urlencode()}",
        "all_streams": there.count(),
    }
    return render(request, "dashboard/tail.html", context, status=200 if valid else 422)


@console_page
def tails_more(request: HttpRequest, caller: Caller) -> HttpResponse:
    """For htmx, the streams that were made ``since`` a page began to follow those of its address, beside the ``known``
    ones that it has; a page that had none begins anew.
    """
    caller.demand("read")
    form = TailForm(asked(request))
    if not form.is_valid():
        return HttpResponse(status=204)
    known = request.GET.getlist("known")[:MOST_STREAMS]
    found = chosen(caller, _ticked(request), form.cleaned_data["streams"], known=known)
    if not found.streams and str(found.more) == request.GET.get("more", "0"):
        return HttpResponse(status=204)
    if not known:
        return HttpResponse(headers={"HX-Refresh": "true"})
    since_ms = _offset(request.GET.get("since"))
    taken = [
        (row, 0 if row.stream.created_at.timestamp() * 1000 >= since_ms else row.offset)
        for row in rates.rows(found.streams)
    ]
    context = {
        "taken": taken,
        "chosen": found,
        "most": MOST_STREAMS,
        "at": formats.clock(int(time.time() * 1000))[11:19],
    }
    return render(request, "dashboard/parts/tail_more.html", context)


def _ticked(request: HttpRequest) -> list[str]:
    return request.GET.getlist("stream")[: 2 * MOST_STREAMS]


def _rows(request: HttpRequest, form: TailForm, after: Mapping[Stream, int], *, named: bool) -> HttpResponse:
    if not form.is_valid():
        return HttpResponse(status=422)
    found = arrived(after, form, named=named)
    context = {
        "stream": next(iter(after), None),
        "rows": found.rows,
        "left_out": found.left_out,
        "filtered": form.is_filtered,
        "width": 5 + named + len(form.columns),
    }
    return render(request, "dashboard/parts/tail_rows.html", context)


def _offset(text: str | None) -> int:
    return number_of(text, default=0, low=0, high=MOST_OFFSET)
