"""Every method of every address that a token opens, with the right that it needs, and a body that it takes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dashboard import urls as console
from okmq.urls import urlpatterns as product_urls
from streams.api import urls
from streams.dataplane.app import ROUTES

OPEN = "open"
"""Instead of a right: there is nothing behind it that one has to be known for."""

# Written by hand, not read from the code: what a new address needs is decided once, and is seen when it changes.
RIGHTS = {
    "streams": "GET observe, POST manage",
    "streams/find": "GET observe",
    "streams/{name}": "GET observe, PATCH manage, DELETE manage",
    "streams/{name}/messages": "POST publish, GET read, DELETE manage",
    "streams/{name}/messages/{offset}": "GET read, DELETE manage",
    "streams/{name}/messages/{offset}/groups": "GET read",
    "streams/{name}/commit": "POST consume",
    "streams/{name}/tail": "GET read",
    "streams/{name}/groups": "GET observe, POST manage",
    "streams/{name}/groups/{group}": "GET observe, PATCH manage, DELETE manage",
    "streams/{name}/groups/{group}/preview": "POST manage",
    "streams/{name}/groups/{group}/fetch": "POST consume",
    "streams/{name}/groups/{group}/ack": "POST consume",
    "streams/{name}/groups/{group}/nack": "POST consume",
    "streams/{name}/groups/{group}/working": "POST consume",
    "streams/{name}/groups/{group}/term": "POST consume",
    "streams/{name}/groups/{group}/seek": "POST manage",
    "streams/{name}/groups/{group}/pause": "POST manage",
    "streams/{name}/groups/{group}/resume": "POST manage",
    "streams/{name}/groups/{group}/pending": "GET read",
    "streams/{name}/groups/{group}/dead-letters": "GET read, DELETE manage",
    "streams/{name}/groups/{group}/dead-letters/replay": "POST manage",
    "streams/{name}/retention/preview": "POST observe",
    "streams/{name}/retention/forecast": "POST observe",
    "streams/{name}/purge/preview": "POST manage",
    "streams/{name}/removals": "GET read",
    "streams/{name}/removals/{number}": "DELETE admin",
    "streams/{name}/removals/{number}/undo": "POST manage",
    "streams/{name}/history": "GET read",
    "streams/{name}/metrics": "GET observe",
    "publish/{key}": "POST publish",
    "tokens": "GET admin, POST admin",
    "tokens/{token_id}": "DELETE admin",
    "users": "GET admin, POST admin",
    "users/{name}": "PATCH admin, DELETE admin",
    "users/{name}/password": "POST admin",
    "policies": "GET read, POST manage",
    "policies/{name}": "GET read, PATCH manage, DELETE manage",
    "policies/{name}/preview": "POST read",
    "policies/{name}/apply": "POST manage",
    "filters": "GET read, POST manage",
    "filters/{filter_id}": "DELETE manage",
    "alerts": "GET read",
    "alerts/try": "POST read",
    "alerts/rules": "GET read, POST manage",
    "alerts/rules/{name}": "GET read, PATCH manage, DELETE manage",
    "alerts/rules/{name}/test": "POST manage",
    "workspaces": "GET admin, POST admin",
    "workspaces/{name}": "PATCH admin, DELETE admin",
    "workspaces/{name}/plan/preview": "POST admin",
    "configuration": "GET read",
    "configuration/apply": "POST admin",
    "account": "GET observe",
    "events": "GET read",
    "analytics/runs": "GET read, POST manage",
    "analytics/runs/{run_id}": "GET read",
    "analytics/replays": "GET read, POST manage",
    "analytics/replays/{replay_id}": "GET read, DELETE manage",
    "analytics/replays/{replay_id}/start": "POST manage",
    "analytics/replays/{replay_id}/pause": "POST manage",
    "analytics/erasures": "GET erase, POST erase",
    "analytics/erasures/{erasure_id}": "GET erase",
    "analytics/query": "GET read, POST read",
    "analytics/query/{query_id}": "GET read, DELETE read",
    "analytics/query/{query_id}/publish": "POST publish",
    "schema": "GET observe",
    "docs": "GET observe",
    "/metrics": "GET observe",
    "/healthz": "GET open",
    "/readyz": "GET open",
}

STREAM, GROUP, KEY, RULE, POLICY, PERSON = (
    "door-orders",
    "door-group",
    "door.key",
    "door-rule",
    "door-policy",
    "door-ann",
)
"""What there is in the workspace whose doors are tried."""

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "streams"): {"name": "made-through-a-door"},
    ("PATCH", "streams/{name}"): {"ttl": 5},
    ("POST", "streams/{name}/messages"): {"id": "through-a-door", "body": 1},
    ("POST", "publish/{key}"): {"id": "through-a-door", "body": 1},
    ("POST", "streams/{name}/commit"): {"offset": 1},
    ("POST", "streams/{name}/groups"): {"name": "another"},
    ("PATCH", "streams/{name}/groups/{group}"): {"ack_wait": 77},
    ("POST", "streams/{name}/groups/{group}/preview"): {"max_deliver": 1},
    ("POST", "streams/{name}/groups/{group}/fetch"): {"wait": 0},
    ("POST", "streams/{name}/groups/{group}/ack"): {"offsets": [1]},
    ("POST", "streams/{name}/groups/{group}/nack"): {"offsets": [1]},
    ("POST", "streams/{name}/groups/{group}/working"): {"offsets": [1]},
    ("POST", "streams/{name}/groups/{group}/term"): {"offsets": [1]},
    ("POST", "streams/{name}/groups/{group}/seek"): {"to": "end"},
    ("POST", "streams/{name}/groups/{group}/dead-letters/replay"): {"offsets": [1]},
    ("POST", "streams/{name}/retention/preview"): {"ttl": 5},
    ("POST", "streams/{name}/retention/forecast"): {"ttl": 5},
    ("POST", "tokens"): {"name": "made-through-a-door", "scopes": ["read"]},
    ("POST", "users"): {"name": "made-through-a-door", "role": "viewer"},
    ("PATCH", "users/{name}"): {"role": "admin"},
    ("POST", "policies"): {"name": "another", "ttl": 5},
    ("PATCH", "policies/{name}"): {"ttl": 5},
    ("POST", "policies/{name}/preview"): {"ttl": 5},
    ("POST", "policies/{name}/apply"): {"streams": [STREAM]},
    ("POST", "filters"): {"page": "streams", "name": "another", "query": "name=door"},
    ("POST", "alerts/try"): {"stream": STREAM, "watch": "lag", "limit": 1},
    ("POST", "alerts/rules"): {"name": "another", "stream": STREAM, "watch": "lag", "limit": 1},
    ("PATCH", "alerts/rules/{name}"): {"limit": 5},
    ("POST", "workspaces"): {"name": "made-through-a-door"},
    ("PATCH", "workspaces/{name}"): {"rate_limit": 1},
    ("POST", "workspaces/{name}/plan/preview"): {"plan": "free"},
    ("POST", "configuration/apply"): {"file": "okmq: 1\nstreams:\n  declared-through-a-door: {}\n"},
    ("POST", "analytics/runs"): {},
    ("POST", "analytics/replays"): {"source": STREAM, "target": STREAM},
    ("POST", "analytics/erasures"): {"stream": STREAM, "offset": 1},
    ("POST", "analytics/query"): {"sql": "SELECT 1"},
    ("POST", "analytics/query/{query_id}/publish"): {"stream": STREAM},
}

LISTS = {
    "streams",
    "streams/find",
    "policies",
    "alerts",
    "alerts/rules",
    "events",
    "analytics/replays",
    "analytics/erasures",
    "analytics/query",
}
"""What a key sees here lies inside of what narrows it."""

# What is for all streams is refused to a key that is narrowed to some; what stands here is not.
NARROWED = {
    **{f"GET {each}": 200 for each in (*LISTS, "tokens", "account", "schema", "docs", "/metrics")},
    **dict.fromkeys(("GET analytics/runs", "GET analytics/runs/{run_id}"), 200),
    "POST analytics/runs": 202,
    "POST analytics/query": 409,
    **dict.fromkeys(("DELETE tokens/{token_id}", "PATCH users/{name}", "DELETE users/{name}"), 403),
    "POST users/{name}/password": 403,
    **{f"{method} policies/{{name}}": 403 for method in ("PATCH", "DELETE")},
    **{f"POST policies/{{name}}/{verb}": 403 for verb in ("preview", "apply")},
    **{f"{method} alerts/rules/{{name}}": 403 for method in ("PATCH", "DELETE")},
    "DELETE filters/{filter_id}": 403,
    "POST alerts/rules/{name}/test": 403,
    **{f"{method} workspaces/{{name}}": 403 for method in ("PATCH", "DELETE")},
    "POST workspaces/{name}/plan/preview": 403,
}

QUERIES = {"streams/find": f"?key={KEY}"}


@dataclass(frozen=True, order=True)
class Door:
    """A method of an address; ``right``: a scope, or ``OPEN``."""

    template: str
    method: str
    right: str

    def __str__(self) -> str:
        return f"{self.method} {self.template}"

    @property
    def narrowed(self) -> int:
        """The status for a key with every right, on other streams than the workspace has."""
        refused = "{" not in self.template or self.template.startswith("streams/{name}")
        return NARROWED.get(str(self), 403 if refused else 404)

    @property
    def body(self) -> Any:
        return BODIES.get((self.method, self.template))

    def path(self, **names: object) -> str:
        """The address, under the root of the server."""
        path = self.template.format(**names) + QUERIES.get(self.template, "")
        return path if path.startswith("/") else f"/api/v1/{path}"


DOORS = [Door(template, *row.split(" ")) for template, rows in RIGHTS.items() for row in rows.split(", ")]


def there_are() -> Iterator[tuple[str, str]]:
    """Every template and method that the product serves to tokens, as its routes have them."""
    for template, methods in ROUTES.items():
        yield from ((template, method) for method in methods)
    for prefix, pattern in [*flat("", urls.urlpatterns), *flat("/", beside())]:
        if pattern.name != "not-found":
            text = str(pattern.pattern).removeprefix("^").removesuffix(r"/?\Z")
            template = prefix + re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", text)
            operations = getattr(getattr(pattern.callback, "cls", None), "operations", {"GET": None})
            yield from ((template, method) for method in operations)


def beside() -> list[Any]:
    """The routes of the product that are neither the API's nor the console's, each of which has a table of its own."""
    return [each for each in product_urls if getattr(each, "urlconf_name", None) not in (urls, console)]


def flat(prefix: str, patterns: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each route behind its prefix, those that are included in others, too."""
    for each in patterns:
        if hasattr(each, "url_patterns"):
            yield from flat(f"{prefix}{each.pattern}", each.url_patterns)
        else:
            yield prefix, each
