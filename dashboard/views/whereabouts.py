"""The workspace that a person looks at: held by the session, and by the browser for the next login.

A form is only good for the workspace that it was filled in for, so whatever takes the session to another one voids the
forms that are open (``docs/adr/0015-the-workspace-is-in-the-session.md``).
"""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token

from dashboard import remembered
from streams.access import IN_WORKSPACE, caller_for_user
from streams.errors import Refusal
from streams.models import Workspace
from streams.services.open_pages import session_group, tell

COOKIE = "okmq_workspace"


def left(request: HttpRequest, now: Workspace) -> str:
    """The workspace that the session was in, where that is another one than now: gone, or not the person's any more."""
    held = request.session.setdefault(IN_WORKSPACE, now.name)  # a login of an earlier version did not hold it
    return "" if held == now.name else str(held)


def go_to(request: HttpRequest, workspace: Workspace) -> None:
    """Take the session to a workspace: forms of before are void, and open pages say that they are of another one."""
    request.session[IN_WORKSPACE] = workspace.name
    rotate_token(request)
    request.session.save()  # before the sockets come back and look
    tell({session_group(str(request.session.session_key)): "live.again"})


def begin(request: HttpRequest, user: AbstractBaseUser | AnonymousUser) -> None:
    """Settle where a login begins: where this person was last in this browser, if that is still theirs."""
    person, _, last = request.COOKIES.get(COOKIE, "").partition(":")
    for wanted in (last if person == str(user.pk) else "", ""):
        try:
            request.session[IN_WORKSPACE] = caller_for_user(user, workspace=wanted).workspace.name
            return
        except Refusal:
            continue  # the first page says it where they belong to none


def remember(request: HttpRequest, answer: HttpResponse, user: AbstractBaseUser | AnonymousUser) -> None:
    """Have the browser keep it: a session ends while pages of it are open."""
    held = request.session.get(IN_WORKSPACE, "")
    remembered.remember(answer, request, COOKIE, f"{user.pk}:{held}")
