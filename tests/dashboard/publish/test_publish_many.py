"""Many messages at once: lines that were pasted or a file of them, up to the first that is wrong."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import strip_tags

from dashboard.publish import publishing_many
from streams import selectors
from streams.log.entries import Message
from streams.models import Stream
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

PAGE = "/streams/orders/publish/many/"
PREFIX = "console-0123456789ab"


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    return make_stream("orders")


def stored(stream: Stream) -> list[Message]:
    return selectors.messages_from(stream, offset=0, limit=5000)


def sent(client: Client, lines: str | bytes, *, part: bool = False, **fields: Any) -> Any:
    """Lines as text, or bytes as a file, in the form."""
    chosen = {"each": "message", "begin": 1, "ids": PREFIX, "keep": "on"} | fields
    field = (
        {"lines": lines} if isinstance(lines, str) else {"file": SimpleUploadedFile("lines.ndjson", lines)}
    )
    headers = {"HX-Request": "true"} if part else {}
    return client.post(PAGE, chosen | field, headers=headers)


def said(answer: Any) -> str:
    return " ".join(strip_tags(answer.content.decode()).split())


def test_pasted_lines_are_stored_as_they_stand(owner: Client, orders: Stream) -> None:
    answer = sent(
        owner, '{"id": "a", "body": 12345678901234567890, "key": "eu"}\r\n\r\n{"id": "b", "body": 1.50}\r\n'
    )
    assert answer.status_code == 200
    assert [(each.id, each.body, each.key) for each in stored(orders)] == [
        ("a", b"12345678901234567890", "eu"),
        ("b", b"1.50", None),
    ]
    assert "2 messages were stored. Offsets 1 to 2" in said(answer)


def test_a_file_is_stored_line_by_line(owner: Client, orders: Stream) -> None:
    lines = b"\xef\xbb\xbf" + b"".join(b'{"id": "m%d", "body": %d}\n' % (n, n) for n in range(2500))
    assert "2,500 messages were stored. Offsets 1 to 2,500" in said(sent(owner, lines))
    assert [each.body for each in stored(orders)] == [b"%d" % n for n in range(2500)]


def test_what_an_export_wrote_can_be_loaded(owner: Client, make_stream: MakeStream, orders: Stream) -> None:
    make_stream("others", bodies=[b'{"n": 9007199254740993}', b'"\\ud800"'])
    exported = content(owner.get("/streams/others/export/?format=ndjson"))
    assert sent(owner, exported).status_code == 200
    assert [(each.id, each.body) for each in stored(orders)] == [
        ("m1", b'{"n": 9007199254740993}'),
        ("m2", b'"\\ud800"'),
    ]


def test_bodies_are_given_ids(owner: Client, orders: Stream) -> None:
    sent(owner, '{"a": 1}\n7\n"\\ud800"', each="body")
    assert [(each.id, each.body) for each in stored(orders)] == [
        (f"{PREFIX}-1", b'{"a": 1}'),
        (f"{PREFIX}-2", b"7"),
        (f"{PREFIX}-3", b'"\\ud800"'),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id": "c"}', "body: Required"),
        ('{"id": "c", "body": 1', "not accepted as JSON"),
        ('{"id": "c", "body": 1}, {"id": "d", "body": 2}', "Expected one message"),
        ('[{"id": "c", "body": 1}]', "Expected an object"),
        ('{"id": "c", "body": 1, "colour": "red"}', "colour: Unknown field."),
        ('{"messages": [{"id": "c", "body": 1}]}', "messages: Unknown field."),
        ('{"id": "", "body": 1}', "id: Required"),
        ('{"id": "c", "body": 1, "key": "a b"}', "key: "),
        ('{"id": "c", "body": "' + "x" * 200 + '"}', "bytes; the stream takes 100"),
        ("nonsense", "not accepted as JSON"),
    ],
)
def test_the_first_wrong_line_is_named_and_only_what_stands_before_it_is_stored(
    owner: Client, make_stream: MakeStream, line: str, why: str
) -> None:
    orders = make_stream("orders", max_message_bytes=100)
    answer = sent(
        owner, f'{{"id": "a", "body": 1}}\n\n{{"id": "b", "body": 2}}\n{line}\n{{"id": "z", "body": 3}}'
    )
    assert answer.status_code == 422
    assert "Line 4 was not stored, nor was anything after it:" in said(answer)
    assert why in said(answer).replace("&quot;", '"')
    assert "2 messages were stored." in said(answer)
    assert [each.id for each in stored(orders)] == ["a", "b"]


@pytest.mark.parametrize("line", ['1, "key": "k"', '1}, {"id": "x", "body": 2', "", "{"])
def test_a_body_is_one_value_and_nothing_else(owner: Client, orders: Stream, line: str) -> None:
    assert sent(owner, f"{line}\n[", each="body").status_code == 422
    assert stored(orders) == []


def test_after_a_wrong_line_the_form_goes_on_there_with_other_ids(owner: Client, orders: Stream) -> None:
    form = sent(owner, "1\n2\nthree\n4", each="body").context["form"]
    assert form.initial["begin"] == 3
    assert form.initial["ids"] != PREFIX
    mended = form.initial | {"lines": form.initial["lines"].replace("three", "3")}
    assert owner.post(PAGE, mended).status_code == 200
    assert [each.body for each in stored(orders)] == [b"1", b"2", b"3", b"4"]


def test_known_ids_are_counted_and_not_stored_again(owner: Client, orders: Stream) -> None:
    line = '{"id": "a", "body": 1}'
    sent(owner, line)
    assert "0 messages were stored. 1 was skipped: the stream already has its id." in said(sent(owner, line))
    assert len(stored(orders)) == 1


def test_a_batch_that_is_refused_as_a_whole_stores_none_of_it(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing_many, "BATCH_LIMIT", 3)
    orders = make_stream("orders", max_messages=5, discard="new")
    answer = sent(owner, "\n".join("12345678"), each="body")
    assert answer.status_code == 422
    assert "Line 4 was not stored" in said(answer)
    assert len(stored(orders)) == 3


def test_a_key_that_the_stream_does_not_accept_is_wrong(owner: Client, make_stream: MakeStream) -> None:
    orders = make_stream("orders", keys=["eu.*"])
    answer = sent(owner, '{"id": "a", "body": 1, "key": "eu.1"}\n{"id": "b", "body": 1, "key": "us.1"}')
    assert "Line 2 was not stored" in said(answer)
    assert "accepts eu.*" in said(answer)
    assert [each.id for each in stored(orders)] == ["a"]


def test_part_by_part_lines_and_sums_go_on(owner: Client, orders: Stream) -> None:
    first = sent(owner, b"1\n2\n", part=True, each="body")
    assert (
        'data-line="3" data-stored="2" data-known="0" data-first="1" data-last="2"' in first.content.decode()
    )
    assert "<html" not in first.content.decode()
    so_far = {"so_far_line": 3, "so_far_stored": 2, "so_far_known": 0, "so_far_first": 1, "so_far_last": 2}
    second = sent(owner, b"3\nfour\n", part=True, each="body", **so_far)
    assert (second.status_code, " data-wrong>" in second.content.decode()) == (200, True)
    assert "Line 4 was not stored" in said(second)
    assert "3 messages were stored. Offsets 1 to 3" in said(second)
    assert [each.id for each in stored(orders)] == [f"{PREFIX}-{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "fields",
    [
        {"lines": "  "},
        {"lines": "1", "begin": "0"},
        {"lines": "1", "begin": "x"},
        {"lines": "1", "each": "other"},
        {"lines": "1", "ids": "mine"},
    ],
)
def test_a_form_that_is_not_right_stores_nothing(
    owner: Client, orders: Stream, fields: dict[str, str]
) -> None:
    answer = owner.post(PAGE, {"each": "body", "begin": 1, "ids": PREFIX} | fields)
    assert answer.status_code == 422
    assert stored(orders) == []


@pytest.mark.parametrize("so_far", ["-1", "x", "9" * 30, ""])
def test_nonsense_about_how_far_it_came_is_passed_over(owner: Client, orders: Stream, so_far: str) -> None:
    nonsense = {f"so_far_{name}": so_far for name in ("line", "stored", "known", "first", "last")}
    assert sent(owner, b"1\n", part=True, each="body", **nonsense).status_code == 200
    assert len(stored(orders)) == 1


def test_contents_are_kept_where_that_is_asked_for(owner: Client, orders: Stream) -> None:
    assert sent(owner, "1\n2", each="body").context["form"].initial["lines"] == "1\n2"
    assert sent(owner, "1\n2", each="body", keep="").context["form"].initial["lines"] == ""


def test_a_sealed_stream_takes_nothing_and_says_so(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", sealed=True)
    answer = sent(owner, json.dumps({"id": "a", "body": 1}))
    assert answer.status_code == 422
    assert "Line 1 was not stored" in said(answer)
