"""The list of streams, the columns a person chose for it, and making a stream."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.forms import StreamForm
from dashboard.lists.stream_csv import lines_of
from dashboard.lists.stream_list import (
    COLUMNS,
    OF_GROUPS,
    PAGE_SIZES,
    columns_of,
    page_of,
    query_of,
    rows_of,
    sorts_of,
    totals_of,
)
from dashboard.remembered import remember
from dashboard.views.door import base_url, console_action, console_form, console_page, is_part, safe_next
from streams import selectors
from streams.access import Caller
from streams.errors import Refusal
from streams.services.streams import stream_create

COLUMNS_COOKIE = "okmq_columns"


@console_page
def streams(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The list; the query string holds search, labels, sort and page, and htmx gets the table alone; with ``rows``,
    what the groups of these come to.
    """
    query = query_of(request.GET)
    shown = columns_of(request.COOKIES.get(COLUMNS_COOKIE, ""))
    cells = [column for column in OF_GROUPS if column in shown]
    if is_part(request) and "rows" in request.GET:
        part = {"rows": rows_of(caller, query, request.GET["rows"]), "cells": cells}
        return render(request, "dashboard/parts/stream_groups_now.html", part)
    page = page_of(caller, query)
    context = {
        "section": "streams",
        "caller": caller,
        "page": page,
        "query": query,
        "sort": query.sort,
        "sorts": sorts_of(shown, query),
        "sizes": PAGE_SIZES,
        "columns": [(column, label, column in shown) for column, label in COLUMNS],
        "shown": shown,
        "cells": cells,
        "may_manage": caller.may("manage"),
        "all_streams": (
            selectors.streams_of(caller).count() if query.is_narrowed or query.internal else page.total
        ),
        "base_url": base_url(request),
    }
    if is_part(request):
        answer = render(request, "dashboard/parts/streams_now.html", context)
    else:
        answer = render(
            request, "dashboard/streams.html", context | {"totals": totals_of(caller, query, page)}
        )
    answer["Vary"] = "HX-Request"
    return answer


@console_action
def columns(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Remember which columns a person wants to see."""
    known = [column for column, _label in COLUMNS if column in request.POST.getlist("column")]
    answer = HttpResponseRedirect(safe_next(request, default="dashboard:streams"))
    remember(answer, request, COLUMNS_COOKIE, ".".join(known))
    return answer


@console_page
def export(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The whole list that matches as CSV, in its order."""
    lines = "".join(lines_of(caller, query_of(request.GET)))
    answer = HttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="streams.csv"'
    return answer


@console_form
def create(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A form for a new stream."""
    caller.demand("manage")
    form = StreamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            caller.demand_stream(form.cleaned_data["name"])
            stream, made = stream_create(
                caller.workspace, name=form.cleaned_data["name"], settings=form.settings(), actor=caller.actor
            )
        except Refusal as refusal:
            form.add_error(_field_of(refusal), refusal.message)
        else:
            text = _("Stream %(name)s was created.") if made else _("Stream %(name)s already exists.")
            messages.success(request, text % {"name": stream.name})
            return redirect("dashboard:stream_messages", name=stream.name)
    return render(
        request,
        "dashboard/stream_create.html",
        {"section": "streams", "caller": caller, "form": form, "base_url": base_url(request)},
        status=422 if form.errors else 200,
    )


def _field_of(refusal: Refusal) -> str:
    """The field of the form that a refusal is about."""
    named = [refusal.details.get("cap"), *refusal.details.get("fields", ())]
    return next((field for field in ("ttl", "storage") if field in named), "name")
