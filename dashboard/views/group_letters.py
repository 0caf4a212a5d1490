"""The dead letters of a group: the list, each on a page of its own, replayed, deleted."""

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats, quantities
from dashboard.browse.readings import reading_of
from dashboard.confirmations import LARGE_MESSAGES, ConfirmForm, phrase_for
from dashboard.groups.desk_forms import LettersForm
from dashboard.groups.group_rows import DeadLetterRow, GroupRow
from dashboard.quantities import number_of
from dashboard.shown import offsets_written
from dashboard.views.door import console_action, console_form, console_page, is_part, safe_next
from dashboard.views.of_page import held_to_group
from dashboard.views.opened import opened_of
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.errors import Refusal
from streams.models import Group
from streams.services.dead_letters import (
    dead_letters_delete_these,
    dead_letters_replay,
)

ALL = "all"
NEWEST = "newest"
SHOWN = 50


def letter_at(group: Group, offset: int) -> DeadLetterRow:
    """The dead letter at an offset.

    Raises:
        Refusal: ``message_not_found`` when there is none.
    """
    found = selectors.dead_letters(group, after=min(offset, quantities.LARGEST) - 1, limit=1)
    if not found or found[0].offset != offset:
        raise Refusal("message_not_found", f"There is no dead letter at offset {offset}.", offset=offset)
    return DeadLetterRow(found[0])


def offset_posted(request: HttpRequest) -> int:
    """Which dead letter a form names.

    Raises:
        Refusal: ``validation_error`` when it names none.
    """
    offset = number_of(request.POST.get("offset", ""), default=0, low=0, high=quantities.LARGEST)
    if not offset:
        raise Refusal("validation_error", "No dead letter was specified.", fields=["offset"])
    return offset


@console_page
def letters(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """The dead letters by offset, those whose reason contains what is asked for; looking changes nothing."""
    found = group_for(caller, name, group, may="read")
    after = number_of(request.GET.get("after"), default=0, low=0, high=quantities.LARGEST - 1)
    reason = request.GET.get("reason", "")
    newest_first = request.GET.get("order") == NEWEST
    # How it stands is looked at first: what dies or is replayed in between, the page says to be newer.
    shown = GroupRow(selectors.group_view(found))
    page = selectors.dead_letters(
        found, after=after or None, limit=SHOWN + 1, reason=reason, newest_first=newest_first
    )
    rows = [DeadLetterRow(each) for each in page[:SHOWN]]
    opened, apart, gone = opened_of(
        request, {row.letter.offset for row in rows}, lambda offset: letter_at(found, offset)
    )
    context = stream_context(request, caller, name, tab="groups") | {
        "group": found,
        "shown": shown,
        "letters": rows,
        "opened": opened,
        "apart": apart,
        "gone": gone,
        "letters_after": page[SHOWN - 1].offset if len(page) > SHOWN else None,
        "after": after,
        "reason": reason,
        "reasons": selectors.dead_letter_reasons(found),
        "newest_first": newest_first,
        "may_manage": caller.may("manage"),
        "may_publish": caller.may("publish"),
    }
    return render(request, "dashboard/stream/dead_letters.html", context)


@console_page
def letter(request: HttpRequest, caller: Caller, name: str, group: str, offset: int) -> HttpResponse:
    """One dead letter: a page of its own, or what opens under its row."""
    found = group_for(caller, name, group, may="read")
    context = {
        "stream": found.stream,
        "group": found,
        "letter": replace(letter_at(found, offset), reading=reading_of(request)),
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


@console_page
def raw(request: HttpRequest, caller: Caller, name: str, group: str, offset: int) -> HttpResponse:
    """The whole body exactly as sent; plain text, so that no browser makes a page of it."""
    found = group_for(caller, name, group, may="read")
    body = letter_at(found, offset).message.message.body
    answer = HttpResponse(body, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="{name}-{group}-{offset}.json.txt"'
    return answer


@console_action
@held_to_group
def replay(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Deliver one dead letter again with a fresh count."""
    found = group_for(caller, name, group, may="manage")
    offset = offset_posted(request)
    letter_at(found, offset)
    count = dead_letters_replay(found, offsets=[offset], actor=caller.actor)
    messages.success(request, _replayed(count))
    listed = resolve_url("dashboard:dead_letters", name=name, group=group)
    return redirect(safe_next(request, default=listed))


@console_form
@held_to_group
def bulk(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Say how many, and which; whoever confirms it has those that were shown replayed or deleted, and no other."""
    found = group_for(caller, name, group, may="manage")
    form = LettersForm(request.POST or request.GET)
    back = safe_next(request, default=resolve_url("dashboard:dead_letters", name=name, group=group))
    if not form.is_valid():
        messages.error(
            request, " ".join(f"{field.label}: {error}" for field in form for error in field.errors)
        )
        return redirect(back)
    offsets, has_more = _chosen(found, form)
    if not offsets:
        messages.warning(request, _("No dead letter matches any more."))
        return redirect(back)
    is_delete = form.cleaned_data["do"] == "delete"
    is_large = len(offsets) >= LARGE_MESSAGES
    phrase = phrase_for([found.stream], is_large=is_large) if is_delete else ""
    is_agreed = request.method == "POST" and bool(form.seen)
    confirm = ConfirmForm(request.POST if is_agreed else None, phrase=phrase)
    if not confirm.is_valid():
        shown = selectors.dead_letters(found, after=offsets[0] - 1, limit=1)
        context = stream_context(request, caller, name, tab="groups") | {
            "group": found,
            "form": form,
            "chosen": offsets,
            "seen_offsets": offsets_written(offsets),
            "count": len(offsets),
            "first": offsets[0],
            "last": offsets[-1],
            "shown": DeadLetterRow(shown[0]) if shown and shown[0].offset == offsets[0] else None,
            "has_more": has_more,
            "confirm": confirm,
            "back": back,
        }
        status = 422 if confirm.errors else 200
        return render(request, "dashboard/stream/letters_bulk.html", context, status=status)
    if is_delete:
        count = dead_letters_delete_these(found, offsets=offsets, actor=caller.actor)
        said = ngettext("%(count)s dead letter was deleted.", "%(count)s dead letters were deleted.", count)
        messages.success(request, said % {"count": formats.count(count)})
    else:
        count = dead_letters_replay(found, offsets=offsets, actor=caller.actor)
        messages.success(request, _replayed(count))
    return redirect(back)


def _replayed(count: int) -> str:
    said = ngettext("%(count)s dead letter is redelivered.", "%(count)s dead letters are redelivered.", count)
    return said % {"count": formats.count(count)}


def _chosen(group: Group, form: LettersForm) -> tuple[list[int], bool]:
    """Which offsets it is about, as far as they are still dead letters, and whether more were not looked at."""
    if form.cleaned_data["scope"] != ALL:
        return selectors.dead_letters_chosen(group, form.seen or form.offsets), False
    matching, has_more = selectors.dead_letters_matching(group, form.cleaned_data["reason"])
    if not form.seen:
        return matching, has_more
    return sorted({*matching} & {*form.seen}), False
