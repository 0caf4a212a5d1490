"""Refusals of Django's own, in the house look."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: too old, or sent by another site."""
    return render(request, "403_csrf.html", status=403)
