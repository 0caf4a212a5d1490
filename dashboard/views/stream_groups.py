"""The consumer groups of a stream: the list, and the form that makes one."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.forms import refusal_show
from dashboard.groups.group_forms import GroupForm
from dashboard.lists.group_list import group_page_of, group_query_of
from dashboard.views.door import console_form, is_part
from dashboard.views.stream_page import stream_context
from streams.access import Caller, stream_for
from streams.errors import Refusal
from streams.services.groups import group_create

FIELDS = {"offset": "at", "timestamp": "at"}


@console_form
def groups(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The groups and how they stand; a POST makes one. htmx asks for the table alone."""
    query = group_query_of(request.GET)
    if request.method == "GET" and is_part(request):
        stream = stream_for(caller, name, may="observe")
        part = {"stream": stream, "query": query, "page": group_page_of(stream.groups.all(), query)}
        answer = render(request, "dashboard/parts/group_table.html", part)
        answer["Vary"] = "HX-Request"
        return answer
    form = GroupForm(request.POST or None)
    if request.method == "POST":
        stream = stream_for(caller, name, may="manage")
        if form.is_valid():
            wanted = form.cleaned_data["name"]
            try:
                _made, is_new = group_create(
                    stream, name=wanted, settings=form.settings(), actor=caller.actor
                )
            except Refusal as refusal:
                _show(refusal, form)
            else:
                said = _("Group %(name)s was created.") if is_new else _("Group %(name)s already exists.")
                messages.success(request, said % {"name": wanted})
                return redirect("dashboard:group", name=name, group=wanted)
    context = stream_context(request, caller, name, tab="groups", may="observe")
    context |= {
        "query": query,
        "page": group_page_of(context["stream"].groups.all(), query),
        "form": form,
        "may_manage": caller.may("manage"),
    }
    answer = render(request, "dashboard/stream/groups.html", context, status=422 if form.errors else 200)
    answer["Vary"] = "HX-Request"
    return answer


def _show(refusal: Refusal, form: GroupForm) -> None:
    """Put a refusal where the person can mend it."""
    if refusal.code == "group_exists":
        form.add_error("name", refusal.message)
        return
    refusal_show(refusal, form, names=FIELDS)
