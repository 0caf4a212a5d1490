"""What a person looks for in a stream, as a test of its entries."""

import base64
import json

import pytest

from dashboard.browse.coded import reading
from dashboard.browse.filters import entry_test
from streams.filters.headers import header_test
from streams.log.read import Wanted


def entry(*, key: bytes | None = None, body: bytes = b"1", message_id: bytes = b"a") -> list[object]:
    fields = [b"i", message_id, b"b", body, b"c", b"1"]
    return [b"1-1", fields if key is None else [*fields, b"k", key]]


def looked_for(body: str, read_as: str) -> Wanted:
    test = entry_test(body=body, reading=reading(read_as))
    assert test is not None
    return test


def test_all_that_is_given_must_hold() -> None:
    test = entry_test(key="orders.*", body="7")
    assert test is not None
    assert test(entry(key=b"orders.eu", body=b"17"))
    assert not test(entry(key=b"orders.eu", body=b"1"))
    assert not test(entry(key=b"orders.eu.x", body=b"7"))
    assert not test(entry(body=b"7"))


def test_an_id_must_be_the_whole_id() -> None:
    test = entry_test(message_id="é")
    assert test is not None
    assert test(entry(message_id="é".encode()))
    assert not test(entry(message_id="éé".encode()))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("trace", True),
        ("other", False),
        ("trace = 4bf9", True),
        ("trace == 4bf9", True),
        ("trace=4bf9", True),
        ("trace = 4bf", False),
        ("trace ~ bf", True),
        ("trace ~ xx", False),
        ("trace != 4bf9", False),
        ("trace != 5", True),
        ("other != 5", False),
        ('"two words" = "a b"', True),
        ("two-words ~ =", False),
    ],
)
def test_headers_are_filtered_by_name_and_value(text: str, passes: bool) -> None:
    headers = b'{"trace":"4bf9","two words":"a b"}'
    assert header_test(text)(headers) is passes
    test = entry_test(header=text)
    assert test is not None
    assert test([b"1-1", [b"i", b"a", b"b", b"1", b"c", b"1", b"k", b"eu", b"h", headers]]) is passes
    assert not test(entry(key=b"eu"))


@pytest.mark.parametrize("text", ["= 1", "trace =", "two words", '"trace', 'trace = "x', "trace < 5"])
def test_a_filter_of_headers_that_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        header_test(text)


def test_no_filter_is_no_test() -> None:
    assert entry_test() is None


def test_what_is_not_in_a_body_is_neither_in_what_was_sent_nor_in_what_it_is_decoded_to() -> None:
    body = json.dumps(base64.b64encode(b'{"status": "refused", "n": 7}').decode()).encode()
    sent = body[1:20].decode()
    for text, passes in (
        ("!~ refused", False),
        (f"!~ {sent}", False),
        ("!~ paid", True),
        (".status !~ paid", True),
        (".status !~ refused", False),
        (f".n = 7 && {sent} && refused", True),
        (".n = 8 || .status = refused", True),
        (f"(.n = 8 || {sent}) && .status = refused", True),
        ("!~ refused || .n = 8", False),
        ("!~ refused || .n = 7", True),
    ):
        assert looked_for(text, "auto")(entry(body=body)) is passes, text
    assert looked_for("!~ refused", "raw")(entry(body=body))
