"""The OpenAPI document: valid, complete, and true of what is answered."""

from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from drf_spectacular.validation import validate_schema

from streams import store
from streams.api import deliveries_described, messages_described, urls
from streams.api.openapi import document
from streams.dataplane.app import ROUTES
from streams.errors import STATUS
from streams.log import answers, groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from tests.streams.api.conftest import Api

METHODS = {"get", "post", "patch", "delete", "put"}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method in METHODS & set(item):
            yield path, method, item[method]


@pytest.mark.long
def test_the_document_is_valid_openapi() -> None:
    assert document()["openapi"] == "3.1.0"
    validate_schema(document())  # type: ignore[no-untyped-call]


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    known = {f"#/components/schemas/{name}" for name in document()["components"]["schemas"]}
    assert set(references(document())) <= known


def test_every_route_of_the_control_plane_is_described() -> None:
    described = {path.rstrip("/") for path in document()["paths"]}
    for pattern in [*urls.urlpatterns, *urls.service_urls]:
        if pattern.name != "not-found":
            text = str(pattern.pattern).removeprefix("^").removesuffix(r"/?\Z")
            path = text.replace("(?P<", "{").replace(">[^/]+)", "}")
            assert {f"/api/v1/{path}", f"/{path}"} & described, path


def test_every_route_of_the_data_plane_is_described_and_no_other() -> None:
    wanted = {
        (f"/api/v1/{template}", method.lower()) for template, methods in ROUTES.items() for method in methods
    }
    by_hand = {**messages_described.PATHS, **deliveries_described.PATHS}
    described = {(path, method) for path in by_hand for method in METHODS & set(by_hand[path])}
    assert described == wanted


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    found = list(operations())
    assert len({about["operationId"] for _, _, about in found}) == len(found)
    assert all(about["summary"] for _, _, about in found)


def test_in_which_order_the_history_comes_is_said_of_a_seek() -> None:
    (seek,) = [about for _, _, about in operations() if about["operationId"] == "group_seek"]
    wanted = document()["components"]["schemas"]["PositionWanted"]["properties"]["history"]
    for said in (seek["description"], wanted["description"]):
        assert "newer messages may come before older ones, of one key, too" in said
        assert "`ordered_by_key`" in said


def test_every_body_has_examples_that_are_valid() -> None:
    for path, method, about in operations():
        if "requestBody" in about:
            media = about["requestBody"]["content"]["application/json"]
            assert media["examples"], (path, method)
            for example in media["examples"].values():
                check(media["schema"], example["value"])


def test_every_answer_has_an_example_that_is_valid() -> None:
    for path, method, about in operations():
        for status, answer in about["responses"].items():
            media = answer.get("content", {}).get("application/json")
            if status.startswith("2") and media is not None:
                examples = [each["value"] for each in media.get("examples", {}).values()]
                examples += [media["example"]] if "example" in media else []
                assert examples, (path, method, status)
                for example in examples:
                    assert example not in (None, {}, []) or path.endswith("/schema"), (path, method)
                    check(media["schema"], example)


def test_every_code_of_a_refusal_is_in_the_document() -> None:
    error = document()["components"]["schemas"]["Error"]
    assert set(error["properties"]["error"]["properties"]["code"]["enum"]) == set(STATUS)


def check(schema: dict[str, Any], value: Any) -> None:
    whole = {**schema, "components": document()["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def response_schema(path: str, method: str, status: int) -> dict[str, Any]:
    about = document()["paths"][path][method]["responses"][str(status)]
    found: dict[str, Any] = about["content"]["application/json"]["schema"]
    return found


@pytest.mark.parametrize(
    ("method", "path", "described", "body", "status"),
    [
        ("GET", "streams/", "streams/", None, 200),
        ("POST", "streams/", "streams/", {"name": "a"}, 201),
        ("POST", "streams/", "streams/", [{"name": "a"}], 201),
        ("POST", "streams/", "streams/", {"name": "-"}, 400),
        ("POST", "streams/", "streams/", {"name": "orders"}, 200),
        ("GET", "streams/orders", "streams/{name}", None, 200),
        ("PATCH", "streams/orders", "streams/{name}", {"ttl": 5}, 200),
        ("POST", "streams/orders/groups/new/preview", "streams/{name}/groups/{group}/preview", {}, 200),
        ("GET", "streams/orders/messages/1/groups", "streams/{name}/messages/{offset}/groups/", None, 404),
        ("GET", "streams/nothing", "streams/{name}", None, 404),
        ("GET", "streams/find?key=a", "streams/find", None, 200),
        ("GET", "streams/orders/history", "streams/{name}/history", None, 200),
        ("GET", "streams/orders/metrics", "streams/{name}/metrics", None, 200),
        ("GET", "tokens/", "tokens/", None, 200),
        ("POST", "tokens/", "tokens/", {"name": "x", "scopes": ["read"]}, 201),
        ("GET", "events", "events", None, 200),
        ("GET", "account", "account", None, 200),
        ("POST", "analytics/runs/", "analytics/runs/", {}, 202),
        ("GET", "analytics/runs/", "analytics/runs/", None, 200),
    ],
)
def test_answers_are_as_described(
    owner: Api, method: str, path: str, described: str, body: Any, status: int
) -> None:
    owner.post("streams/", {"name": "orders"})
    answer = owner.call(method, path, body)
    assert answer.status_code == status, answer.content
    check(response_schema(f"/api/v1/{described}", method.lower(), status), answer.json())


@pytest.mark.parametrize("more", [{}, {"key": "k"}, {"headers": {"h": "1"}}])
def test_a_dead_letter_is_as_described(owner: Api, more: dict[str, Any]) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "g"})
    stream_id = Stream.objects.get(workspace=owner.workspace, name="orders").stream_id
    sent = NewMessage(
        id="a", body=b"1", key=more.get("key"), headers=b'{"h":"1"}' if "headers" in more else None
    )
    store.log().run(append(stream_id, [sent]))
    store.log().run(groups.fetch(stream_id, "g", limit=1))
    store.log().run(answers.term(stream_id, "g", "offsets", [1], reason="spoilt"))
    (letter,) = owner.get("streams/orders/groups/g/dead-letters/").json()
    assert {name: letter[name] for name in more} == more
    assert {"key", "headers"} & letter.keys() == more.keys()
    check(response_schema("/api/v1/streams/{name}/groups/{group}/dead-letters/", "get", 200), [letter])


def test_the_document_is_served(owner: Api) -> None:
    served = owner.get("schema")
    assert served.headers["Content-Type"] == "application/json"
    assert served.json() == document()
