"""The answer to a query, published into a stream: what becomes of rows, and what is refused."""

import json
from typing import Any

import pytest

from streams import store
from streams.dataplane.messages import read_publication
from streams.log import read
from streams.models import Query, QueryState, Stream
from tests.streams.api.conftest import Api, caller, code, fields

COLUMNS = [["stream", "string"], ["n", "decimal(20,2)"], ["more", "map<string,string>"]]
ROWS = '[["orders",1.50,{"a":"1"}],[null,9007199254740993,null],["sales.eu",-0.00,{}]]'


def answer_of(api: Api, *, columns: list[list[str]] | None = None, rows: str = ROWS, **more: Any) -> Query:
    return Query.objects.create(
        workspace=api.workspace,
        sql="SELECT 1",
        limit=10,
        asked_by="x",
        state=QueryState.SUCCEEDED,
        columns=COLUMNS if columns is None else columns,
        rows=rows,
        **more,
    )


@pytest.fixture
def stream(owner: Api) -> Stream:
    assert owner.post("streams/", {"name": "totals", "archive": False}).status_code == 201
    return Stream.objects.get(workspace=owner.workspace, name="totals")


def stored(owner: Api) -> list[dict[str, Any]]:
    stream = Stream.objects.get(workspace=owner.workspace, name="totals")
    found = []
    for offset in range(1, store.log().run(read.position(stream.stream_id)).last + 1):
        entry = store.log().run(read.message(stream.stream_id, offset))
        told = {
            name.decode(): value.decode() for name, value in zip(entry[1][::2], entry[1][1::2], strict=True)
        }
        found.append(told)
    return found


def test_each_row_is_a_message_with_its_digits_and_is_stored_once(owner: Api, stream: Stream) -> None:
    query = answer_of(owner)
    path = f"analytics/query/{query.pk}/publish"
    first = owner.post(path, {"stream": "totals", "key": "stream"})
    assert (first.status_code, first.json()) == (
        200,
        {"stored": 3, "known": 0, "truncated": False, "first_offset": 1, "last_offset": 3},
    )
    Query.objects.update(truncated=True)
    assert owner.post(path, {"stream": "totals", "key": "stream"}).json()["truncated"] is True
    Query.objects.update(truncated=False)
    again = owner.post(path, {"stream": "totals", "key": "stream"}).json()
    assert again == {"stored": 0, "known": 3, "truncated": False, "first_offset": 1, "last_offset": 3}
    bodies = [each["b"] for each in stored(owner)]
    assert bodies == [
        '{"stream":"orders","n":1.50,"more":{"a":"1"}}',
        '{"stream":null,"n":9007199254740993,"more":null}',
        '{"stream":"sales.eu","n":-0.00,"more":{}}',
    ]
    assert [each.get("k") for each in stored(owner)] == ["orders", None, "sales.eu"]


def test_more_rows_than_go_together_keep_their_order(owner: Api, stream: Stream) -> None:
    rows = json.dumps([[n] for n in range(2500)])
    query = answer_of(owner, columns=[["n", "bigint"]], rows=rows)
    told = owner.post(f"analytics/query/{query.pk}/publish", {"stream": "totals"}).json()
    assert told == {"stored": 2500, "known": 0, "truncated": False, "first_offset": 1, "last_offset": 2500}
    assert [json.loads(each["b"])["n"] for each in stored(owner)] == list(range(2500))


def test_a_stream_that_gets_full_says_how_many_were_published_and_the_rest_comes_later(
    owner: Api, stream: Stream
) -> None:
    assert owner.patch("streams/totals", {"max_messages": 2100, "discard": "new"}).status_code == 200
    query = answer_of(owner, columns=[["n", "bigint"]], rows=json.dumps([[n] for n in range(2500)]))
    path = f"analytics/query/{query.pk}/publish"
    refused = owner.post(path, {"stream": "totals"})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["details"]["stored"]) == (409, "stream_full", 2000)
    assert "2,000 messages of the answer had been published before it." in error["message"]
    assert owner.patch("streams/totals", {"max_messages": 3000}).status_code == 200
    told = owner.post(path, {"stream": "totals"}).json()
    assert (told["stored"], told["known"]) == (500, 2000)


