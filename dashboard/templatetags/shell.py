"""What the frame around every page needs to know."""

import json
import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from django import template
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dashboard import words, zones
from dashboard.live.live_ranges import LiveRange
from streams import selectors
from streams.access import Caller, role_for

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
    """The page's own query string with some values changed (None or empty: left out); the URL is the state."""
    parameters = context["request"].GET.copy()
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
def publish_many_command(base_url: str, name: str) -> str:
    """Publish several messages, all or none."""
    body = '[{"id": "order-1", "body": {"total": 12}}, {"id": "order-2", "body": {"total": 7}}]'
    return call(f"{base_url}/api/v1/streams/{name}/messages", body=body)


@register.simple_tag
def browse_command(base_url: str, name: str, window: Any, start: str, form: Any) -> str:
    """What the page of messages shows, from the API; the API knows keys, it does not search bodies."""
    path = f"{base_url}/api/v1/streams/{name}/messages"
    wanted = form.cleaned_data.get("key")
    key = f"&key={quote(wanted)}" if wanted else ""
    if not window.rows:
        return call(f"{path}?offset=1&limit=50{key}")
    if start != "newest":
        return call(f"{path}?offset={window.lowest}&limit={len(window.rows)}{key}")
    return call(f"{path}?before={window.highest + 1}&limit={len(window.rows)}{key}")


@register.simple_tag
def tail_command(base_url: str, name: str) -> str:
    """What comes from now on, as server-sent events."""
    return call(f"{base_url}/api/v1/streams/{name}/tail", method="-N ")


@register.simple_tag
def message_command(base_url: str, name: str, offset: int) -> str:
    """One message, from the API."""
    return call(f"{base_url}/api/v1/streams/{name}/messages/{offset}")


@register.simple_tag
def api_command(base_url: str, path: str) -> str:
    """A path of the API, read."""
    return call(f"{base_url}/api/v1/{path}")


@register.simple_tag
def search_command(base_url: str, question: str) -> str:
    """The streams whose names hold what is looked for."""
    return call(f"{base_url}/api/v1/streams/?name={quote(question)}")


@register.simple_tag
def stream_command(base_url: str, name: str) -> str:
    """A stream and its settings, and one of them changed."""
    path = f"{base_url}/api/v1/streams/{name}"
    changed = call(path, method="-X PATCH ", body='{"ttl": 86400}')
    return f"{call(path)}\n\n{changed}"


@register.simple_tag
def retention_command(base_url: str, name: str, effect: Any = None) -> str:
    """What other limits would do, and they saved: those that a form holds, or an example."""
    path = f"{base_url}/api/v1/streams/{name}"
    changes = (effect.changes if effect else None) or {"ttl": 604_800}
    body = json.dumps(changes, default=str)
    preview = call(f"{path}/retention/preview", body=body)
    return f"{preview}\n\n{call(path, method='-X PATCH ', body=body)}"


@register.simple_tag
def deed_command(base_url: str, deed: str, names: list[str]) -> str:
    """What is done to several streams, done to each."""
    path = f"{base_url}/api/v1/streams/"
    calls = {
        "purge": lambda name: call(f"{path}{name}/messages?undo=true", method="-X DELETE "),
        "delete": lambda name: call(f"{path}{name}", method="-X DELETE "),
        "label": lambda name: call(f"{path}{name}", method="-X PATCH ", body='{"labels": {"team": "shop"}}'),
    }
    return "\n\n".join(calls[deed](name) for name in names)


@register.simple_tag
def message_delete_command(base_url: str, name: str, offset: int) -> str:
    """One message deleted, to be brought back for a while."""
    return call(f"{base_url}/api/v1/streams/{name}/messages/{offset}?undo=true", method="-X DELETE ")


@register.simple_tag
def removal_end_command(base_url: str, name: str, number: int) -> str:
    """What can come back, and one removal made final with those before it."""
    path = f"{base_url}/api/v1/streams/{name}/removals/"
    return f"{call(path)}\n\n{call(f'{path}{number}', method='-X DELETE ')}"


