"""What the frame around every page needs to know."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django import template
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dashboard import words, zones
from streams import bearer, selectors
from streams.access import Caller, role_for
from streams.log.errors import LogError
from streams.selectors import Sampling

register = template.Library()

THEMES = ("system", "light", "dark")
THEME_COOKIE = "okmq_theme"


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str:
    """The person's choice, kept in a cookie: the first paint is right, and it needs no script."""
    request = context.get("request")
    chosen = request.COOKIES.get(THEME_COOKIE, "") if isinstance(request, HttpRequest) else ""
    return chosen if chosen in THEMES else "system"


@register.simple_tag
def sampling() -> Sampling | None:
    """When the worker sampled last; None while nobody can be asked."""
    try:
        return selectors.sampling()
    except LogError:
        return None


@register.simple_tag(takes_context=True)
def zone(context: dict[str, Any]) -> str:
    """The name of the time zone that the person's pages are in."""
    request = context.get("request")
    return str(zones.zone_of(request)) if isinstance(request, HttpRequest) else zones.UTC


@register.simple_tag(takes_context=True)
def here(context: dict[str, Any]) -> str:
    """The address to come back to: the page's own, or, where a form was answered with a page, that of the form."""
    request = context["request"]
    if request.method in ("GET", "HEAD"):
        return str(request.get_full_path())
    came_from = urlsplit(request.headers.get("Referer", ""))
    if came_from.netloc != request.get_host() or came_from.path == request.path:
        return ""
    return str(urlunsplit(("", "", came_from.path, came_from.query, "")))


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """The page's own query string with some values changed (None or empty: left out); the URL is the state.

    ``searched``, how far the search of this very page came, goes along nowhere.
    """
    parameters = context["request"].GET.copy()
    parameters.pop("searched", None)
    for name, value in changes.items():
        if value in (None, ""):
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    encoded = parameters.urlencode()
    return f"?{encoded}" if encoded else "?"


@register.simple_tag(takes_context=True)
def my_workspaces(context: dict[str, Any]) -> list[str]:
    """The names of the workspaces that the person belongs to."""
    request = context.get("request")
    if not isinstance(request, HttpRequest) or not request.user.is_authenticated:
        return []
    return [held.workspace.name for held in selectors.workspaces_of_person(request.user.pk)]


@register.simple_tag
def lacks(caller: Any, scope: str) -> str:
    """What a caller lacks of a right, as a sentence; empty when they have it."""
    if isinstance(caller, Caller) and caller.may(scope):
        return ""
    return _("This needs the role %(role)s.") % {"role": role_for(scope)}


@register.simple_tag
def lacks_for_all(caller: Any, scope: str) -> str:
    """What a caller lacks of a right over every stream, as a sentence; empty when they have it."""
    narrowed = isinstance(caller, Caller) and caller.may(scope) and caller.streams
    return (
        _("Your access is restricted to streams; this applies to all.") if narrowed else lacks(caller, scope)
    )


@register.simple_tag
def lacks_for_stream(caller: Caller, scope: str, name: str) -> str:
    """What a caller lacks of a right over a stream of that name, as a sentence; empty when they have it."""
    outside = caller.may(scope) and not bearer.streams_cover(caller.streams, name)
    return _("Your access is restricted to other streams.") if outside else lacks(caller, scope)


@register.simple_tag
def lacks_rule(caller: Caller) -> str:
    """What a caller lacks to rule all workspaces, as a sentence; empty when they do."""
    return "" if caller.rules_all else _("This needs the role admin in the workspace default.")


@dataclass(frozen=True, slots=True)
class SortState:
    """How a column stands in the sort: what a click sorts by next, and what aria-sort says now."""

    next: str
    aria: str


@register.simple_tag
def sort_state(sort: str, column: str, first: str) -> SortState:
    """``first`` is "-" where the first click shows the largest on top."""
    if sort.removeprefix("-") != column:
        return SortState(f"{first}{column}", "")
    if sort.startswith("-"):
        return SortState(column, "descending")
    return SortState(f"-{column}", "ascending")


@register.simple_tag(takes_context=True)
def firing(context: dict[str, Any]) -> selectors.Firing:
    """What fires, as far as who looks may see it."""
    caller = getattr(context.get("request"), "caller", None)
    return selectors.Firing() if caller is None else selectors.firing_for(caller)


@register.simple_tag
def script_words() -> dict[str, str]:
    """What the page's scripts say, where its language is not English."""
    return words.translated()
