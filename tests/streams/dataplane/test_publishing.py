import asyncio
import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from streams.dataplane.durability import Durability
from streams.dataplane.messages import read_publication
from streams.errors import Refusal
from streams.log import stats
from streams.log.client import Log
from tests.streams.dataplane.conftest import LateLog, Stream, inside, refusal
from tests.waiting import until


def publish(client: httpx.Client, stream: Stream, body: str | bytes) -> httpx.Response:
    return client.post(stream.messages, content=body, headers={"content-type": "application/json"})


def stored(client: httpx.Client, stream: Stream) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.get(stream.messages, params={"offset": 0, "limit": 10_000}).json()
    return found


def test_a_batch_is_answered_in_input_order(client: httpx.Client, stream: Stream) -> None:
    answer = client.post(stream.messages, json=[{"id": "a", "body": 1}, {"id": "b", "body": None}])
    assert answer.status_code == 201
    assert answer.headers["okmq-durability"] == "fsync"
    assert answer.json() == [
        {"id": "a", "offset": 1, "duplicate": False},
        {"id": "b", "offset": 2, "duplicate": False},
    ]


async def test_what_is_promised_is_asked_while_it_is_stored(
    valkey: str, token_for: Callable[..., str], stream: Stream, log: Log
) -> None:
    late = LateLog(valkey)
    late.may_go.clear()
    async with inside(valkey, token_for("admin")) as (context, client):
        context.durability = Durability(late)
        publishing = asyncio.create_task(client.post(stream.messages, json={"id": "a", "body": 1}))
        await late.answered.wait()
        await asyncio.to_thread(until, lambda: log.run(stats.inspect(stream.stream_id)).messages == 1)
        assert not publishing.done()
        late.may_go.set()
        assert (await publishing).headers["okmq-durability"] == "fsync"
    await late.close()


def test_one_message_and_an_empty_array_are_taken(client: httpx.Client, stream: Stream) -> None:
    assert client.post(stream.messages, json={"id": "a", "body": ""}).json()[0]["offset"] == 1
    empty = client.post(stream.messages, json=[])
    assert (empty.status_code, empty.json()) == (200, [])


def test_an_empty_array_for_no_stream_is_404(client: httpx.Client) -> None:
    assert refusal(client.post("/nowhere/messages", json=[])) == (404, "stream_not_found")


def test_all_duplicates_is_still_201(client: httpx.Client, stream: Stream) -> None:
    client.post(stream.messages, json=[{"id": "a", "body": 1}])
    again = client.post(stream.messages, json=[{"id": "a", "body": 2}])
    assert (again.status_code, again.json()) == (201, [{"id": "a", "offset": 1, "duplicate": True}])


@pytest.mark.parametrize(
    "body",
    [
        "1.0",
        "1.50",
        "1e400",
        "-0",
        "123456789012345678901234567890",
        "9" * 5000,
        "null",
        '""',
        '"{\\"a\\":1}"',
        '"\\u00e9\\n\\/"',
        '"é\\u0000"',
        '"\\ud800"',
        '{"a": 1,  "a": 2, "\\udfff": []}',
        "[" * 126 + "]" * 126,
    ],
)
def test_a_body_comes_back_as_it_was_sent(client: httpx.Client, stream: Stream, body: str) -> None:
    answer = publish(client, stream, f'[ {{"id":"x", "body" : {body} }} ]')
    assert answer.status_code == 201, answer.text
    text = client.get(f"{stream.messages}/1").text
    assert text[text.index('"body":') + 7 : -1] == body


