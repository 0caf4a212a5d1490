"""The list of streams, and making one."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from dashboard import rates
from dashboard.forms import StreamForm
from dashboard.stream_rows import SORTS, StreamRow, sorted_rows
from dashboard.views.door import base_url, console_page, is_part, number_of
from streams import selectors
from streams.access import Caller
from streams.errors import Refusal
from streams.services.streams import stream_create

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """One page of rows; ``total`` match, numbered from ``first`` to ``last``."""

    rows: list[StreamRow]
    total: int
    number: int

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_SIZE + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0

    @property
    def newer(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        return self.number + 1 if self.last < self.total else None


def page_of(caller: Caller, *, name: str, sort: str, number: int) -> Page:
    """A page of the streams that match; by name only the page's own streams are asked how they stand."""
    found = selectors.streams_of(caller, name=name)
    if sort.removeprefix("-") == "name":
        ordered = found.order_by(sort)
        total = ordered.count()
        number = _within(number, total)
        begin = (number - 1) * PAGE_SIZE
        return Page(rates.rows(list(ordered[begin : begin + PAGE_SIZE])), total, number)
    pks = stream_order(caller, name=name, sort=sort)
    number = _within(number, len(pks))
    begin = (number - 1) * PAGE_SIZE
    rows = found.in_bulk(pks[begin : begin + PAGE_SIZE])
    return Page(sorted_rows(rates.rows(list(rows.values())), sort=sort), len(pks), number)


def stream_order(caller: Caller, *, name: str, sort: str) -> list[int]:
    """The keys of all streams that match, by what is counted of them; the page alone is looked at closely."""
    found = selectors.stream_figures(selectors.streams_of(caller, name=name))
    rate_in = {each.stream_id: each.rate_in for each in rates.moving_now()} if "rate" in sort else {}
    value = {
        "messages": lambda each: each[1].messages,
        "bytes": lambda each: each[1].bytes,
        "rate": lambda each: rate_in.get(each[0].stream_id, 0.0),
        "last": lambda each: each[1].last_ms or 0,
        "lag": lambda each: each[1].lag,
    }[sort.removeprefix("-")]
    return [each.pk for each, _ in sorted(found, key=value, reverse=sort.startswith("-"))]


def _within(number: int, total: int) -> int:
    return min(number, max(1, -(-total // PAGE_SIZE)))


@require_GET
@console_page
def streams(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The list; the query string holds search, sort and page, and htmx gets the table alone."""
    name = request.GET.get("name", "").strip()[:50]
    sort = request.GET.get("sort", "name")
    if sort.removeprefix("-") not in SORTS:
        sort = "name"
    page = page_of(
        caller,
        name=name,
        sort=sort,
        number=number_of(request.GET.get("page"), default=1, low=1, high=100_000),
    )
    context = {
        "section": "streams",
        "caller": caller,
        "page": page,
        "name": name,
        "sort": sort,
        "all_streams": page.total if not name else selectors.streams_of(caller).count(),
        "base_url": base_url(request),
    }
    template = "dashboard/parts/stream_table.html" if is_part(request) else "dashboard/streams.html"
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    return answer


@require_http_methods(["GET", "POST"])
@console_page
def create(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A form for a new stream."""
    caller.demand("manage")
    form = StreamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            stream, made = stream_create(
                caller.workspace, name=form.cleaned_data["name"], settings=form.settings(), actor=caller.actor
            )
        except Refusal as refusal:
            form.add_error("ttl" if refusal.details.get("cap") == "ttl" else "name", refusal.message)
        else:
            text = _("Stream %(name)s was created.") if made else _("Stream %(name)s was there already.")
            messages.success(request, text % {"name": stream.name})
            return redirect("dashboard:stream_messages", name=stream.name)
    return render(
        request,
        "dashboard/stream_create.html",
        {"section": "streams", "caller": caller, "form": form, "base_url": base_url(request)},
        status=422 if form.errors else 200,
    )
