"""Workspaces: what each may keep and how fast its tokens may ask; a plan is looked at before it is saved."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.confirmations import ConfirmForm
from dashboard.people_forms import NewWorkspaceForm, WorkspaceDeleteForm, WorkspaceForm
from dashboard.retention.plan_preview import plan_preview
from dashboard.views.door import base_url, console_action, console_form, shown_then
from streams import selectors
from streams.access import Caller, workspace_for
from streams.errors import Refusal
from streams.models import CAPS, DEFAULT_WORKSPACE, Workspace
from streams.services.workspaces import workspace_change, workspace_create, workspace_delete


@console_form
def workspaces(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The workspaces that the caller may see: their own, or all; and what the plans allow."""
    form = NewWorkspaceForm(request.POST or None)
    if request.method == "POST":
        caller.demand_rule()
        if form.is_valid():
            chosen = dict(form.cleaned_data)
            name = chosen.pop("name")
            try:
                workspace_create(name=name, settings=chosen, actor=caller.actor)
            except Refusal as refusal:
                form.add_error("name", refusal.message)
            else:
                messages.success(request, _("Workspace %(name)s was created.") % {"name": name})
                return redirect("dashboard:workspace", name=name)
    if caller.rules_all:
        rows, more = selectors.workspaces_page(after=request.GET.get("after", ""), limit=100)
    else:
        rows, more = [_own(caller)], False
    context = {
        "section": "workspaces",
        "caller": caller,
        "rows": rows,
        "more": more,
        "form": form,
        "usage": selectors.overview(caller),
        "caps": [(plan, CAPS[plan]) for plan in CAPS],
        "base_url": base_url(request),
    }
    return render(request, "dashboard/workspaces.html", context, status=422 if form.errors else 200)


def _own(caller: Caller) -> selectors.WorkspaceView:
    """Their own workspace, with as many streams as they may see."""
    found = selectors.workspace_view(caller.workspace)
    return replace(found, streams=selectors.streams_of(caller).count()) if caller.streams else found


@console_form
def workspace(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """One workspace and its form. A change of plan that takes messages is shown first, and saved when it was seen; over
    what somebody else has saved since the page was opened, nothing is.
    """
    caller.demand("admin")
    caller.demand_every_stream()
    found = workspace_for(caller, name)
    form = WorkspaceForm(request.POST if request.method == "POST" else None, workspace=found)
    effect: dict[str, Any] = {}
    if request.method == "POST":
        caller.demand_rule()
        if form.is_valid():
            then, which = shown_then(request), request.POST.get("seen_which", "")
            preview = plan_preview(found, plan=form.cleaned_data["plan"], then=then)
            is_as_shown = preview.is_as(then, which, request.POST.get("seen_unread", ""))
            is_saved = _saves(request) and is_as_shown and not form.moved
            confirm = ConfirmForm(request.POST if is_saved else None, phrase=preview.phrase)
            if is_saved and confirm.is_valid():
                workspace_change(found, changes=form.changes(), actor=caller.actor)
                messages.success(request, _("Workspace %(name)s was changed.") % {"name": name})
                return redirect("dashboard:workspace", name=name)
            effect = {"preview": preview, "confirm": confirm, "moved": bool(which) and not is_as_shown}
    return _page(request, caller, found, form=form, effect=effect)


@console_action
def delete(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Delete a workspace with everything in it, if its name was typed."""
    caller.demand_rule()
    found = workspace_for(caller, name)
    form = WorkspaceDeleteForm(request.POST, workspace=found)
    if form.is_valid():
        workspace_delete(found, actor=caller.actor)
        messages.success(request, _("Workspace %(name)s was deleted.") % {"name": name})
        return redirect("dashboard:workspaces")
    return _page(request, caller, found, form=WorkspaceForm(workspace=found), effect={}, delete_form=form)


def _saves(request: HttpRequest) -> bool:
    """Whether the settings are to be saved, and not only looked at."""
    return request.POST.get("do") == "save"


def _page(
    request: HttpRequest,
    caller: Caller,
    workspace: Workspace,
    *,
    form: WorkspaceForm,
    effect: Mapping[str, Any],
    delete_form: WorkspaceDeleteForm | None = None,
) -> HttpResponse:
    """The page; ``effect`` is empty, or holds the ``preview`` of a plan, ``confirm`` and whether it ``moved``."""
    forms = [form, delete_form, effect.get("confirm")]
    wrong = any(each is not None and each.errors for each in forms)
    status = 409 if form.moved and _saves(request) else 422 if wrong else 200
    context = {
        "section": "workspaces",
        "caller": caller,
        "workspace": workspace,
        "view": selectors.workspace_view(workspace),
        "form": form,
        "saves": _saves(request),
        **effect,
        "delete_form": delete_form or WorkspaceDeleteForm(workspace=workspace),
        "asks_delete": delete_form is not None or "delete" in request.GET,
        "may_delete": caller.rules_all and workspace.name != DEFAULT_WORKSPACE,
        "caps": [(plan, CAPS[plan]) for plan in CAPS],
        "base_url": base_url(request),
    }
    return render(request, "dashboard/workspace.html", context, status=status)
