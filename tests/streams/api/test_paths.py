"""Paths: both slash forms, unknown ones, methods that are not there; names that no stream can have."""

import pytest
from django.urls import get_resolver

from streams.api import urls
from tests.streams.api.conftest import Api, code

PATHS = [
    "streams",
    "streams/find?key=a",
    "streams/orders",
    "streams/orders/history",
    "streams/orders/metrics",
    "tokens",
    "workspaces",
    "account",
    "events",
    "analytics/runs",
    "schema",
    "docs",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_answers_with_and_without_its_slash(ruler: Api, path: str, unique: str) -> None:
    name = f"{unique}-orders"
    ruler.post("streams/", {"name": name})
    bare, mark, query = path.replace("orders", name).partition("?")
    without, with_slash = ruler.get(f"{bare}{mark}{query}"), ruler.get(f"{bare}/{mark}{query}")
    assert (without.status_code, with_slash.status_code) == (200, 200)
    ruler.delete(f"streams/{name}")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1",
        "/api/v1/",
        "/api",
        "/api/v2/streams",
        "/api/v1/nothing",
        "/api/v1/streams/a/b",
        "/api/v1//streams",
    ],
)
def test_an_unknown_path_is_not_found_in_the_one_shape(owner: Api, method: str, path: str) -> None:
    answer = owner.client.generic(method, path, headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (404, "not_found")
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "streams/", "GET, HEAD, POST"),
        ("DELETE", "streams/", "GET, HEAD, POST"),
        ("OPTIONS", "streams/orders", "DELETE, GET, HEAD, PATCH"),
        ("POST", "streams/orders", "DELETE, GET, HEAD, PATCH"),
        ("TRACE", "streams/orders", "DELETE, GET, HEAD, PATCH"),
        ("POST", "streams/find", "GET, HEAD"),
        ("GET", "tokens/1", "DELETE"),
        ("PUT", "workspaces/x", "DELETE, PATCH"),
        ("POST", "docs", "GET, HEAD"),
        ("PROPFIND", "events", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_there_tells_what_is(owner: Api, method: str, path: str, allow: str) -> None:
    answer = owner.call(method, path)
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == allow


def test_head_answers_as_get_without_a_body(owner: Api) -> None:
    answer = owner.call("HEAD", "streams/")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "name",
    [
        "%00",
        "a%00",
        "a%0A",
        "%20",
        "..",
        "%2e%2e",
        "a%2Fb",
        "%FF",
        "é",
        "x" * 51,
        "x" * 5000,
        "*",
        "_metrics",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_name_that_none_can_have_is_not_found(owner: Api, method: str, name: str) -> None:
    answer = owner.call(method, f"streams/{name}", {} if method == "PATCH" else None)
    assert answer.status_code == 404
    assert code(answer) in {"stream_not_found", "not_found"}


@pytest.mark.parametrize("path", [path for path in PATHS if "?" not in path])
def test_an_unknown_parameter_is_refused_everywhere(ruler: Api, path: str) -> None:
    if "orders" in path:
        ruler.post("streams/", {"name": "orders"})
    answer = ruler.get(f"{path}?ofset=4")
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    assert answer.json()["error"]["details"]["fields"] == ["ofset"]


def test_an_unknown_parameter_deletes_nothing(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    assert code(owner.delete("streams/orders?force=1")) == "validation_error"
    assert owner.get("streams/orders").status_code == 200


def test_a_query_that_is_not_utf_8_is_refused(owner: Api) -> None:
    answer = owner.get("streams/?name=%ff")
    assert (answer.status_code, code(answer)) == (400, "validation_error")


def test_nothing_is_kept_by_caches(owner: Api) -> None:
    assert owner.get("streams/").headers["Cache-Control"] == "no-store"


def test_every_path_is_a_route() -> None:
    assert {pattern.name for pattern in urls.urlpatterns} >= {"streams", "stream", "docs", "not-found"}
    assert get_resolver().resolve("/healthz").url_name == "healthz"