@register.simple_tag
def rule_command(base_url: str, name: str) -> str:
    """An alert rule, and it changed."""
    path = f"{base_url}/api/v1/alerts/rules/{name}"
    return f"{call(path)}\n\n{call(path, method='-X PATCH ', body=json.dumps({'enabled': False}))}"


@register.simple_tag
def stream_history_command(base_url: str, name: str) -> str:
    """What a stream's history holds, from the API."""
    return call(f"{base_url}/api/v1/streams/{name}/history?step=hour")


@register.simple_tag
def stream_rates_command(base_url: str, name: str, asked: LiveRange) -> str:
    """How a stream moved in the last hours, from the API."""
    wanted = asked.id if asked.is_live else "6h"
    return call(f"{base_url}/api/v1/streams/{name}/metrics?range={wanted}")


@register.simple_tag
def query_command(base_url: str, sql: str | None) -> str:
    """A question in SQL."""
    return call(f"{base_url}/api/v1/analytics/query", body=json.dumps({"sql": sql or ""}))


@register.simple_tag
def root_command(base_url: str, path: str) -> str:
    """A path outside the versioned API, read."""
    return call(f"{base_url}/{path}")


@register.simple_tag
def people_command(base_url: str) -> str:
    """The people of the workspace, and one more."""
    people = f"{base_url}/api/v1/users/"
    added = call(people, body='{"name": "ada", "role": "viewer"}')
    return f"{call(people)}\n\n{added}"


@register.simple_tag
def workspace_command(base_url: str, name: str) -> str:
    """What a lower plan would do, and a rate limit."""
    path = f"{base_url}/api/v1/workspaces/{name}"
    preview = call(f"{path}/plan/preview", body='{"plan": "free"}')
    slower = call(path, method="-X PATCH ", body='{"rate_limit": 50, "rate_burst": 200}')
    return f"{preview}\n\n{slower}"


@register.simple_tag
def as_python(command: str) -> str:
    """Curl calls as ``call`` writes them, in Python with httpx."""
    lines = ["import os", "", "import httpx", ""]
    lines.append('client = httpx.Client(headers={"Authorization": f"Bearer {os.environ[\'OKMQ_TOKEN\']}"})')
    for curl in command.split("\n\n"):
        words = shlex.split(curl.replace("\\\n", " "))
        method, url, body = "", "", ""
        for word, after in zip(words, [*words[1:], ""], strict=True):
            if word == "-X":
                method = after
            elif word == "-d":
                body = after
            elif word.startswith("http"):
                url = word
        sent = f", content={body!r}" if body else ""
        method = method or ("POST" if body else "GET")
        told = "text" if method == "DELETE" else "json()"  # what is deleted may be answered with nothing
        lines.append(f"print(client.request({method!r}, {url!r}{sent}).{told})")
    return "\n".join(lines)


@register.simple_tag
def stream_events_command(base_url: str, name: str) -> str:
    """What happened to a stream, from the API."""
    return call(f"{base_url}/api/v1/events?stream={name}")


@register.simple_tag
def alert_command(base_url: str) -> str:
    """Make an alert rule, and see what fires."""
    body = '{"name": "billing-lags", "stream": "orders", "group": "billing", "watch": "lag", "limit": 1000}'
    return f"{call(f'{base_url}/api/v1/alerts/rules/', body=body)}\n\n{call(f'{base_url}/api/v1/alerts/')}"


@register.simple_tag(takes_context=True)
def alerts_firing(context: dict[str, Any]) -> int:
    """How many alerts fire in the workspace of who looks."""
    caller = getattr(context.get("request"), "caller", None)
    return 0 if caller is None else selectors.alerts_firing_count(caller.workspace)


@register.simple_tag
def script_words() -> dict[str, str]:
    """What the page's scripts say, where its language is not English."""
    return words.translated()
