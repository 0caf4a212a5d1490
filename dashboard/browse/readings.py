"""How a person reads the bodies of a stream: as the address says, else as they chose for it last, else ``auto``."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import resolve_url

from dashboard import remembered
from dashboard.browse import coded
from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.coded import Reading

COOKIE = "okmq-decode"
"""Sent with the pages of one stream only: each has its own."""


def browse_form(request: HttpRequest) -> BrowseForm:
    """The form that the address is, with the reading that was chosen last where it says none."""
    return BrowseForm(asked(request))


def asked(request: HttpRequest) -> QueryDict:
    """What the address asks for, with the reading that was chosen last where it says none."""
    data = request.GET.copy()
    if "decode" not in data:
        data["decode"] = _chosen_last(request)
    return data


def reading_of(request: HttpRequest) -> Reading:
    """How a page of one message reads its body; what cannot be understood is no choice."""
    try:
        return coded.reading(request.GET.get("decode", _chosen_last(request)))
    except ValueError:
        return coded.AUTOMATIC


def remember(answer: HttpResponse, request: HttpRequest, name: str, form: BrowseForm) -> None:
    """Keep what a form that was sent has chosen, for this stream; ``auto`` is what is read without a choice."""
    if "decode" not in request.GET or form.errors:
        return
    path = resolve_url("dashboard:stream_messages", name)
    if form.reading == coded.AUTOMATIC:
        answer.delete_cookie(COOKIE, path=path, samesite="Lax")
        return
    remembered.remember(answer, request, COOKIE, str(form.reading).replace(" ", "."), path=path)


def _chosen_last(request: HttpRequest) -> str:
    held = request.COOKIES.get(COOKIE, "").replace(".", " ")
    try:
        return "" if coded.reading(held) == coded.AUTOMATIC else held
    except ValueError:
        return ""
