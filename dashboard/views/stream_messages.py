"""Looking into a stream. Looking moves nothing: no group, no committed offset."""

import json
import time
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard import bodies, formats
from dashboard.bodies import Layout
from dashboard.forms import BrowseForm
from dashboard.views.door import console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, stream_for
from streams.log.entries import Message
from streams.models import Stream

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message as the pages show it."""

    message: Message

    @property
    def size(self) -> int:
        return len(self.message.body)

    @property
    def published(self) -> str:
        """The exact time without its zone, which the column's heading names."""
        return formats.moment(self.message.timestamp_ms).removesuffix(" UTC")

    @property
    def age(self) -> str:
        return formats.age(time.time() - self.message.timestamp_ms / 1000)

    @property
    def preview(self) -> str:
        return bodies.preview(self.message.body)

    @property
    def laid_out(self) -> Layout:
        return bodies.laid_out(self.message.body)

    @property
    def raw(self) -> str:
        return bodies.raw(self.message.body)

    @property
    def id(self) -> str:
        return bodies.visible(self.message.id)

    @property
    def key(self) -> str:
        return bodies.visible(self.message.key or "")

    @property
    def headers(self) -> list[tuple[str, str]]:
        held = json.loads(self.message.headers) if self.message.headers else {}
        return [(bodies.visible(name), bodies.visible(str(value))) for name, value in held.items()]


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that a page shows, in its order; ``older`` and ``newer`` say whether there is more."""

    rows: list[MessageRow]
    older: int | None
    newer: int | None

    @property
    def lowest(self) -> int:
        return min(row.message.offset for row in self.rows)

    @property
    def highest(self) -> int:
        return max(row.message.offset for row in self.rows)


def window_of(stream: Stream, form: BrowseForm) -> Window:
    """The page of messages that a valid form asks for."""
    asked = form.cleaned_data
    newest_first = asked["start"] == "newest"
    if asked["before"] is not None:
        found = selectors.messages_before(stream, offset=asked["before"], limit=PAGE_SIZE)
    elif asked["after"] is not None:
        found = selectors.messages_from(stream, offset=asked["after"] + 1, limit=PAGE_SIZE)
    elif asked["start"] == "oldest":
        found = selectors.messages_from(stream, offset=0, limit=PAGE_SIZE)
    elif asked["start"] == "offset":
        found = selectors.messages_from(stream, offset=asked["offset"], limit=PAGE_SIZE)
    elif asked["start"] == "time":
        start = selectors.offset_at(stream, asked["time"])
        found = selectors.messages_from(stream, offset=start, limit=PAGE_SIZE)
    else:
        found = selectors.messages_before(stream, offset=None, limit=PAGE_SIZE)
    if not found:
        return Window([], None, None)
    lowest, highest = found[0].offset, found[-1].offset
    has_older = bool(selectors.messages_before(stream, offset=lowest, limit=1))
    has_newer = bool(selectors.messages_from(stream, offset=highest + 1, limit=1))
    rows = [MessageRow(message) for message in (reversed(found) if newest_first else found)]
    return Window(rows, lowest if has_older else None, highest if has_newer else None)


@require_GET
@console_page
def browse(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """A page of messages; the query string says where from."""
    context = stream_context(request, caller, name, tab="messages")
    form = BrowseForm(request.GET)
    valid = form.is_valid()
    window = window_of(context["stream"], form) if valid else Window([], None, None)
    context |= {"form": form, "window": window, "start": form.cleaned_data.get("start", "newest")}
    return render(request, "dashboard/stream/messages.html", context, status=200 if valid else 422)


@require_GET
@console_page
def message(request: HttpRequest, caller: Caller, name: str, offset: int) -> HttpResponse:
    """One message: a page of its own, or what opens under its row."""
    if is_part(request):
        stream = stream_for(caller, name, may="read")
        row = MessageRow(selectors.message_at(stream, offset))
        answer = render(
            request, "dashboard/parts/message.html", {"stream": stream, "shown": row, "in_place": True}
        )
    else:
        context = stream_context(request, caller, name, tab="messages")
        row = MessageRow(selectors.message_at(context["stream"], offset))
        answer = render(request, "dashboard/stream/message.html", context | {"shown": row})
    answer["Vary"] = "HX-Request"
    return answer


@require_GET
@console_page
def raw(request: HttpRequest, caller: Caller, name: str, offset: int) -> HttpResponse:
    """The whole body exactly as sent; plain text, so that no browser makes a page of it."""
    stream = stream_for(caller, name, may="read")
    body = selectors.message_at(stream, offset).body
    answer = HttpResponse(body, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="{name}-{offset}.json.txt"'
    return answer
