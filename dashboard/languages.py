"""The language that a person reads the console in: the browser's, or one they named; kept in a cookie.

Pages are in it, and what their scripts say. What machines read stays English: the API, the log, files, what is stored.
Numbers are written one way in all of them (ADR 48).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import Promise

CHOICE_COOKIE = settings.LANGUAGE_COOKIE_NAME
BROWSER = "browser"
MACHINES = "/api/"
"""Addresses under it answer in English, whatever a browser reads."""

Answering = Callable[[HttpRequest], HttpResponseBase]
AnsweringLater = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


Said = dict[str, dict[str, str]]
"""Of each language but the first, sentences by the field that they stand in."""


def in_others(say: Callable[[], dict[str, str]]) -> Said:
    """What is said in English, in each of the other languages, for pages that are told without asking."""
    said = {}
    for language, _name in settings.LANGUAGES:
        if language != settings.LANGUAGE_CODE:
            with translation.override(language):
                said[language] = say()
    return said


def english() -> AbstractContextManager[Any]:
    """What is made inside is for machines: a file that other programs read."""
    return translation.override(settings.LANGUAGE_CODE)


def matches(said: str | Promise, wanted: Callable[[str], bool]) -> bool:
    """Whether words are the wanted ones, in the language that is active or in that of the documentation."""
    if wanted(str(said).casefold()):
        return True
    with english():
        return wanted(str(said).casefold())


def is_choice(text: str) -> bool:
    """Whether a person may choose this."""
    return text == BROWSER or text in dict(settings.LANGUAGES)


def choice_of(request: HttpRequest) -> str:
    """What the person chose: ``browser`` unless they did."""
    chosen = request.COOKIES.get(CHOICE_COOKIE, "")
    return chosen if is_choice(chosen) else BROWSER


def language_of(request: HttpRequest) -> str:
    """The language of the answer: ``de``."""
    is_page = not request.path.startswith(MACHINES)
    return translation.get_language_from_request(request) if is_page else settings.LANGUAGE_CODE


def language_of_socket(scope: Mapping[str, Any]) -> str:
    """The language of the page that a socket belongs to, by the headers that it came with."""
    request = HttpRequest()
    request.path = scope["path"]
    request.COOKIES = scope.get("cookies", {})
    for name, value in scope["headers"]:
        if name == b"accept-language":
            request.META["HTTP_ACCEPT_LANGUAGE"] = value.decode("latin-1")
    return language_of(request)


@sync_and_async_middleware
def spoken(get_response: Answering | AnsweringLater) -> Answering | AnsweringLater:
    """Answers in the person's language, and only for as long as the answer takes: the thread has others to serve."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            with translation.override(language_of(request)):
                return _varied(request, await get_response(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        with translation.override(language_of(request)):
            return _varied(request, get_response(request))  # type: ignore[arg-type]

    return answer


def _varied(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if not request.path.startswith(MACHINES):
        patch_vary_headers(response, ["Accept-Language"])
    return response
