"""The dead letters of a group: each on a page of its own, replayed, deleted."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from dashboard import formats, quantities
from dashboard.groups.desk_forms import LettersForm
from dashboard.groups.group_rows import DeadLetterRow
from dashboard.quantities import number_of
from dashboard.views.door import console_page, is_part
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.errors import Refusal
from streams.models import Group
from streams.services.dead_letters import (
    dead_letters_delete,
    dead_letters_delete_these,
    dead_letters_replay,
)

ALL = "all"


def letter_at(group: Group, offset: int) -> DeadLetterRow:
    """The dead letter at an offset.

    Raises:
        Refusal: ``message_not_found`` when there is none.
    """
    found = selectors.dead_letters(group, start=min(offset, quantities.LARGEST), limit=1)
    if not found or found[0].offset != offset:
        raise Refusal("message_not_found", f"There is no dead letter at offset {offset}.", offset=offset)
    return DeadLetterRow(found[0])


def offset_posted(request: HttpRequest) -> int | None:
    """Which dead letter a form names; None is all of them.

    Raises:
        Refusal: ``validation_error`` when it names none; an empty form must not mean all.
    """
    wanted = request.POST.get("offset", "")
    if wanted == ALL:
        return None
    offset = number_of(wanted, default=0, low=0, high=quantities.LARGEST)
    if not offset:
        raise Refusal("validation_error", "Which dead letter is not said.", fields=["offset"])
    return offset


@require_GET
@console_page
def letter(request: HttpRequest, caller: Caller, name: str, group: str, offset: int) -> HttpResponse:
    """One dead letter: a page of its own, or what opens under its row."""
    found = group_for(caller, name, group, may="read")
    context = {
        "stream": found.stream,
        "group": found,
        "letter": letter_at(found, offset),
        "may_manage": caller.may("manage"),
        "may_publish": caller.may("publish"),
    }
    if is_part(request):
        answer = render(request, "dashboard/parts/dead_letter.html", context | {"in_place": True})
    else:
        context |= stream_context(request, caller, name, tab="groups")
        answer = render(request, "dashboard/stream/dead_letter.html", context)
    answer["Vary"] = "HX-Request"
    return answer


@require_GET
@console_page
def raw(request: HttpRequest, caller: Caller, name: str, group: str, offset: int) -> HttpResponse:
    """The whole body exactly as sent; plain text, so that no browser makes a page of it."""
    found = group_for(caller, name, group, may="read")
    body = letter_at(found, offset).message.message.body
    answer = HttpResponse(body, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="{name}-{group}-{offset}.json.txt"'
    return answer


@require_POST
@console_page
def replay(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Deliver one dead letter, or all, again with a fresh count."""
    found = group_for(caller, name, group, may="manage")
    offset = offset_posted(request)
    if offset is not None:
        letter_at(found, offset)
    count = dead_letters_replay(found, offsets=None if offset is None else [offset], actor=caller.actor)
    said = ngettext(
        "%(count)s dead letter is delivered again.", "%(count)s dead letters are delivered again.", count
    )
    messages.success(request, said % {"count": formats.count(count)})
    return redirect("dashboard:group", name=name, group=group)


@require_POST
@console_page
def delete(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Delete one dead letter, or all."""
    found = group_for(caller, name, group, may="manage")
    count = dead_letters_delete(found, offset=offset_posted(request), actor=caller.actor)
    said = ngettext("%(count)s dead letter was deleted.", "%(count)s dead letters were deleted.", count)
    messages.success(request, said % {"count": formats.count(count)})
    return redirect("dashboard:group", name=name, group=group)


@require_POST
@console_page
def bulk(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Replay or delete the chosen ones, or all that match; says first how many, and which."""
    found = group_for(caller, name, group, may="manage")
    form = LettersForm(request.POST)
    back = f"{resolve_url('dashboard:group', name=name, group=group)}#dead-letters"
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect(back)
    if form.cleaned_data["scope"] == ALL:
        offsets, has_more = selectors.dead_letters_matching(found, form.cleaned_data["reason"])
    else:
        offsets, has_more = selectors.dead_letters_chosen(found, form.offsets), False
    if not offsets:
        messages.warning(request, _("No dead letter matches any more."))
        return redirect(back)
    if "confirmed" not in request.POST:
        shown = selectors.dead_letters(found, start=offsets[0], limit=1)
        context = stream_context(request, caller, name, tab="groups") | {
            "group": found,
            "form": form,
            "offsets": form.offsets,
            "chosen": offsets,
            "count": len(offsets),
            "first": offsets[0],
            "last": offsets[-1],
            "shown": DeadLetterRow(shown[0]) if shown and shown[0].offset == offsets[0] else None,
            "has_more": has_more,
        }
        return render(request, "dashboard/stream/letters_bulk.html", context)
    if form.cleaned_data["do"] == "delete":
        count = dead_letters_delete_these(found, offsets=offsets, actor=caller.actor)
        said = ngettext("%(count)s dead letter was deleted.", "%(count)s dead letters were deleted.", count)
    else:
        count = dead_letters_replay(found, offsets=offsets, actor=caller.actor)
        said = ngettext(
            "%(count)s dead letter is delivered again.", "%(count)s dead letters are delivered again.", count
        )
    messages.success(request, said % {"count": formats.count(count)})
    return redirect(back)
