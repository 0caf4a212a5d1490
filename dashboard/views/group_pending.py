"""The desk of a group: what is in flight, and what a person does with it, shown before it is done."""

import time
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dashboard import formats, quantities
from dashboard.groups.desk_forms import DeskForm, SettleForm
from dashboard.groups.group_rows import GroupRow
from dashboard.quantities import number_of
from dashboard.views.door import console_page
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.log.pending import InFlight
from streams.models import Group
from streams.models.group import Ack
from streams.services.deliveries import (
    MOST_AT_ONCE,
    deliveries_chosen,
    deliveries_matching,
    deliveries_settle,
)

SHOWN = 100


def _context(
    request: HttpRequest, caller: Caller, group: Group, desk: DeskForm, after: int
) -> dict[str, Any]:
    rows: list[InFlight] = []
    following = None
    if desk.is_valid():
        rows, following = selectors.in_flight(group, wanted=desk.wanted, start=after + 1, limit=SHOWN)
    now_ms = time.time() * 1000
    return stream_context(request, caller, group.stream.name, tab="groups") | {
        "group": group,
        "shown": GroupRow(selectors.group_view(group)),
        "desk": desk,
        "settle_form": SettleForm(),
        "rows": [
            (row, max(0.0, (now_ms - row.delivered_ms) / 1000) if row.delivered_ms else None) for row in rows
        ],
        "after": after,
        "next_after": None if following is None else following - 1,
        "may_consume": caller.may("consume"),
        "asked": {name: request.GET.get(name, "") for name in desk.fields},
    }


@require_GET
@console_page
def pending(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """What is in flight, by offset; looking changes nothing."""
    found = group_for(caller, name, group, may="read")
    desk = DeskForm(request.GET)
    after = number_of(request.GET.get("after"), default=0, low=0, high=quantities.LARGEST)
    context = _context(request, caller, found, desk, after)
    return render(request, "dashboard/stream/pending.html", context, status=422 if desk.errors else 200)


@require_POST
@console_page
def settle(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Say what would happen; done when it was confirmed."""
    found = group_for(caller, name, group, may="consume")
    desk, form = DeskForm(request.POST), SettleForm(request.POST)
    if not (desk.is_valid() & form.is_valid()):
        context = _context(request, caller, found, desk, 0) | {"settle_form": form}
        return render(request, "dashboard/stream/pending.html", context, status=422)
    if form.cleaned_data["scope"] == "all":
        matching, has_more = deliveries_matching(found, desk.wanted)
        chosen = [row.offset for row in matching]
    else:
        chosen, has_more = deliveries_chosen(found, form.offsets), False
    back = resolve_url("dashboard:group_pending", name=name, group=group)
    if not chosen:
        messages.warning(request, _("Nothing in flight matches any more."))
        return redirect(back)
    what = form.cleaned_data["what"]
    if "confirmed" in request.POST:
        count = deliveries_settle(
            found,
            what,
            offsets=chosen,
            actor=caller.actor,
            delay_s=form.cleaned_data["delay"],
            reason=form.cleaned_data["reason"] or _("ended by hand"),
        )
        messages.success(request, _said(what) % {"count": formats.count(count)})
        return redirect(back)
    context = stream_context(request, caller, name, tab="groups") | {
        "group": found,
        "form": form,
        "desk": desk,
        "what": what,
        "offsets": form.offsets,
        "chosen": chosen,
        "count": len(chosen),
        "first": chosen[0],
        "last": chosen[-1],
        "most": MOST_AT_ONCE if has_more else None,
        "covers_before": found.ack == Ack.ALL,
    }
    return render(request, "dashboard/stream/settle.html", context)


def _said(what: str) -> str:
    return {
        "ack": _("Acknowledged by hand: %(count)s."),
        "nack": _("Given back: %(count)s."),
        "term": _("Ended, now dead letters: %(count)s."),
    }[what]