def test_a_body_of_1_mb_exactly_is_taken_and_a_byte_more_is_not(client: httpx.Client, stream: Stream) -> None:
    fits = '"' + "x" * (1_048_576 - 2) + '"'
    assert publish(client, stream, f'{{"id":"a","body":{fits}}}').status_code == 201
    over = publish(client, stream, f'{{"id":"b","body":"y{fits[1:]}}}')
    assert refusal(over) == (413, "message_too_large")
    assert len(stored(client, stream)) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("nope", "invalid_json"),
        ('[{"id":"a","body":NaN}]', "invalid_json"),
        ('[{"id":"a","body":-Infinity}]', "invalid_json"),
        ('\ufeff[{"id":"a","body":1}]', "invalid_json"),
        ('[{"id":"a","body":1}] x', "invalid_json"),
        ('[{"id":"a","body":' + "[" * 127 + "]" * 127 + "}]", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ('{"id":"a","body":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}", "invalid_json"),
        (b'[{"id":"a","body":"\xff"}]', "invalid_json"),
        (b'[{"id":"a","body":"\xed\xa0\x80"}]', "invalid_json"),
        ('[{"id":"a","body":"\x00"}]', "invalid_json"),
        ('[{"id":"a","body":01}]', "invalid_json"),
        ("1", "validation_error"),
        ('"x"', "validation_error"),
        ("{}", "validation_error"),
        ("[1]", "validation_error"),
        ("[[]]", "validation_error"),
        ('[{"id":"a"}]', "validation_error"),
        ('[{"body":1}]', "validation_error"),
        ('[{"id":1,"body":1}]', "validation_error"),
        ('[{"id":"","body":1}]', "validation_error"),
        ('[{"id":"' + "x" * 51 + '","body":1}]', "validation_error"),
        ('[{"id":"\\ud800","body":1}]', "validation_error"),
        ('[{"id":"a","body":1,"tag":"x"}]', "validation_error"),
        ('[{"id":"a","body":1,"key":"a..b"}]', "validation_error"),
        ('[{"id":"a","body":1,"key":"a.*"}]', "validation_error"),
        ('[{"id":"a","body":1,"key":"a b"}]', "validation_error"),
        ('[{"id":"a","body":1,"key":"\\udc00"}]', "validation_error"),
        ('[{"id":"a","body":1,"key":7}]', "validation_error"),
        ('[{"id":"a","body":1,"headers":{"a":1}}]', "validation_error"),
        ('[{"id":"a","body":1,"headers":[]}]', "validation_error"),
        ('[{"id":"a","body":1,"ttl":0}]', "validation_error"),
        ('[{"id":"a","body":1,"ttl":1.5}]', "validation_error"),
        ('[{"id":"a","body":1,"ttl":1e999}]', "validation_error"),
        ('[{"id":"a","body":1,"ttl":%s}]' % ("9" * 5000), "validation_error"),
        ('{"messages":[],"expect":{"lastoffset":1}}', "validation_error"),
        ('{"messages":[],"expect":{"last_offset":-1}}', "validation_error"),
        ('{"messages":[],"expect":{"last_key_offset":{"a":"1"}}}', "validation_error"),
        ('{"messages":{},"expect":{}}', "validation_error"),
        ('{"messages":[],"extra":1}', "validation_error"),
    ],
)
def test_a_wrong_body_is_refused_and_stores_nothing(
    client: httpx.Client, stream: Stream, body: str | bytes, code: str
) -> None:
    good = publish(client, stream, body)
    assert refusal(good) == (400, code)
    assert stored(client, stream) == []


def test_every_wrong_field_of_every_message_is_named(client: httpx.Client, stream: Stream) -> None:
    answer = client.post(
        stream.messages, json=[{"id": "a", "body": 1}, {"id": "", "ttl": 0}, {"id": "c", "bdy": 1}]
    )
    named = {(error["index"], error["field"]) for error in answer.json()["error"]["details"]["errors"]}
    assert named == {(1, "id"), (1, "body"), (1, "ttl"), (2, "body"), (2, "bdy")}


@pytest.mark.parametrize(
    "body",
    [
        r'[{"id":"a","body":1,"\ud800":1}]',
        r'{"id":"a","body":1,"\uDFFF":1}',
        r'{"messages":[],"\ud800":1}',
        r'{"messages":[],"expect":{"\ud800":1}}',
        r'{"messages":[],"expect":{"last_key_offset":{"\ud800":1}}}',
        r'[{"id":"a\\\ud800","body":1}]',
        r'[{"id":"a","body":1,"key":"\ud800"}]',
        r'[{"id":"a","body":1,"headers":{"\ud800":"a"}}]',
        r'[{"id":"a","body":1,"headers":{"a":"\udc00\ud800"}}]',
    ],
)
def test_a_lone_surrogate_in_a_name_is_refused(client: httpx.Client, stream: Stream, body: str) -> None:
    answer = publish(client, stream, body)
    assert refusal(answer) == (400, "validation_error")
    assert answer.headers["x-request-id"]
    assert stored(client, stream) == []


@pytest.mark.parametrize("body", [r'"\ud8zz"', r'"\ud8"', r'["\ud800", "\x"]', r'"\\\ud80"'])
def test_half_an_escape_is_no_json(client: httpx.Client, stream: Stream, body: str) -> None:
    assert refusal(publish(client, stream, f'[{{"id":"a","body":{body}}}]')) == (400, "invalid_json")


