"""Logging in and out, and the colours a person chose."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from dashboard import live
from dashboard.forms import BootstrapMixin
from dashboard.templatetags.shell import THEME_COOKIE, THEMES
from dashboard.views.door import safe_next
from streams.access import Actor
from streams.services.events import event_record

YEAR_S = 365 * 86_400


class LoginForm(BootstrapMixin, AuthenticationForm):
    """Django's form in the house look."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs["autofocus"] = True


class Login(auth_views.LoginView):
    """Django's own view: it goes on to addresses of this host only."""

    template_name = "dashboard/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        _record(self.request, "session.opened", name=form.get_user().get_username(), did="logged in")
        return answer


class Logout(auth_views.LogoutView):
    """POST only, so that no picture on a foreign page can log anyone out; open sockets of the login end with it."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        session_key, name = request.session.session_key, request.user.get_username()
        answer = super().post(request, *args, **kwargs)
        if name:
            _record(request, "session.closed", name=name, did="logged out")
        if session_key:
            async_to_sync(live.end_session)(session_key)
        return answer


def _record(request: HttpRequest, kind: str, *, name: str, did: str) -> None:
    actor = Actor(name, request.META.get("REMOTE_ADDR", ""))
    event_record(None, kind=kind, actor=actor, summary=f"{name} {did}.")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or as the system."""
    chosen = request.POST.get("theme", "")
    answer = HttpResponseRedirect(safe_next(request, default="dashboard:overview"))
    if chosen in THEMES:
        answer.set_cookie(
            THEME_COOKIE, chosen, max_age=YEAR_S, httponly=True, samesite="Lax", secure=request.is_secure()
        )
    return answer
