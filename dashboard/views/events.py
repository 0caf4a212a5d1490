"""What happened: all of a workspace, or of one stream or group, with before and after; and as a file."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard import exports, formats, quantities
from dashboard.groups.group_rows import GroupRow
from dashboard.lists.event_rows import PAGE_SIZE, EventsForm, chain_state, event_rows
from dashboard.quantities import number_of
from dashboard.views.door import base_url, console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for, stream_for
from streams.errors import Refusal
from streams.models import Event
from streams.selectors import EventsWanted

ACTIVITY = "dashboard/stream/activity.html"
NEWER_COUNTED = 100
SLICE = 500
CSV_COLUMNS = (
    "id",
    "time",
    "kind",
    "actor",
    "address",
    "stream",
    "group",
    "summary",
    "before",
    "after",
    "hash",
)


@console_page
def events(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The events of the workspace, newest first; the query string holds the filters and the page."""
    caller.demand("read")
    if is_part(request):
        return _newer(request, caller)
    context = {"section": "events", "caller": caller, "base_url": base_url(request)}
    return _page(request, "dashboard/events.html", context | _found(request, caller))


@console_page
def stream_activity(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """What happened to a stream and its groups."""
    if is_part(request):
        stream_for(caller, name, may="read")
        return _newer(request, caller, stream=name)
    context = stream_context(request, caller, name, tab="activity")
    return _page(request, ACTIVITY, context | _found(request, caller, stream=name))


@console_page
def group_activity(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """What happened to a group."""
    found = group_for(caller, name, group, may="read")
    if is_part(request):
        return _newer(request, caller, stream=name, group=group)
    context = stream_context(request, caller, name, tab="groups")
    # Events are read also while the store of a group is away; its tabs say no counts then.
    shown = next(map(GroupRow, selectors.reachable_views([found])), None)
    context |= {"group": found, "shown": shown, **_found(request, caller, stream=name, group=group)}
    return _page(request, ACTIVITY, context)


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    answer = render(request, template, context)
    answer["Vary"] = "HX-Request"
    return answer


def _newer(request: HttpRequest, caller: Caller, **fixed: Any) -> HttpResponse:
    """What an open page asks once something has happened: how many events came since its newest."""
    form = EventsForm(request.GET)
    if not form.is_valid():
        return _page(request, "dashboard/parts/newer_events_now.html", {"newer": 0})
    wanted = form.wanted(**fixed)
    seen = number_of(request.GET.get("seen"), default=0, low=0, high=quantities.LARGEST)
    newer = len(
        selectors.events_found(caller, replace(wanted, before=None, after=seen), limit=NEWER_COUNTED + 1)
    )
    told = {"newer": min(newer, NEWER_COUNTED), "has_more": newer > NEWER_COUNTED}
    return _page(request, "dashboard/parts/newer_events_now.html", told)


@console_page
def export(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Everything that matches, oldest first, as NDJSON or CSV."""
    caller.demand("read")
    form = EventsForm(request.GET)
    if not form.is_valid() or request.GET.get("format", "ndjson") not in {"ndjson", "csv"}:
        raise Refusal("validation_error", "An export is ndjson or csv, of a time range.")
    is_csv = request.GET.get("format") == "csv"
    written = _written(caller, form.wanted(), is_csv=is_csv, zone=timezone.get_current_timezone())
    kind = "text/csv; charset=utf-8" if is_csv else "application/x-ndjson"
    answer = StreamingHttpResponse(written, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="events.{"csv" if is_csv else "ndjson"}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _found(request: HttpRequest, caller: Caller, **fixed: Any) -> dict[str, Any]:
    """What the list needs; under a filter that is wrong it is empty: what the others let in was not asked for."""
    form = EventsForm(request.GET)
    around = {"form": form, "fixed": fixed, "chain": chain_state()}
    if not form.is_valid():
        return {**around, "wanted": None, "rows": []}
    wanted = form.wanted(**fixed)
    events_mark = selectors.newest_event(caller)
    # One more than is shown tells whether there are older ones (or newer ones, going back).
    found = selectors.events_found(caller, wanted, limit=PAGE_SIZE + 1)
    more, back = len(found) > PAGE_SIZE, wanted.after is not None
    shown = found[-PAGE_SIZE:] if back else found[:PAGE_SIZE]
    has_newer, has_older = (more, True) if back else (wanted.before is not None, more)
    return {
        **around,
        "wanted": wanted,
        "rows": event_rows(caller, shown),
        "newest": shown[0].id if shown else 0,
        "events_mark": events_mark,
        "older": shown[-1].id if shown and has_older else None,
        "newer": shown[0].id if shown and has_newer else None,
    }


async def _written(
    caller: Caller, wanted: EventsWanted, *, is_csv: bool, zone: tzinfo
) -> AsyncIterator[bytes]:
    """A slice of events at a time; the zone is that of the request, which has been answered by then."""
    slice_of = sync_to_async(selectors.events_found)
    line = _csv_line if is_csv else _json_line
    if is_csv:
        yield exports.csv_line(CSV_COLUMNS).encode()
    after = wanted.after or 0
    while rows := await slice_of(caller, replace(wanted, after=after), limit=SLICE):
        with timezone.override(zone):
            part = b"".join(line(event) for event in reversed(rows))
        yield part
        after = rows[0].id


def _content(event: Event, time: str) -> list[Any]:
    return [time if name == "time" else getattr(event, name) for name in CSV_COLUMNS]


def _ms(event: Event) -> int:
    return int(event.time.timestamp() * 1000)


def _json_line(event: Event) -> bytes:
    content = dict(zip(CSV_COLUMNS, _content(event, formats.iso(_ms(event))), strict=True))
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _csv_line(event: Event) -> bytes:
    content = _content(event, formats.iso_local(_ms(event)))
    cells = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in content]
    return exports.csv_line(cells).encode("utf-8", "replace")
