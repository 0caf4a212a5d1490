"""Bodies that are not as they should be: a sentence, never a 500, and nothing stored."""

import json
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.api.openapi import PREFIX, document
from streams.models import Stream
from tests.streams.api.conftest import Api, code, fields

NESTED = b'{"name": "x", "labels": ' + b"[" * 127 + b"]" * 127 + b"}"
TOO_DEEP = b'{"name": "x", "labels": ' + b"[" * 128 + b"]" * 128 + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b'{"name": "x"} {"name": "y"}',
        b"{'name': 'x'}",
        b'{"name": "x",}',
        b'{"name": "x", "ttl": NaN}',
        b'{"name": "x", "ttl": Infinity}',
        b'{"name": "x", "ttl": -Infinity}',
        b'{"name": "x", "ttl": 01}',
        b'\xef\xbb\xbf{"name": "x"}',
        '{"name": "x"}'.encode("utf-16"),
        b'{"name": "x", "description": "\xff"}',
        b'{"name": "x", "description": "\xed\xa0\x80"}',
        b'{"name": "x", "description": "\\ud800"}',
        b'{"name": "x", "labels": {"\\udc00": "x"}}',
        b'{"name": "x", "description": "\x00"}',
        b'{"name": "x", "description": "\t"}',
        TOO_DEEP,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 10_000,
        b"\x00",
        b"   ",
    ],
)
def test_what_is_no_json_is_refused(owner: Api, body: bytes) -> None:
    for method, path in (("POST", "streams/"), ("PATCH", "streams/orders"), ("POST", "analytics/runs/")):
        owner.post("streams/", {"name": "orders"})
        answer = owner.call(method, path, body)
        assert (answer.status_code, code(answer)) == (400, "invalid_json"), (path, answer.content)
    assert not Stream.objects.filter(name="x").exists()


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        (b'{"description": "\\ud800"}', True),
        (b'{"description": "a\\uDC00\\ud83d\\ude00"}', True),
        (b'{"description": "\\\\\\ud800"}', True),
        (b'{"\\udfff": 1}', True),
        (b'{"description": "\\ud83d\\ude00"', False),
        (b'{"description": "\\\\ud800"', False),
        (b'{"description": "\\ud800", "x": nope}', False),
    ],
)
def test_a_lone_surrogate_is_called_one(owner: Api, body: bytes, is_told: bool) -> None:
    owner.post("streams/", {"name": "orders"})
    answer = owner.call("PATCH", "streams/orders", body)
    assert (answer.status_code, code(answer)) == (400, "invalid_json")
    assert ("lone surrogate" in answer.json()["error"]["message"]) == is_told


@pytest.mark.parametrize("number", [b"1e400", b"-1e999999999", b"9" * 5000, b"-" + b"9" * 400])
def test_a_number_beyond_all_numbers_is_named(owner: Api, number: bytes) -> None:
    answer = owner.call("POST", "streams/", b'{"name": "x", "description": "", "ttl": ' + number + b"}")
    assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", ["ttl"])


def test_such_a_number_in_what_is_no_json_is_no_json(owner: Api) -> None:
    assert code(owner.call("POST", "streams/", b'{"name": "x", "ttl": 1e400')) == "invalid_json"


def test_such_a_number_among_many_streams_is_refused(owner: Api) -> None:
    assert code(owner.call("POST", "streams/", b'[{"name": "x", "ttl": 1e400}]')) == "validation_error"


def test_a_hundred_and_twenty_eight_levels_are_json(owner: Api) -> None:
    assert code(owner.call("POST", "streams/", NESTED)) == "validation_error"


def test_of_a_field_twice_the_last_counts(owner: Api) -> None:
    answer = owner.call("POST", "streams/", b'{"name": "x", "ttl": "no", "ttl": 5}')
    assert (answer.status_code, answer.json()["ttl"]) == (201, 5)


def test_an_escaped_character_beyond_the_first_plane_is_text(owner: Api) -> None:
    answer = owner.call("POST", "streams/", b'{"name": "x", "description": "\\ud83d\\ude00"}')
    assert answer.json()["description"] == "😀"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "streams/"), ("PATCH", "streams/x"), ("POST", "tokens/")]
)
def test_nothing_is_no_object(owner: Api, method: str, path: str) -> None:
    owner.post("streams/", {"name": "x"})
    answer = owner.call(method, path, b"")
    assert (answer.status_code, code(answer)) == (400, "validation_error")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/json-seq",
        "application/merge-patch+json",
        "application/json; charset=latin-1",
        "nonsense",
        "application/" + "j" * 10_000,
    ],
)
def test_another_media_type_is_refused(owner: Api, content_type: str) -> None:
    answer = owner.call("POST", "streams/", b'{"name": "x"}', content_type=content_type)
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")
    assert not Stream.objects.filter(workspace=owner.workspace).exists()


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "APPLICATION/JSON", 'application/json; charset="UTF-8"']
)
def test_json_is_json(owner: Api, content_type: str) -> None:
    assert owner.call("POST", "streams/", b'{"name": "x"}', content_type=content_type).status_code == 201


def test_a_content_type_without_a_body_is_fine(owner: Api) -> None:
    owner.post("streams/", {"name": "x"})
    assert owner.call("GET", "streams/x", content_type="text/plain").status_code == 200
    assert owner.call("DELETE", "streams/x", content_type="application/json").status_code == 204


