"""An example for every answer of the OpenAPI document, made from the answer's own schema, so that they agree.

A property's value is what its schema says by itself (an example, a constant, a default, the first of a list), else what
stands under its name here, else something of its type.
"""

from typing import Any

Schema = dict[str, Any]

NAMED: dict[str, Any] = {
    "id": "order-1",
    "name": "orders",
    "stream": "orders",
    "group": "billing",
    "workspace": "default",
    "consumer": "worker-1",
    "key": "orders.eu",
    "offset": 42,
    "first_offset": 1,
    "last_offset": 42,
    "messages": 42,
    "bytes": 3780,
    "actor": "token shop-api",
    "address": "127.0.0.1",
    "summary": "Stream orders was created.",
    "description": "Orders of all shops.",
    "labels": {"team": "shop"},
    "lease": "1-42-7",
    "reason": "no such customer",
    "url": "/api/v1/analytics/runs/1",
    "body": {"total": 12.5},
    "headers": {"trace": "0af7651916cd43dd"},
    "policy": "week",
    "ttl": 604_800,
    "max_messages": 1_000_000,
    "max_bytes": 10 * 2**30,
    "max_messages_per_key": 10,
    "max_message_bytes": 2**20,
    "dedup_window": 86_400,
    "retention": "limits",
    "discard": "old",
    "storage": "durable",
    "deny_delete": False,
    "deny_purge": False,
    "sealed": False,
    "committed_offset": 40,
    "lag": 2,
    "plan": "unlimited",
    "scope": "read",
    "kind": "stream.created",
    "code": "stream_not_found",
    "user": "ada@example.com",
    "role": "operator",
}
FORMATS: dict[str, Any] = {
    "date-time": "2026-11-21T12:00:00.000Z",
    "date": "2026-11-21",
    "uri": "https://example.com/hook",
    "email": "ada@example.com",
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
}
TYPES: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}
METHODS = {"get", "post", "put", "patch", "delete"}


def answers_exampled(document: dict[str, Any]) -> None:
    """Add an example to each JSON answer of a success that has none."""
    for item in document["paths"].values():
        for method, operation in item.items():
            if method not in METHODS:
                continue
            for status, answer in operation["responses"].items():
                media = answer.get("content", {}).get("application/json")
                if status.startswith("2") and media and not {"example", "examples"} & media.keys():
                    media["example"] = example_of(media["schema"], document)


def example_of(schema: Schema, document: dict[str, Any], *, name: str = "") -> Any:
    """A value that the schema allows; ``name`` is the property's that it is for."""
    if "$ref" in schema:
        return example_of(_resolved(schema["$ref"], document), document, name=name)
    if "allOf" in schema:
        parts = [example_of(part, document, name=name) for part in schema["allOf"]]
        return {k: v for part in parts for k, v in part.items()} if isinstance(parts[0], dict) else parts[0]
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return example_of(schema[choice][0], document, name=name)
    for said in ("const", "example"):
        if said in schema:
            return schema[said]
    for listed in ("examples", "enum"):
        if schema.get(listed):
            return schema[listed][0]
    return _of_type(schema, document, name=name)


def _of_type(schema: Schema, document: dict[str, Any], *, name: str) -> Any:
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "array":
        return [example_of(schema.get("items", {}), document, name=name.removesuffix("s"))]
    if kind == "object" and not isinstance(NAMED.get(name), dict):
        fields = schema.get("properties", {})
        return {field: example_of(of, document, name=field) for field, of in fields.items()}
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    value = NAMED.get(name, schema.get("default"))
    return value if _fits(value, kind) else TYPES.get(kind)


def _fits(value: Any, kind: str) -> bool:
    types: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "object": dict,
    }
    return isinstance(value, types.get(kind, ())) and isinstance(value, bool) == (kind == "boolean")


def _resolved(reference: str, document: dict[str, Any]) -> Schema:
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)
