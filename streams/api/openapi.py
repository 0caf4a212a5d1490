"""The OpenAPI 3.1 document of both planes."""

from collections.abc import Iterable
from functools import cache
from threading import Lock
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

from streams.api import deliveries_described, messages_described
from streams.api.authentication import TokenOrSession
from streams.api.base import ApiView
from streams.api.exampled import answers_exampled
from streams.api.operation import Operation
from streams.api.schema import ALWAYS, ERROR, TOO_LARGE, refusals_of
from streams.errors import STATUS

PREFIX = "/api/v1"
COLLECTIONS = (
    "streams",
    "tokens",
    "workspaces",
    "runs",
    "groups",
    "dead-letters",
    "policies",
    "alerts",
    "rules",
)
"""Paths that end in these are shown with their slash; every path answers with and without."""

DESCRIPTION = """Durable message streams: publish, read, commit; streams, tokens, workspaces, history.

Every path answers with and without the slash at its end. Unknown fields and unknown query parameters are refused by
name. Times are RFC 3339 in UTC with milliseconds, durations seconds, sizes bytes."""

TAGS = {
    "streams": "Made, listed, changed, deleted.",
    "messages": "Published, read, committed, deleted.",
    "groups": "Consumers that share a stream.",
    "history": "A stream over time, and the jobs that compute it.",
    "events": "Who did what.",
    "tokens": "Who may call, for what.",
    "policies": "Limits that many streams share, changed once.",
    "configuration": "Everything of a workspace as one file.",
    "alerts": "Rules on streams and groups, and what fired.",
    "workspaces": "Closed rooms of streams.",
    "service": "Whether it lives, and this document.",
}

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Every answer that is not a success.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "enum": sorted(STATUS)},
                "message": {"type": "string", "description": "A sentence for a person."},
                "details": {
                    "type": "object",
                    "description": "Facts for a program; `fields` names refused fields.",
                },
            },
        }
    },
    "examples": [
        {
            "error": {
                "code": "validation_error",
                "message": "ttl: Expected a whole number from 1 to 3153600000 or null.",
                "details": {
                    "fields": ["ttl"],
                    "errors": {"ttl": ["Expected a whole number from 1 to 3153600000 or null."]},
                },
            }
        }
    ],
}

HEALTH = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"const": "ok"}, "checks": {"type": "object"}},
}


def _shown_only(
    name: str, summary: str, *, codes: Iterable[str] = (), media: str, schema: Any, token: bool = False
) -> dict[str, Any]:
    """A path that only shows something."""
    success = {"description": "Done.", "content": {media: {"schema": schema}}}
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "description": "Needs the scope `read`, or a logged-in person."
            if token
            else "Open to everybody.",
            "tags": ["service"],
            "security": [{"token": []}] if token else [],
            "responses": {"200": success, **refusals_of(codes)},
        }
    }


SERVICE_PATHS = {
    "/healthz": _shown_only(
        "healthz",
        "Whether the process lives",
        media="application/json",
        schema=HEALTH,
        codes=["validation_error"],
    ),
    "/readyz": _shown_only(
        "readyz",
        "Whether its stores answer",
        media="application/json",
        schema=HEALTH,
        codes=["validation_error", "store_unavailable"],
    ),
    "/metrics": _shown_only(
        "metrics",
        "How everything stands, as OpenMetrics",
        media="application/openmetrics-text",
        schema={"type": "string"},
        codes=[*ALWAYS, "forbidden", *TOO_LARGE],
        token=True,
    ),
    f"{PREFIX}/schema": _shown_only(
        "schema",
        "This document",
        media="application/json",
        schema={"type": "object"},
        codes=[*ALWAYS, "forbidden", *TOO_LARGE],
        token=True,
    ),
    f"{PREFIX}/docs": _shown_only(
        "docs",
        "This document, to browse",
        media="text/html",
        schema={"type": "string"},
        codes=[*ALWAYS, "forbidden", *TOO_LARGE],
        token=True,
    ),
}


_one_at_a_time = Lock()

GENERATOR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": PREFIX,
    "POSTPROCESSING_HOOKS": [],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}


def document() -> dict[str, Any]:
    """The whole document; made once a process."""
    with _one_at_a_time:  # the generator's settings are the process's while it works
        return _document()


@cache
def _document() -> dict[str, Any]:
    from streams.api import urls  # the paths name this module's views

    patterns = [path(f"{PREFIX[1:]}/", include((urls.urlpatterns, urls.app_name)))]
    with patched_settings(GENERATOR_SETTINGS):
        generator = SchemaGenerator(patterns=patterns)  # type: ignore[no-untyped-call]
        found: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    paths = {shown(path): item for path, item in found["paths"].items()}
    found["paths"] = dict(
        sorted({**paths, **messages_described.PATHS, **deliveries_described.PATHS, **SERVICE_PATHS}.items())
    )
    found["info"]["description"] = DESCRIPTION
    found["tags"] = [{"name": name, "description": about} for name, about in TAGS.items()]
    components = found.setdefault("components", {})
    components["schemas"] = dict(
        sorted(
            {
                **components.get("schemas", {}),
                **messages_described.COMPONENTS,
                **deliveries_described.COMPONENTS,
                ERROR["$ref"].rpartition("/")[2]: ERROR_SCHEMA,
            }.items()
        )
    )
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "`Authorization: Bearer <token>`, or the bare token.",
        }
    }
    answers_exampled(found)
    return found


def shown(path: str) -> str:
    """A path as the documentation writes it."""
    bare = path.rstrip("/")
    return f"{bare}/" if bare.rpartition("/")[2] in COLLECTIONS else bare


class SchemaView(ApiView):
    """``/schema``"""

    authentication_classes = (TokenOrSession,)
    operations: ClassVar = {
        "GET": Operation(id="schema", summary="This document", scope="observe"),
    }

    def get(self, request: Request) -> Response:
        return Response(document())


class DocsView(ApiView):
    """``/docs``"""

    authentication_classes = (TokenOrSession,)
    operations: ClassVar = {
        "GET": Operation(id="docs", summary="This document, to browse", scope="observe"),
    }

    def get(self, request: Request) -> HttpResponse:
        return render(request._request, "api/docs.html", {"schema_url": f"{PREFIX}/schema"})


def docs(request: HttpRequest) -> HttpResponse:
    """The documentation; a person whose browser has no session is asked to log in, a program is refused."""
    is_browser = "text/html" in request.META.get("HTTP_ACCEPT", "")
    if is_browser and "HTTP_AUTHORIZATION" not in request.META and not request.user.is_authenticated:
        return redirect(f"{resolve_url(settings.LOGIN_URL)}?next={request.path}")
    return DocsView.as_view()(request)