@pytest.mark.parametrize(
    ("body", "content_type", "refused"),
    [
        (b'{"offsets":[1]}', "application/json", "validation_error"),
        (b"{}", "application/json", "validation_error"),
        (b"{bad", "application/json", "invalid_json"),
        (b"x", "text/plain", "unsupported_media_type"),
        (b" " * (16 * 1024 * 1024 + 1), "application/json", "payload_too_large"),
    ],
    ids=["field", "empty", "broken", "text", "large"],
)
@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("streams/x", "streams/{name}"),
        ("streams/x/groups/g", "streams/{name}/groups/{group}"),
        ("streams/x/groups/g/dead-letters/", "streams/{name}/groups/{group}/dead-letters/"),
    ],
    ids=["stream", "group", "dead letters"],
)
def test_a_delete_with_a_body_deletes_nothing(
    owner: Api, path: str, described: str, body: bytes, content_type: str, refused: str
) -> None:
    owner.post("streams/", {"name": "x"})
    owner.post("streams/x/groups/", {"name": "g"})
    answer = owner.call("DELETE", path, body, content_type=content_type)
    assert code(answer) == refused
    assert str(answer.status_code) in document()["paths"][f"{PREFIX}/{described}"]["delete"]["responses"]
    assert owner.get("streams/x").json()["groups"] == 1


@pytest.mark.parametrize(
    ("body", "content_type", "refused"),
    [
        (b'{"password": "my-own-choice-1"}', "application/json", "validation_error"),
        (b"[]", "application/json", "validation_error"),
        (b"{bad", "application/json", "invalid_json"),
        (b"x", "text/plain", "unsupported_media_type"),
    ],
    ids=["field", "array", "broken", "text"],
)
def test_what_takes_no_body_does_nothing_where_one_comes(
    owner: Api, unique: str, body: bytes, content_type: str, refused: str
) -> None:
    owner.post("users/", {"name": unique, "role": "viewer"})
    before = get_user_model().objects.get(username=unique).password
    answer = owner.call("POST", f"users/{unique}/password", body, content_type=content_type)
    assert code(answer) == refused
    described = document()["paths"][f"{PREFIX}/users/{{name}}/password"]["post"]["responses"]
    assert str(answer.status_code) in described
    assert get_user_model().objects.get(username=unique).password == before
    assert owner.call("POST", f"users/{unique}/password", b"{}").status_code == 200


def test_an_encoded_body_is_refused(owner: Api) -> None:
    answer = owner.call("POST", "streams/", b'{"name": "x"}', **{"content-encoding": "gzip"})
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")


def test_a_body_has_a_bound(owner: Api) -> None:
    body = json.dumps({"name": "x", "description": "x" * (16 * 1024 * 1024)}).encode()
    answer = owner.call("POST", "streams/", body)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


def test_a_large_body_below_the_bound_is_read(owner: Api) -> None:
    body = json.dumps([{"name": "x"}] * 3).encode() + b" " * (15 * 1024 * 1024)
    assert code(owner.call("POST", "streams/", body)) == "validation_error"


@pytest.mark.parametrize("length", ["99999999999999999999", "abc", "-5", "1e3", "٣"])
def test_a_lying_length_is_no_500(owner: Api, length: str) -> None:
    answer = owner.client.post(
        "/api/v1/streams/",
        b'{"name": "x"}',
        content_type="application/json",
        headers={"authorization": owner.secret},
        CONTENT_LENGTH=length,
    )
    assert answer.status_code < 500


JSON_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [
        "name",
        "ttl",
        "max_bytes",
        "discard",
        "labels",
        "keys",
        "description",
        "sealed",
        "dedup_window",
        "storage",
        "x",
    ]
)


@pytest.mark.long
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=st.dictionaries(FIELDS, JSON_VALUES, max_size=6) | JSON_VALUES)
def test_whatever_is_sent_gets_an_answer(owner: Api, body: Any) -> None:
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    for method, path in (("POST", "streams/"), ("PATCH", "streams/orders"), ("POST", "tokens/")):
        answer = owner.call(method, path, data)
        assert answer.status_code < 500
        if answer.status_code >= 400:
            code(answer)


@pytest.mark.parametrize("body", ['{{"name":"a",{}}}', '[{{"name":"a",{}}}]'])
def test_a_million_members_are_refused_before_they_are_made(owner: Api, body: str) -> None:
    """In an object, and in the array of many: each would be named, and be a sentence."""
    data = body.format(",".join(f'"{n:x}":0' for n in range(1_000_000))).encode()
    began = time.process_time()
    answer = owner.call("POST", "streams/", data)
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    assert time.process_time() - began < 1


def test_a_few_unknown_fields_of_many_are_named(owner: Api) -> None:
    answer = owner.post("streams/", {f"f{n}": n for n in range(1000)} | {"name": "a"})
    assert len(fields(answer)) == 20


def test_a_million_arrays_are_refused_before_they_are_made(owner: Api) -> None:
    body = b'{"name":"a","labels":[' + b"[]," * 1_000_000 + b"[]]}"
    began = time.process_time()
    answer = owner.call("POST", "streams/", body)
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    assert time.process_time() - began < 1.5