def test_an_escaped_pair_in_an_id_beside_a_lone_surrogate_in_a_body_is_a_character(
    client: httpx.Client, stream: Stream
) -> None:
    body = r'{"id":"\ud83d\ude00","key":"\ud55c","headers":{"h":"\\ud800"},"body":"\\\ud800\\ud800"}'
    assert publish(client, stream, body).json()[0]["id"] == "\U0001f600"
    text = client.get(f"{stream.messages}/1").text
    assert r'"body":"\\\ud800\\ud800"' in text
    found = json.loads(text)
    assert (found["key"], found["headers"]) == ("\ud55c", {"h": "\\ud800"})


@pytest.mark.parametrize(
    "form", ["{%s}", "[{%s}]", r'[{%s},{"id":"x","body":"\ud800"}]', '{"messages":[{%s}]}']
)
def test_as_many_characters_as_may_be_are_taken_however_they_are_written(
    client: httpx.Client, stream: Stream, form: str
) -> None:
    longest_id, longest_key = "\U0001f600" * 50, "\U0001f600" * 255
    fields = json.dumps({"id": longest_id, "key": longest_key, "body": 1})[1:-1]
    assert publish(client, stream, form % fields).status_code == 201
    found = client.get(f"{stream.messages}/1").json()
    assert (found["id"], found["key"]) == (longest_id, longest_key)
    longer = json.dumps({"id": "\U0001f600" * 51, "body": 1})[1:-1]
    assert refusal(publish(client, stream, form % longer)) == (400, "validation_error")


def test_a_name_of_thousands_of_characters_is_repeated_in_short(client: httpx.Client, stream: Stream) -> None:
    answer = client.post(stream.messages, json=[{"id": "a", "body": 1, "x" * 5000: 1}])
    assert refusal(answer) == (400, "validation_error")
    assert len(answer.text) < 1000


@pytest.mark.parametrize("place", ["body", "unknown"])
def test_a_million_arrays_are_read_quickly(place: str) -> None:
    arrays = "[" + "[]," * 330_000 + "[]]"
    began = time.thread_time()
    if place == "body":
        (message,) = read_publication(f'[{{"id":"big","body":{arrays}}}]'.encode()).messages
        assert len(message.body) == len(arrays)
    else:
        with pytest.raises(Refusal):
            read_publication(f'[{{"id":"big","body":1,"other":{arrays}}}]'.encode())
    assert time.thread_time() - began < 0.3


def _filled(start: str, unit: str, end: str) -> bytes:
    """A text of 16 MiB; ``{}`` in the unit is another number each time."""
    numbered = unit.replace("{}", "1000000")
    units = (16 * 1024 * 1024 - len(start) - len(end)) // len(numbered)
    if numbered == unit:
        return (start + unit * units + end).encode()
    return (
        start + "".join(unit.replace("{}", str(n)) for n in range(1_000_000, 1_000_000 + units)) + end
    ).encode()


ONE = '{"id":"a","body":0'


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (("[0", ",0", "]"), "batch_too_large"),
        (('{"messages":[0', ",0", "]}"), "batch_too_large"),
        ((f"[{ONE}}}", f",{ONE}}}", "]"), "batch_too_large"),
        ((f"[{ONE}", ',"{}":0', "}]"), "validation_error"),
        ((f'[{ONE},"headers":{{"a":""', ',"{}":""', "}}]"), "validation_error"),
        ((f'[{ONE},"key":"a', ".a", '"}]'), "validation_error"),
        (('{"messages":[]', ',"{}":0', "}"), "validation_error"),
        (('{"messages":[],"expect":{"last_key_offset":{"a":0', ',"{}":0', "}}}"), "validation_error"),
    ],
)
def test_what_is_too_much_is_refused_before_it_is_taken_apart(sent: tuple[str, str, str], code: str) -> None:
    data = _filled(*sent)
    began = time.thread_time()
    with pytest.raises(Refusal) as refused:
        read_publication(data)
    assert refused.value.code == code
    assert time.thread_time() - began < 0.5


def test_of_very_many_unknown_fields_one_is_named() -> None:
    with pytest.raises(Refusal) as refused:
        read_publication(_filled(f'[{ONE},"first":0', ',"{}":0', "}]"))
    assert refused.value.details["fields"] == ["first"]


