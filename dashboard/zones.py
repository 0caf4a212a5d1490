"""The time zone that a person sees times in: the browser's, UTC, or one they named; kept in a cookie.

A page is painted in it, its pickers and its CSV files too; ``<html data-zone>`` tells the scripts. What machines
read (``datetime`` attributes, NDJSON, the API) stays UTC.
"""

from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest

CHOICE_COOKIE = "okmq_zone"
BROWSER_COOKIE = "okmq_browser_zone"
"""What ``static/js/zone.js`` says the browser's zone is."""

BROWSER, UTC = "browser", "UTC"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Every zone that may be chosen, by name."""
    return tuple(sorted(available_timezones()))


def is_choice(text: str) -> bool:
    """Whether a person may choose this."""
    return text == BROWSER or text in names()


def choice_of(request: HttpRequest) -> str:
    """What the person chose: ``browser`` unless they did."""
    chosen = request.COOKIES.get(CHOICE_COOKIE, "")
    return chosen if is_choice(chosen) else BROWSER


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The zone that the person's pages are in; UTC until their browser has said its own."""
    chosen = choice_of(request)
    if chosen == BROWSER:
        chosen = request.COOKIES.get(BROWSER_COOKIE, "")
    return ZoneInfo(chosen if chosen in names() else UTC)
