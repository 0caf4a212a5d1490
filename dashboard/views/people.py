"""People of the workspace: listed, taken in with a one-time password, given roles, deactivated, removed."""

from collections.abc import Sequence
from typing import Any, Literal

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.people_forms import NarrowingForm, PersonForm
from dashboard.views.door import base_url, console_form
from streams import selectors
from streams.access import Caller, demand_account, membership_for
from streams.errors import Refusal
from streams.models import Membership, Role
from streams.services.people import (
    admin_demand,
    password_reset,
    person_add,
    person_change,
    person_remove,
    person_set_active,
)


@console_form
def people(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The list and the form; a new person's one-time password is in this one answer and nowhere else."""
    caller.demand("admin")
    caller.demand_every_stream()
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            _membership, secret = person_add(
                caller.workspace,
                **form.cleaned_data,
                actor=caller.actor,
                may_share=caller.rules_all,
            )
        except Refusal as refusal:
            form.add_error("name", refusal.message)
        else:
            if secret is None:
                messages.success(
                    request, _("%(name)s was added with the password they have.") % {"name": name}
                )
                return redirect("dashboard:people")
            return _page(request, caller, form=PersonForm(), made=name, secret=secret)
    return _page(request, caller, form=form, narrowing=_asks_narrow(request, caller))


def _asks_narrow(request: HttpRequest, caller: Caller) -> tuple[str, NarrowingForm | None]:
    """The person whom the address names, with the form of the streams that they are narrowed to."""
    if request.method != "GET" or "narrow" not in request.GET:
        return "", None
    membership = membership_for(caller, request.GET["narrow"], workspace=caller.workspace)
    return membership.user.get_username(), NarrowingForm(initial={"streams": membership.streams})


@console_form
def change(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Give another role or other streams, or let the account log in or not; who opens the address again comes to the
    list.
    """
    membership = membership_for(caller, name, workspace=caller.workspace)
    if request.method == "GET":
        return redirect("dashboard:people")
    role, active = request.POST.get("role", ""), request.POST.get("active", "")
    if role in Role.values:
        is_own = membership.role == Role.ADMIN and role != Role.ADMIN and name == caller.actor.name
        if is_own and "seen_own" not in request.POST:
            admin_demand(membership, rules_all=caller.rules_all)
            return _confirm(request, caller, membership, what="role", role=role)
        _change(caller, membership, role=role)
        messages.success(request, _("%(name)s is %(role)s now.") % {"name": name, "role": role})
        if is_own:
            return redirect("dashboard:overview")
    elif "streams" in request.POST:
        return _narrow(request, caller, membership)
    elif active in {"yes", "no"}:
        demand_account(caller, membership)
        person_set_active(membership, active=active == "yes", actor=caller.actor, rules_all=caller.rules_all)
        said = (
            _("%(name)s may log in again.") if active == "yes" else _("%(name)s was logged out everywhere.")
        )
        messages.success(request, said % {"name": name})
    else:
        raise Refusal("validation_error", "Specify a role, streams, or whether the account is active.")
    return redirect("dashboard:people")


def _change(caller: Caller, membership: Membership, **changes: Any) -> None:
    person_change(membership, changes=changes, actor=caller.actor, rules_all=caller.rules_all)


def _narrow(request: HttpRequest, caller: Caller, membership: Membership) -> HttpResponse:
    """Narrow a person to the streams that a form names, or let them see all again."""
    form, name = NarrowingForm(request.POST), membership.user.get_username()
    if not form.is_valid():
        return _page(request, caller, form=PersonForm(), narrowing=(name, form))
    streams = form.cleaned_data["streams"]
    is_own = bool(streams) and not membership.streams and name == caller.actor.name
    if is_own and "seen_own" not in request.POST:
        admin_demand(membership, rules_all=caller.rules_all)
        return _confirm(request, caller, membership, what="streams", streams=streams)
    _change(caller, membership, streams=streams)
    if streams:
        said = _("%(name)s sees only the streams %(patterns)s now.")
        messages.success(request, said % {"name": name, "patterns": ", ".join(streams)})
    else:
        messages.success(request, _("%(name)s sees all streams now.") % {"name": name})
    return redirect("dashboard:overview" if is_own else "dashboard:people")


@console_form
def reset_password(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Say what a new one-time password means; a POST gives it, and shows it this once."""
    membership = membership_for(caller, name, workspace=caller.workspace)
    demand_account(caller, membership)
    if request.method == "GET":
        return _confirm(request, caller, membership, what="password")
    secret = password_reset(membership, actor=caller.actor)
    is_out = not membership.user.is_active
    return _page(request, caller, form=PersonForm(), made=name, secret=secret, is_out=is_out)


@console_form
def remove(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Say what it means that a person is removed from the workspace; a POST does it."""
    membership = membership_for(caller, name, workspace=caller.workspace)
    if request.method == "GET":
        return _confirm(request, caller, membership, what="remove")
    person_remove(membership, actor=caller.actor, rules_all=caller.rules_all)
    messages.success(request, _("%(name)s was removed from this workspace.") % {"name": name})
    return redirect("dashboard:overview" if name == caller.actor.name else "dashboard:people")


def _confirm(
    request: HttpRequest,
    caller: Caller,
    membership: Membership,
    *,
    what: Literal["role", "streams", "password", "remove"],
    role: str = "",
    streams: Sequence[str] = (),
) -> HttpResponse:
    (person,) = selectors.people_of([membership])
    refusal = ""
    if what != "password":
        try:
            admin_demand(membership, rules_all=caller.rules_all)
        except Refusal as refused:
            refusal = refused.message
    context = {
        "section": "people",
        "caller": caller,
        "person": person,
        "what": what,
        "role": role,
        "streams": streams,
        "is_self": person.name == caller.actor.name,
        "refusal": refusal,
        "base_url": base_url(request),
    }
    return render(request, "dashboard/person_confirm.html", context)


def _page(
    request: HttpRequest,
    caller: Caller,
    *,
    form: PersonForm,
    made: str = "",
    secret: str = "",
    is_out: bool = False,
    narrowing: tuple[str, NarrowingForm | None] = ("", None),
) -> HttpResponse:
    found, more = selectors.people_page(caller.workspace)
    context = {
        "section": "people",
        "caller": caller,
        "people": found,
        "more": more,
        "form": form,
        "roles": Role.values,
        "narrowing": narrowing,
        "made": made,
        "secret": secret,
        "is_out": is_out,
        "base_url": base_url(request),
    }
    is_wrong = form.errors or (narrowing[1] and narrowing[1].errors)
    return render(request, "dashboard/people.html", context, status=422 if is_wrong else 200)
