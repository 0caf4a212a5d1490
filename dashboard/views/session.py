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


class Logout(auth_views.LogoutView):
    """POST only, so that no picture on a foreign page can log anyone out; open sockets of the login end with it."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        session_key = request.session.session_key
        answer = super().post(request, *args, **kwargs)
        if session_key:
            async_to_sync(live.end_session)(session_key)
        return answer


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
