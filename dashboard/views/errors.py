"""Refusals of Django's own, in the house look; and the icon that browsers ask for by themselves."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: too old, or sent by another site."""
    return render(request, "403_csrf.html", status=403)


def favicon(request: HttpRequest) -> HttpResponse:
    """The icon, for pages that cannot name it."""
    return redirect(static("img/mark.svg"))
