"""The consumer groups of a stream: the list, and the form that makes one."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.forms import refusal_show
from dashboard.groups.group_effects import effect_of_new
from dashboard.groups.group_forms import GroupForm
from dashboard.lists.group_list import group_page_of, group_query_of
from dashboard.views.agreeing import effect_then, question_of
from dashboard.views.door import console_form, is_part
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.models.stream import Retention
from streams.services.groups import group_create, group_planned

FIELDS = {"offset": "at", "timestamp": "at"}


@console_form
def groups(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The groups and how they stand; a POST makes one, once what that takes away was agreed to. htmx asks for the
    table alone.
    """
    query = group_query_of(request.GET)
    if request.method == "GET" and is_part(request):
        stream = stream_for(caller, name, may="observe")
        part = {"stream": stream, "query": query, "page": group_page_of(stream.groups.all(), query)}
        answer = render(request, "dashboard/parts/group_table.html", part)
        answer["Vary"] = "HX-Request"
        return answer
    form, status = GroupForm(request.POST or None), 200
    context = stream_context(
        request, caller, name, tab="groups", may="manage" if request.method == "POST" else "observe"
    )
    if request.method == "POST":
        told = _made(request, caller, context, form)
        if told is None:
            return redirect("dashboard:group", name=name, group=form.cleaned_data["name"])
        context, status = context | told[0], told[1]
    context |= {
        "query": query,
        "page": group_page_of(context["stream"].groups.all(), query),
        "form": form,
        "may_manage": caller.may("manage"),
    }
    answer = render(request, "dashboard/stream/groups.html", context, status=status)
    answer["Vary"] = "HX-Request"
    return answer


def _made(
    request: HttpRequest, caller: Caller, context: dict[str, Any], form: GroupForm
) -> tuple[dict[str, Any], int] | None:
    """Make the group; what the page is to say instead, with its status, where it was not made."""
    if not form.is_valid():
        return {}, 422
    stream, row, name, settings = (
        context["stream"],
        context["row"],
        form.cleaned_data["name"],
        form.settings(),
    )
    try:
        if stream.retention == Retention.INTEREST and not stream.groups.filter(name=name).exists():
            effect = effect_of_new(
                group_planned(stream, name=name, settings=settings),
                stored=row.messages or 0,
                arriving=row.arriving,
                then=effect_then(request),
            )
            question = question_of(request, effect)
            if question is not None:
                return question
        _group, is_new = group_create(stream, name=name, settings=settings, actor=caller.actor)
    except Refusal as refusal:
        _show(refusal, form)
        return {}, 422
    said = _("Group %(name)s was created.") if is_new else _("Group %(name)s already exists.")
    messages.success(request, said % {"name": name})
    return None


def _show(refusal: Refusal, form: GroupForm) -> None:
    """Put a refusal where the person can mend it."""
    if refusal.code == "group_exists":
        form.add_error("name", refusal.message)
        return
    refusal_show(refusal, form, names=FIELDS)