def test_of_a_name_twice_the_last_counts(client: httpx.Client, stream: Stream) -> None:
    publish(client, stream, '[{"id":"a","body":1,"body":"\\ud800","id":"b","body":2}]')
    assert [(held["id"], held["body"]) for held in stored(client, stream)] == [("b", 2)]


def test_a_thousand_messages_are_a_batch_and_one_more_is_not(client: httpx.Client, stream: Stream) -> None:
    batch = [{"id": str(n), "body": n} for n in range(1001)]
    assert refusal(client.post(stream.messages, json=batch)) == (400, "batch_too_large")
    assert client.post(stream.messages, json=batch[:1000]).status_code == 201
    assert [held["offset"] for held in stored(client, stream)] == list(range(1, 1001))


def test_expectations_tell_what_is_there(client: httpx.Client, stream: Stream) -> None:
    client.post(stream.messages, json=[{"id": "a", "body": 1, "key": "k"}])
    new = [{"id": "b", "body": 1}]
    for expect, code, told in (
        ({"last_offset": 0}, "wrong_last_offset", {"last_offset": 1}),
        ({"last_id": "z"}, "wrong_last_id", {"last_id": "a"}),
        ({"last_key_offset": {"k": 0}}, "wrong_last_key_offset", {"last_key_offset": {"k": 1}}),
    ):
        answer = client.post(stream.messages, json={"messages": new, "expect": expect})
        assert refusal(answer) == (409, code)
        assert told.items() <= answer.json()["error"]["details"].items()
    held = {"last_offset": 1, "last_id": "a", "last_key_offset": {"k": 1, "other": 0}}
    assert client.post(stream.messages, json={"messages": new, "expect": held}).status_code == 201


