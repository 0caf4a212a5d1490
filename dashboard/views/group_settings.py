"""What a group is set to, and its end."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.forms import refusal_show
from dashboard.groups.group_effects import effect_of_change
from dashboard.groups.group_forms import GroupDeleteForm, GroupSettingsForm
from dashboard.groups.group_rows import GroupRow
from dashboard.lists.bulk import is_more
from dashboard.views.agreeing import effect_then, question_of
from dashboard.views.door import console_action, console_form
from dashboard.views.of_page import held_to_group
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.errors import Refusal
from streams.models import Group
from streams.models.stream import Retention
from streams.services.groups import group_change, group_delete

PAGE = "dashboard/stream/group_settings.html"


def _context(request: HttpRequest, caller: Caller, group: Group) -> dict[str, Any]:
    by_interest = group.stream.retention == Retention.INTEREST
    going = selectors.retention_preview(group.stream, {}, without=[group]) if by_interest else None
    shown = GroupRow(selectors.group_view(group))
    seen = {
        "seen_letters": shown.state.dead_letters,
        "seen_messages": going.messages if going else 0,
    }
    return stream_context(request, caller, group.stream.name, tab="groups") | {
        "group": group,
        "going": going,
        "shown": shown,
        "form": GroupSettingsForm(group=group),
        "delete_form": GroupDeleteForm(group=group, initial=seen),
        "asks_delete": "delete" in request.GET,
        "may_manage": caller.may("manage"),
    }


@console_form
@held_to_group
def settings(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Every setting that may change; a POST changes what differs, once what that takes away was agreed to."""
    found = group_for(caller, name, group, may="manage" if request.method == "POST" else "read")
    if request.method == "GET":
        return render(request, PAGE, _context(request, caller, found))
    form = GroupSettingsForm(request.POST, group=found)
    context = _context(request, caller, found) | {"form": form}
    if not form.is_valid() or form.moved:
        return render(request, PAGE, context, status=409 if form.moved else 422)
    row, changes = context["row"], form.changes(found)
    try:
        effect = effect_of_change(
            context["shown"].view,
            changes,
            stored=row.messages or 0,
            arriving=row.arriving,
            then=effect_then(request),
        )
        question = question_of(request, effect)
        if question is not None:
            return render(request, PAGE, context | question[0], status=question[1])
        group_change(found, changes=changes, actor=caller.actor)
    except Refusal as refusal:
        refusal_show(refusal, form)
        return render(request, PAGE, context, status=422)
    messages.success(request, _("Group %(name)s was changed.") % {"name": group})
    return redirect("dashboard:group_settings", name=name, group=group)


@console_action
@held_to_group
def delete(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Delete the group if its name was typed and no more goes than that told of, or little more."""
    found = group_for(caller, name, group, may="manage")
    form = GroupDeleteForm(request.POST, group=found)
    context = _context(request, caller, found) | {"asks_delete": True}
    if not form.is_valid():
        return render(request, PAGE, context | {"delete_form": form}, status=422)
    going = dict(context["delete_form"].initial)
    if any(is_more(count, seen=form.cleaned_data[field] or 0) for field, count in going.items()):
        return render(request, PAGE, context | {"grown": True}, status=409)
    group_delete(found, actor=caller.actor)
    messages.success(
        request, _("Group %(name)s was deleted with its position and dead letters.") % {"name": group}
    )
    return redirect("dashboard:stream_groups", name=name)
