"""Publishing one message by hand; checked and stored as the API would."""

import contextlib
import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.html import format_html
from django.utils.translation import gettext as _

from dashboard import formats
from dashboard.forms import PublishForm
from dashboard.publish.publishing import Outcome, publish_one, too_large
from dashboard.quantities import LARGEST, number_of
from dashboard.views.door import console_form
from dashboard.views.group_letters import letter_at
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for, stream_for
from streams.errors import Refusal
from streams.log.entries import Message
from streams.models import Stream

EXAMPLE = '{\n  "hello": "world"\n}'


@dataclass(frozen=True, slots=True)
class Again:
    """What is published again: a message of the stream, or a dead letter of a group."""

    message: Message
    group: str = ""


@console_form
def publish(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The form. It goes on with what it has stored, at the offset ``stored`` of its address, and a fresh id."""
    outcome: Outcome | None = None
    again: Again | None = None
    if request.method == "POST":
        stream = stream_for(caller, name, may="publish")
        again = _again_if_there(request, caller, name)
        form = PublishForm(request.POST)
        if form.is_valid():
            try:
                outcome = publish_one(stream, **form.cleaned_data)
            except Refusal as refusal:
                _show(refusal, form)
            else:
                if not outcome.duplicate:
                    return _stored(request, stream, outcome.offset)
                form = PublishForm(initial={**form.cleaned_data, "id": fresh_id()})
    elif "stored" in request.GET:
        again = _again_if_there(request, caller, name)
        form = PublishForm(initial={"id": fresh_id(), **_as_stored(request, caller, name, again)})
    else:
        again = _again(request, caller, name)
        form = PublishForm(initial={"id": fresh_id(), **_beginning(again)})
    context = stream_context(request, caller, name, tab="publish")
    context |= {"form": form, "outcome": outcome, "again": again, "may_publish": caller.may("publish")}
    if again and not form.is_bound:
        context["too_large"] = too_large(context["stream"], len(again.message.body))
    return render(request, "dashboard/stream/publish.html", context, status=422 if form.errors else 200)


def _stored(request: HttpRequest, stream: Stream, offset: int) -> HttpResponse:
    """To the form by an address of its own, which Back and a reload find again without publishing anything."""
    text = _("Stored at offset %(offset)s.") % {"offset": formats.count(offset)}
    address = resolve_url("dashboard:message", stream.name, offset)
    messages.success(request, format_html('{} <a href="{}">{}</a>', text, address, _("Show it")))
    source = {name: request.GET[name] for name in ("like", "letter_of") if name in request.GET}
    query = urlencode({**source, "stored": offset})
    return redirect(f"{resolve_url('dashboard:stream_publish', stream.name)}?{query}")


def _again(request: HttpRequest, caller: Caller, name: str) -> Again | None:
    """The message at the offset ``like`` of the address, where it has one.

    With ``letter_of``, a group, it is the dead letter at this offset, which the stream may have lost.
    """
    if "like" not in request.GET:
        return None
    offset = number_of(request.GET["like"], default=0, low=0, high=LARGEST)
    stream = stream_for(caller, name, may="read")
    if "letter_of" in request.GET:
        group = group_for(caller, name, request.GET["letter_of"], may="read")
        return Again(letter_at(group, offset).message.message, group.name)
    return Again(selectors.message_at(stream, offset))


def _again_if_there(request: HttpRequest, caller: Caller, name: str) -> Again | None:
    """What is published again; None also where it went since, which keeps no copy of it from being stored."""
    with contextlib.suppress(Refusal):
        return _again(request, caller, name)
    return None


def _as_stored(request: HttpRequest, caller: Caller, name: str, again: Again | None) -> dict[str, str]:
    """What the form goes on with after it stored a message; as at its beginning where that is gone already."""
    offset = number_of(request.GET["stored"], default=0, low=0, high=LARGEST)
    with contextlib.suppress(Refusal):
        return _beginning(Again(selectors.message_at(stream_for(caller, name, may="read"), offset)))
    return _beginning(again)


def _beginning(again: Again | None) -> dict[str, str]:
    """What the form begins with: an example, or what is published again."""
    if again is None:
        return {"body": EXAMPLE}
    like = again.message
    body = like.body.decode("utf-8", "replace")
    return {"key": like.key or "", "headers": (like.headers or b"").decode(), "body": body}


def fresh_id() -> str:
    """An id that no other message has."""
    return f"console-{secrets.token_hex(6)}"


def _show(refusal: Refusal, form: PublishForm) -> None:
    """Put a refusal where the person can mend it."""
    field = "body" if refusal.code in {"invalid_json", "message_too_large"} else None
    errors = refusal.details.get("errors") or [{"field": field, "message": refusal.message}]
    for error in errors:
        form.add_error(error["field"] if error["field"] in form.fields else None, error["message"])
