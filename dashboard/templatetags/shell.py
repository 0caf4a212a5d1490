"""What the frame around every page needs to know."""

import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django import template
from django.http import HttpRequest

register = template.Library()

THEMES = ("system", "light", "dark")
THEME_COOKIE = "okmq_theme"


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str:
    """The person's choice, kept in a cookie: the first paint is right, and it needs no script."""
    request = context.get("request")
    chosen = request.COOKIES.get(THEME_COOKIE, "") if isinstance(request, HttpRequest) else ""
    return chosen if chosen in THEMES else "system"


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """The page's own query string with some values changed (None or empty: left out); the URL is the state."""
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    encoded = parameters.urlencode()
    return f"?{encoded}" if encoded else "?"


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


def call(path: str, *, method: str = "", body: str = "") -> str:
    """A curl call of a path with a token, ready to paste."""
    parts = [f"curl {method}{shlex.quote(path)}", '  -H "Authorization: Bearer $OKMQ_TOKEN"']
    if body:
        parts += ["  -H 'Content-Type: application/json'", f"  -d {shlex.quote(body)}"]
    return " \\\n".join(parts)


@register.simple_tag
def first_commands(base_url: str) -> str:
    """Make a stream, and publish into it."""
    create = call(f"{base_url}/api/v1/streams/", body='{"name": "orders"}')
    return f"{create}\n\n{publish_command(base_url, 'orders')}"


@register.simple_tag
def publish_command(base_url: str, name: str) -> str:
    """Publish one message."""
    return call(
        f"{base_url}/api/v1/streams/{name}/messages", body='{"id": "order-1", "body": {"hello": "world"}}'
    )


@register.simple_tag
def browse_command(base_url: str, name: str, window: Any, start: str, form: Any) -> str:
    """What the page of messages shows, from the API; the API knows keys, it does not search bodies."""
    path = f"{base_url}/api/v1/streams/{name}/messages"
    key = f"&key={quote(form.cleaned_data['key'])}" if form.cleaned_data["key"] else ""
    if window.rows and start != "newest":
        return call(f"{path}?offset={window.lowest}&limit={len(window.rows)}{key}")
    before = window.highest + 1 if window.rows else 1
    return call(f"{path}?before={before}&limit={len(window.rows) or 50}{key}")


@register.simple_tag
def message_command(base_url: str, name: str, offset: int) -> str:
    """One message, from the API."""
    return call(f"{base_url}/api/v1/streams/{name}/messages/{offset}")
