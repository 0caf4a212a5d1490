"""A person's own page: the password, the browsers they are logged in with."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard import languages
from dashboard.people_forms import NewPasswordForm, OwnPasswordForm
from dashboard.quantities import number_of
from dashboard.views.door import address_of, base_url, console_action, console_page
from dashboard.zones import choice_of, names
from streams import selectors
from streams.access import MUST_CHANGE, Actor, Caller
from streams.errors import Refusal
from streams.services.logins import login_admit, login_failed, login_succeeded, logins_end
from streams.services.people import password_change


@console_page
def profile(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Who one is here, and where one is logged in."""
    assert isinstance(request.user, User)
    context = {
        "section": "profile",
        "caller": caller,
        "memberships": selectors.workspaces_of_person(request.user.pk),
        "logins": selectors.logins_of(request.user.pk),
        "zone_choice": choice_of(request),
        "zones": names(),
        "languages": settings.LANGUAGES,
        "language_choice": languages.choice_of(request),
        "this_login": request.session.session_key,
        "base_url": base_url(request),
    }
    return render(request, "dashboard/profile.html", context)


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "POST", "HEAD"])
def password(request: HttpRequest) -> HttpResponse:
    """Change the password; with a one-time password, the only page there is."""
    assert isinstance(request.user, User)
    must_change = bool(request.session.get(MUST_CHANGE))
    form_class = NewPasswordForm if must_change else OwnPasswordForm
    form = form_class(request.user, request.POST or None)
    status, wait = 200, ""
    if request.method == "POST":
        name, address = request.user.get_username(), address_of(request)
        try:
            # A browser that somebody left open is no way to try passwords.
            last_of = login_admit(name, address=address)
        except Refusal as refusal:
            status, wait = refusal.status, refusal.message
        else:
            if form.has_error("old_password"):
                login_failed(name, address=address, last_of=last_of)
            else:  # whatever is wrong with the new one, nobody has guessed
                login_succeeded(name, address=address)
            if form.is_valid():
                _changed(request, request.user, password=form.cleaned_data["new_password1"])
                messages.success(request, _("Your password was changed; other browsers are logged out."))
                return redirect("dashboard:overview" if must_change else "dashboard:profile")
            status = 422
    context = {"form": form, "must_change": must_change, "wait": wait}
    return render(request, "dashboard/password.html", context, status=status)


def _changed(request: HttpRequest, user: User, *, password: str) -> None:
    before = str(request.session.session_key)
    actor = Actor(user.get_username(), address_of(request))
    password_change(user, password=password, session_key=before, actor=actor)
    request.session.pop(MUST_CHANGE, None)
    update_session_auth_hash(request, user)
    request.session.save()
    user.logins.filter(session_key=before).update(session_key=request.session.session_key)


@console_action
def end_logins(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Log out in every other browser, or in one."""
    assert isinstance(request.user, User)
    one = number_of(request.POST.get("login"), default=0, low=0, high=2**62) or None
    ended = logins_end(request.user, but=str(request.session.session_key), login_id=one)
    told = ngettext(
        "Logged out of %(count)s other browser.", "Logged out of %(count)s other browsers.", ended
    )
    messages.success(request, told % {"count": ended})
    return redirect("dashboard:profile")
