"""How drf-spectacular reads an ``Operation``, so that what is declared is what is described."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal, Protocol, cast

from drf_spectacular.openapi import AutoSchema

from streams import naming
from streams.api.fields import Strict
from streams.api.operation import Operation
from streams.errors import STATUS

ERROR = {"$ref": "#/components/schemas/Error"}
ALWAYS = (
    "unauthorized",
    "validation_error",
    "rate_limited",
    "internal_error",
    "store_unavailable",
    "stream_damaged",
)
WITH_BODY = ("invalid_json", "payload_too_large", "unsupported_media_type", "request_timeout")
TOO_LARGE = ("payload_too_large", "request_timeout")

PATH_PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "name": ("The name, case-sensitive.", {"type": "string", "pattern": f"^{naming.NAME}$"}),
    "token_id": ("The token's id.", {"type": "integer", "minimum": 1}),
    "run_id": ("The run's id.", {"type": "integer", "minimum": 1}),
    "filter_id": ("The filter's id.", {"type": "integer", "minimum": 1}),
    "query_id": ("The query's id.", {"type": "integer", "minimum": 1}),
    "replay_id": ("The replay's id.", {"type": "integer", "minimum": 1}),
    "erasure_id": ("The erasure's id.", {"type": "integer", "minimum": 1}),
    "group": ("The group's name, case-sensitive.", {"type": "string", "pattern": f"^{naming.NAME}$"}),
    "key": (
        "A message key.",
        {"type": "string", "maxLength": naming.LONGEST_KEY, "pattern": f"^{naming.KEY}$"},
    ),
    "offset": ("The message's offset.", {"type": "integer", "minimum": 1}),
    "number": ("The number of the removal.", {"type": "integer", "minimum": 1}),
}


Direction = Literal["request", "response"]


class ApiOperations(Protocol):
    """A view with operations."""

    operations: Mapping[str, Operation]


class OperationSchema(AutoSchema):
    """Takes everything from the view's ``operations``."""

    @property
    def _operation(self) -> Operation:
        return cast(ApiOperations, self.view).operations[self.method]

    def get_operation_id(self) -> str:
        return self._operation.id

    def get_summary(self) -> str:
        return self._operation.summary

    def get_description(self) -> str:  # type: ignore[override]
        operation = self._operation
        needs = f"Needs the scope `{operation.scope}`." if operation.scope else ""
        return " ".join(part for part in (operation.description, needs) if part)

    def get_tags(self) -> list[str]:
        return [tag_of(self.path)]

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{"token": []}]

    def get_request_serializer(self) -> Any:
        return self._operation.body

    def get_response_serializers(self) -> Any:
        return self._operation.answer

    def get_override_parameters(self) -> list[Any]:
        query = self._operation.query
        return [query] if query._declared_fields else []

    def _resolve_path_parameters(self, variables: Iterable[str]) -> list[dict[str, Any]]:
        return [path_parameter(variable) for variable in variables]

    def _get_request_body(self, direction: Direction = "request") -> dict[str, Any] | None:
        operation = self._operation
        if operation.body is None:
            return None
        one = self.resolve_serializer(operation.body, direction).ref
        schema = one
        if operation.body_limit > 1:
            several = {"type": "array", "items": one, "maxItems": operation.body_limit}
            schema = {"oneOf": [one, several]}
        media: dict[str, Any] = {"schema": schema}
        if operation.examples:
            media["examples"] = {name: {"value": value} for name, value in operation.examples.items()}
        return {"content": {"application/json": media}, "required": not operation.body_optional}

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        operation = self._operation
        content: dict[str, Any] = {}
        if operation.answer is not None:
            one = self.resolve_serializer(operation.answer, direction).ref
            several = {"type": "array", "items": one}
            schema = several if operation.many else one
            if operation.body_limit > 1:
                schema = {"oneOf": [one, several]}
            content = {"content": {"application/json": {"schema": schema}}}
        headers = {"headers": LINK} if operation.many and "after" in operation.query._declared_fields else {}
        others = {
            status: {
                "content": {"application/json": {"schema": self.resolve_serializer(other, direction).ref}}
            }
            for status, other in operation.other_answers.items()
        }
        success = {
            str(status): {"description": sentence, **headers, **others.get(status, content)}
            for status, sentence in {operation.status: "Done.", **operation.also}.items()
        }
        codes = list(ALWAYS) + list(operation.refusals)
        if operation.scope:
            codes.append("forbidden")
        # A body that nobody asked for is read, too; where it might mean what it says, it is refused.
        codes += TOO_LARGE if self.method == "GET" else WITH_BODY
        return {**success, **refusals_of(codes)}

    def _map_serializer_field(self, field: Any, direction: Direction, *args: Any) -> Any:
        schema = super()._map_serializer_field(field, direction, *args)  # type: ignore[no-untyped-call]
        if isinstance(schema, dict):
            schema.pop("x-spec-enum-id", None)  # of use to a hook only, which is off
        return schema

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, Strict):
            schema["additionalProperties"] = False
        else:
            schema["required"] = sorted(schema["properties"].keys() - getattr(serializer, "may_lack", ()))
        return schema


LINK = {
    "Link": {
        "description": 'The next page, where there is one: `<…>; rel="next"`.',
        "schema": {"type": "string"},
    }
}


def _whole(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "integer", "minimum": 0}}


RATE_LIMITED = {
    "Retry-After": _whole("Seconds until a request is let through."),
    "X-RateLimit-Limit": _whole(
        "Requests that may come at once; on every answer to a token that is limited."
    ),
    "X-RateLimit-Remaining": _whole("How many of them are left."),
    "X-RateLimit-Reset": _whole("Seconds until all of them are there again."),
}


def refusals_of(codes: Iterable[str]) -> dict[str, Any]:
    """The answers that refusals with these codes are, by status."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(STATUS[code], []).append(code)
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in dict.fromkeys(some))}.",
            "content": {"application/json": {"schema": ERROR}},
            **({"headers": RATE_LIMITED} if status == STATUS["rate_limited"] else {}),
        }
        for status, some in sorted(by_status.items())
    }


def path_parameter(variable: str) -> dict[str, Any]:
    """A part of a path."""
    description, schema = PATH_PARAMETERS[variable]
    return {"name": variable, "in": "path", "required": True, "description": description, "schema": schema}


def tag_of(path: str) -> str:
    """What an operation is about: the first word of its path, or ``messages`` inside a stream."""
    words = [word for word in path.removeprefix("/api/v1").split("/") if word]
    if "groups" in words:
        return "groups"
    if "messages" in words or words[-1] in {"commit", "tail"}:
        return "messages"
    return {"analytics": "history", "account": "workspaces", "healthz": "service", "readyz": "service"}.get(
        words[0], "history" if words[-1] in {"history", "metrics"} else words[0]
    )
