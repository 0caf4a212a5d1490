"""The desk of a group: what is in flight, and what a person does with it, shown before it is done."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import formats, quantities
from dashboard.browse.message_rows import MessageRow
from dashboard.browse.readings import reading_of
from dashboard.confirmations import LARGE_MESSAGES, ConfirmForm, phrase_for
from dashboard.groups.desk_forms import DeskForm, SettleForm
from dashboard.groups.group_rows import GroupRow
from dashboard.groups.letting_go import LettingGo, letting_go
from dashboard.live import rates
from dashboard.quantities import number_of
from dashboard.shown import Shown, offsets_written
from dashboard.views.door import console_form, console_page, safe_next, shown_then
from dashboard.views.of_page import held_to_group
from dashboard.views.opened import opened_of
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.log.pending import InFlight
from streams.models import Group
from streams.models.group import Ack
from streams.services.deliveries import (
    MOST_AT_ONCE,
    deliveries_at_last,
    deliveries_chosen,
    deliveries_covered,
    deliveries_matching,
    deliveries_settle,
)

SHOWN = 100


def _context(
    request: HttpRequest, caller: Caller, group: Group, desk: DeskForm, after: int
) -> dict[str, Any]:
    # Looked at before the rows: what changes in between, the page says to be newer.
    shown = GroupRow(selectors.group_view(group))
    rows: list[InFlight] = []
    following = None
    if desk.is_valid():
        rows, following = selectors.in_flight(group, wanted=desk.wanted, start=after + 1, limit=SHOWN)
    _listed, found, missing = opened_of(request, (), partial(_message, request, group))
    listed = {row.offset for row in rows if row.id is not None}
    opened = [each for each in found if each.message.offset in listed]
    now = timezone.now()
    return stream_context(request, caller, group.stream.name, tab="groups") | {
        "group": group,
        "shown": shown,
        "desk": desk,
        "settle_form": SettleForm(),
        "rows": [
            (row, now + timedelta(milliseconds=row.due_in_ms) if row.due_in_ms else None) for row in rows
        ],
        "opened": opened,
        "offsets_opened": [each.message.offset for each in opened],
        "apart": [each for each in found if each not in opened],
        "missing": missing,
        "after": after,
        "next_after": None if following is None else following - 1,
        "may_consume": caller.may("consume"),
        "asked": {name: request.GET.get(name, "") for name in desk.fields},
    }


def _message(request: HttpRequest, group: Group, offset: int) -> MessageRow:
    return MessageRow(selectors.message_at(group.stream, offset), reading=reading_of(request))


TERMINATED = "terminated by hand"
"""The reason where none is given, in English as all that is stored; the form says what it will be."""


@console_page
def pending(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """What is in flight, by offset; looking changes nothing."""
    found = group_for(caller, name, group, may="read")
    desk = DeskForm(request.GET)
    after = number_of(request.GET.get("after"), default=0, low=0, high=quantities.LARGEST)
    context = _context(request, caller, found, desk, after)
    return render(request, "dashboard/stream/pending.html", context, status=422 if desk.errors else 200)


@console_form
@held_to_group
def settle(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Say what would happen; whoever confirms it has it done to the messages that were shown, and to no other."""
    found = group_for(caller, name, group, may="consume")
    asked = request.POST or request.GET
    desk, form = DeskForm(asked), SettleForm(asked)
    back = safe_next(request, default=resolve_url("dashboard:group_pending", name=name, group=group))
    if not (desk.is_valid() & form.is_valid()):
        context = _context(request, caller, found, desk, 0) | {"settle_form": form, "back": back}
        return render(request, "dashboard/stream/pending.html", context, status=422)
    what = form.cleaned_data["what"]
    chosen, has_more = _chosen(found, desk, form)
    if not chosen:
        messages.warning(request, _("Nothing in flight matches any more."))
        return redirect(back)
    covers_before = what == "ack" and found.ack == Ack.ALL
    if covers_before:
        chosen, has_more = deliveries_covered(found, chosen)
    then = shown_then(request)
    dying = deliveries_at_last(found, chosen) if what == "nack" else []
    ended = dying if what == "nack" else chosen
    going = _letting_go(found, ended, then=then) if ended else None
    grown = bool(form.seen) and not set(form.seen).issuperset(chosen)
    removes_more = bool(form.seen) and going is not None and going.has_grown(then)
    buries_more = bool(form.seen) and not set(form.seen_dying).issuperset(dying)
    is_large = len(ended) >= LARGE_MESSAGES or bool(going and going.phrase)
    phrase = phrase_for([found.stream], is_large=is_large) if ended else ""
    is_more = grown or removes_more or buries_more
    is_agreed = request.method == "POST" and bool(form.seen) and not is_more
    confirm = ConfirmForm(request.POST if is_agreed else None, phrase=phrase)
    if confirm.is_valid():
        count = deliveries_settle(
            found,
            what,
            offsets=chosen,
            actor=caller.actor,
            delay_s=form.cleaned_data["delay"],
            reason=form.cleaned_data["reason"] or TERMINATED,
        )
        messages.success(request, _said(what, dying=len(dying)) % {"count": formats.count(count)})
        return redirect(back)
    context = stream_context(request, caller, name, tab="groups") | {
        "group": found,
        "form": form,
        "desk": desk,
        "what": what,
        "chosen": chosen,
        "seen_offsets": offsets_written(chosen),
        "count": len(chosen),
        "first": chosen[0],
        "last": chosen[-1],
        "most": MOST_AT_ONCE if has_more else None,
        "covers_before": covers_before,
        "grown": grown,
        "dying": len(dying),
        "seen_dying": offsets_written(dying),
        "again": len(chosen) - len(ended),
        "takes": bool(ended),
        "buries_more": buries_more,
        "going": going,
        "removes_more": removes_more,
        "confirm": confirm,
        "back": back,
    }
    status = 409 if is_more else 422 if confirm.errors else 200
    return render(request, "dashboard/stream/settle.html", context, status=status)


def _letting_go(group: Group, offsets: Sequence[int], *, then: Shown) -> LettingGo | None:
    """What goes for good once these have been settled and are not delivered again; None where nothing does."""
    found = selectors.let_go_by_answers(group, offsets=offsets)
    if found is None:
        return None
    row = rates.rows([group.stream])[0]
    return letting_go(
        group.stream,
        found,
        at_most=len(offsets),
        stored=row.messages or 0,
        arriving=row.arriving,
        then=then,
    )


def _chosen(group: Group, desk: DeskForm, form: SettleForm) -> tuple[list[int], bool]:
    """Which offsets it is about, as far as they are still in flight, and whether more match."""
    is_all = form.cleaned_data["scope"] == "all"
    if is_all and not form.seen:
        matching, has_more = deliveries_matching(group, desk.wanted)
        return [row.offset for row in matching], has_more
    return deliveries_chosen(group, form.seen or form.offsets, desk.wanted if is_all else None), False


def _said(what: str, *, dying: int) -> str:
    said = {
        "ack": _("Acknowledged: %(count)s."),
        "nack": _("Nacked: %(count)s."),
        "term": _("Terminated, now dead letters: %(count)s."),
    }[what]
    if not dying:
        return said
    died = _("Of these become dead letters: %(count)s.") % {"count": formats.count(dying)}
    return f"{said} {died}"
