"""Logging in and out, the workspace that is looked at, and how a person wants to see it: zone, language, colours."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.messages.storage.base import BaseStorage
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from dashboard import languages, zones
from dashboard.forms import BootstrapMixin
from dashboard.remembered import remember
from dashboard.templatetags.shell import THEME_COOKIE, THEMES
from dashboard.views import whereabouts
from dashboard.views.door import address_of, asked_next, console_action, safe_next
from streams.access import MUST_CHANGE, Actor, Caller, caller_for_user
from streams.errors import Refusal
from streams.models import OneTimePassword
from streams.services.logins import login_admit, login_closed, login_failed, login_opened, login_succeeded


class LoginForm(BootstrapMixin, AuthenticationForm):
    """Django's form in the house look."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs["autofocus"] = True

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        super().confirm_login_allowed(user)  # type: ignore[arg-type]
        held = OneTimePassword.objects.filter(user_id=user.pk).first()
        if held is not None and held.is_expired:
            raise ValidationError(
                _("This one-time password has expired; ask an administrator for a new one.")
            )


class _GoesOn(auth_views.RedirectURLMixin):
    """Django's own views go on to what ours go on to, too."""

    request: HttpRequest

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        return asked_next(request or self.request)


class Login(_GoesOn, auth_views.LoginView):
    """Django's own view: it begins a new session, and goes on within this host only."""

    template_name = "dashboard/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With why one is here, which the page after the login says, too."""
        told = messages.get_messages(self.request)
        context = super().get_context_data(**kwargs) | {"told": list(told)}
        if isinstance(told, BaseStorage):
            told.used = False
        return context

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        account = request.POST.get("username", "")
        try:
            self._last_of = login_admit(account, address=address_of(request))
        except Refusal as refusal:
            context = self.get_context_data(form=LoginForm(request), refusal=refusal)
            answer = render(request, "dashboard/login.html", context, status=refusal.status)
            answer["Retry-After"] = refusal.headers["Retry-After"]
            return answer
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        account = self.request.POST.get("username", "")
        login_failed(account, address=address_of(self.request), last_of=self._last_of)
        return super().form_invalid(form)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        user, session = form.get_user(), self.request.session
        login_succeeded(self.request.POST.get("username", ""), address=address_of(self.request))
        must_change = OneTimePassword.objects.filter(user_id=user.pk).exists()
        if must_change:
            session[MUST_CHANGE] = True
        whereabouts.begin(self.request, user)
        session.save()
        login_opened(
            user,
            session_key=str(session.session_key),
            actor=Actor(user.get_username(), address_of(self.request)),
            agent=self.request.headers.get("User-Agent", ""),
        )
        if must_change:
            answer = redirect("dashboard:password")
        whereabouts.remember(self.request, answer, user)
        return answer


class Logout(_GoesOn, auth_views.LogoutView):
    """POST only, so that no picture on a foreign page can log anyone out; open sockets of the login end with it."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        session_key, name = request.session.session_key, request.user.get_username()
        answer = super().post(request, *args, **kwargs)
        if name and session_key:
            login_closed(session_key, actor=Actor(name, address_of(request)))
        return answer


@console_action
def workspace(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Look at another workspace. Forms of before are void, and pages that are open say that they are of another one."""
    chosen = caller_for_user(request.user, workspace=request.POST.get("workspace", "") or "-")
    whereabouts.go_to(request, chosen.workspace)
    answer = redirect("dashboard:overview")
    whereabouts.remember(request, answer, request.user)
    return answer


@require_POST
def zone(request: HttpRequest) -> HttpResponse:
    """Remember the time zone that times are shown in."""
    chosen = request.POST.get("zone", "").strip()
    if not zones.is_choice(chosen):
        messages.error(request, _("There is no such time zone. Enter UTC, Europe/Berlin, America/New_York …"))
        return redirect("dashboard:profile")
    return _remembered(request, zones.CHOICE_COOKIE, chosen, default="dashboard:profile")


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Remember the language that the console is read in."""
    chosen = request.POST.get("language", "")
    if not languages.is_choice(chosen):
        messages.error(request, _("There is no such language."))
        return redirect("dashboard:profile")
    return _remembered(request, languages.CHOICE_COOKIE, chosen, default="dashboard:profile")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or as the system."""
    chosen = request.POST.get("theme", "")
    if chosen not in THEMES:
        return HttpResponseRedirect(safe_next(request, default="dashboard:overview"))
    return _remembered(request, THEME_COOKIE, chosen, default="dashboard:overview")


def _remembered(request: HttpRequest, cookie: str, chosen: str, *, default: str) -> HttpResponse:
    """Back to where the person was, with their choice kept in the browser for a year."""
    answer = HttpResponseRedirect(safe_next(request, default=default))
    remember(answer, request, cookie, chosen)
    return answer