@pytest.mark.parametrize(
    ("columns", "rows", "body", "refused"),
    [
        ([["a", "int"], ["a", "int"]], "[[1,2]]", {"stream": "totals"}, "validation_error"),
        (None, ROWS, {"stream": "totals", "key": "nope"}, "validation_error"),
        ([["k", "string"]], '[["good"],["b\\u0000d"]]', {"stream": "totals", "key": "k"}, "validation_error"),
        (
            [["k", "string"]],
            json.dumps([["good"], ["k" * 10_000]]),
            {"stream": "totals", "key": "k"},
            "validation_error",
        ),
        ([["b", "string"]], json.dumps([["x" * 2_000_000]]), {"stream": "totals"}, "message_too_large"),
        ([["b", "array"]], f"[[1],[{'[' * 126}{']' * 126}]]", {"stream": "totals"}, "validation_error"),
        ([], "[]", {"stream": "totals"}, "query_not_found"),
        (None, ROWS, {"stream": "nowhere"}, "stream_not_found"),
        (None, ROWS, {"stream": "totals", "mode": 1}, "validation_error"),
        (None, ROWS, {}, "validation_error"),
    ],
)
def test_what_makes_no_messages_stores_none(
    owner: Api,
    stream: Stream,
    columns: list[list[str]] | None,
    rows: str,
    body: dict[str, Any],
    refused: str,
) -> None:
    query = answer_of(owner, columns=columns, rows=rows)
    assert code(owner.post(f"analytics/query/{query.pk}/publish", body)) == refused
    assert stored(owner) == []


def test_a_row_that_is_too_large_is_named_and_none_before_it_is_stored(owner: Api, stream: Stream) -> None:
    assert owner.patch("streams/totals", {"max_message_bytes": 100}).status_code == 200
    rows = json.dumps([["x" * 100 if n == 1500 else "x"] for n in range(2000)])
    query = answer_of(owner, columns=[["b", "string"]], rows=rows)
    refused = owner.post(f"analytics/query/{query.pk}/publish", {"stream": "totals"})
    assert code(refused) == "message_too_large"
    told = refused.json()["error"]
    assert told["message"] == "Row 1,501 makes a body of 108 bytes; the stream takes 100."
    assert told["details"] == {"index": 1500, "size": 108, "limit": 100}
    assert stored(owner) == []


def test_a_row_as_deep_as_a_body_may_be_is_published(owner: Api, stream: Stream) -> None:
    deep = "[" * 125 + "]" * 125
    query = answer_of(owner, columns=[["b", "array"]], rows=f"[[{deep}]]")
    assert owner.post(f"analytics/query/{query.pk}/publish", {"stream": "totals"}).status_code == 200
    (body,) = (each["b"] for each in stored(owner))
    sent_again = read_publication(f'[{{"id": "again", "body": {body}}}]'.encode())
    assert [each.body.decode() for each in sent_again.messages] == [body]


def test_a_stream_that_accepts_keys_gets_what_has_one(owner: Api, stream: Stream) -> None:
    assert owner.patch("streams/totals", {"keys": ["sales.*"]}).status_code == 200
    query = answer_of(owner, columns=[["k", "string"]], rows='[["sales.eu"],["other"]]')
    refused = owner.post(f"analytics/query/{query.pk}/publish", {"stream": "totals", "key": "k"})
    assert (code(refused), fields(refused)) == ("validation_error", ["key"])
    assert stored(owner) == []


def test_it_takes_the_right_to_publish_and_the_own_workspace(
    owner: Api, stranger: Api, stream: Stream
) -> None:
    query = answer_of(owner)
    path = f"analytics/query/{query.pk}/publish"
    reader = caller(owner.workspace, scopes=["read"])
    assert code(reader.post(path, {"stream": "totals"})) == "forbidden"
    assert code(stranger.post(path, {"stream": "totals"})) == "query_not_found"
    assert stored(owner) == []