def test_a_key_outside_the_streams_patterns_is_refused(
    client: httpx.Client, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(keys=["orders.*.>"])
    for key in ("orders.eu", "other.eu.1", None):
        answer = client.post(stream.messages, json=[{"id": "a", "body": 1, "key": key}])
        assert refusal(answer) == (400, "validation_error")
    assert (
        client.post(stream.messages, json=[{"id": "a", "body": 1, "key": "orders.eu.1.x"}]).status_code == 201
    )


def test_a_body_without_content_length_is_read(client: httpx.Client, stream: Stream) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'[{"id":"a",'
        yield b'"body":1}]'

    answer = client.post(stream.messages, content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 201
    assert len(stored(client, stream)) == 1


def test_too_large_a_request_is_refused_before_it_is_read(client: httpx.Client, stream: Stream) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 1_000_000

    assert refusal(publish(client, stream, b" " * 17_000_000)) == (413, "payload_too_large")
    answer = client.post(stream.messages, content=chunks(), headers={"content-type": "application/json"})
    assert refusal(answer) == (413, "payload_too_large")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_another_media_type_is_refused(client: httpx.Client, stream: Stream, headers: dict[str, str]) -> None:
    answer = client.post(stream.messages, content=b'[{"id":"a","body":1}]', headers=headers)
    assert refusal(answer) == (415, "unsupported_media_type")


def test_no_media_type_is_taken_as_json(client: httpx.Client, stream: Stream) -> None:
    assert client.post(stream.messages, content=b'[{"id":"a","body":1}]').status_code == 201


def test_unknown_parameters_are_refused(client: httpx.Client, stream: Stream) -> None:
    answer = client.post(stream.messages, params={"dry": "1"}, json=[{"id": "a", "body": 1}])
    assert refusal(answer) == (400, "validation_error")
    assert stored(client, stream) == []


def test_headers_and_key_come_back(client: httpx.Client, stream: Stream) -> None:
    sent = {"id": "ü", "body": {"a": [1, 2.5]}, "key": "a.b", "headers": {"trace": 'x"y\n'}}
    client.post(stream.messages, content=json.dumps([sent]))
    (held,) = stored(client, stream)
    assert {name: held[name] for name in sent} == sent


def by_key(client: httpx.Client, key: str, body: object) -> httpx.Response:
    return client.post(f"{str(client.base_url).rsplit('/', 2)[0]}/publish/{key}", json=body)


def test_publish_by_key_finds_the_one_stream(
    client: httpx.Client, make_stream: Callable[..., Stream], unique: str
) -> None:
    stream = make_stream(keys=[f"{unique}.>"])
    assert by_key(client, f"{unique}.eu.1", [{"id": "a", "body": 1}]).status_code == 201
    assert (
        by_key(client, f"{unique}.eu.1/", [{"id": "b", "body": 1, "key": f"{unique}.us"}]).status_code == 201
    )
    assert [held["key"] for held in stored(client, stream)] == [f"{unique}.eu.1", f"{unique}.us"]


def test_publish_by_key_refuses_none_several_and_no_key(
    client: httpx.Client, make_stream: Callable[..., Stream], unique: str
) -> None:
    message = [{"id": "a", "body": 1}]
    assert refusal(by_key(client, unique, message)) == (404, "stream_not_found")
    make_stream(name=f"{unique}-a", keys=[f"{unique}.*"])
    make_stream(name=f"{unique}-b", keys=[f"{unique}.x"])
    assert refusal(by_key(client, f"{unique}.x", message)) == (409, "ambiguous_key")
    assert by_key(client, f"{unique}.y", message).status_code == 201
    assert refusal(by_key(client, f"{unique}.*", message)) == (400, "validation_error")
    assert refusal(by_key(client, "a..b", message)) == (400, "validation_error")


@pytest.mark.parametrize(
    "expect",
    [
        {"last_id": ""},
        {"last_id": "x" * 51},
        {"last_key_offset": {"": 0}},
        {"last_key_offset": {"a b": 0}},
        {"last_key_offset": {"a.*": 0}},
    ],
)
def test_an_expectation_that_cannot_be_is_refused(
    client: httpx.Client, stream: Stream, expect: dict[str, object]
) -> None:
    body = {"messages": [{"id": "a", "body": 1}], "expect": expect}
    assert refusal(client.post(stream.messages, json=body)) == (400, "validation_error")
    assert stored(client, stream) == []


def test_an_expectation_without_messages_is_refused(client: httpx.Client, stream: Stream) -> None:
    answer = client.post(stream.messages, json={"messages": [], "expect": {"last_offset": 7}})
    assert refusal(answer) == (400, "validation_error")
    assert client.post(stream.messages, json={"messages": []}).json() == []


def test_a_failed_expectation_tells_offset_id_and_keys(client: httpx.Client, stream: Stream) -> None:
    client.post(stream.messages, json=[{"id": 'a\n"é', "body": 1, "key": "k"}])
    expect = {"last_offset": 1, "last_key_offset": {"k": 0, "other": 0}}
    body = {"messages": [{"id": "b", "body": 1}], "expect": expect}
    details = client.post(stream.messages, json=body).json()["error"]["details"]
    assert details == {
        "last_offset": 1,
        "last_id": 'a\n"é',
        "last_key_offset": {"k": 1, "other": 0},
        "err_code": 10071,
    }


def test_an_empty_array_to_a_sealed_stream_is_refused(
    client: httpx.Client, make_stream: Callable[..., Stream]
) -> None:
    sealed = make_stream(sealed=True)
    assert refusal(client.post(sealed.messages, json=[])) == (403, "operation_denied")


def test_publish_by_key_tells_nothing_of_streams_outside_the_token(
    client: httpx.Client, make_stream: Callable[..., Stream], token_for: Callable[..., str], unique: str
) -> None:
    for name in (f"{unique}-in", f"{unique}-out", f"{unique}-far"):
        make_stream(name=name, keys=[f"{unique}.>"])
    narrowed = {"authorization": token_for("publish", streams=(f"{unique}-in",))}
    elsewhere = {"authorization": token_for("publish", streams=("nothing",))}
    url, message = f"{client.base_url.copy_with(path='/api/v1/publish/')}{unique}.a", {"id": "a", "body": 1}
    assert client.post(url, json=message, headers=narrowed).status_code == 201
    assert refusal(client.post(url, json=message, headers=elsewhere)) == (404, "stream_not_found")


def test_a_key_in_the_path_that_is_not_utf_8_is_refused(client: httpx.Client) -> None:
    answer = client.post(client.base_url.copy_with(raw_path=b"/api/v1/publish/%ff"), json=[])
    assert refusal(answer) == (400, "validation_error")


def test_a_full_stream_has_room_again_when_a_message_has_expired(
    client: httpx.Client, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(discard="new", max_messages=1)
    assert client.post(stream.messages, json=[{"id": "a", "body": 1, "ttl": 1}]).status_code == 201
    assert refusal(client.post(stream.messages, json=[{"id": "b", "body": 1}])) == (409, "stream_full")
    until(lambda: stored(client, stream) == [])
    assert client.post(stream.messages, json=[{"id": "b", "body": 1}]).status_code == 201
