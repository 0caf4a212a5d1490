"""CBOR is written as the JSON that it says, every digit of it; the examples are those of RFC 8949, appendix A."""

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.browse.cbor import json_text
from dashboard.browse.coded import JSON, decoded, reading
from dashboard.browse.unpacking import MOST_BYTES


def b64(data: bytes) -> bytes:
    return json.dumps(base64.b64encode(data).decode()).encode()


def text_of(data: str) -> str:
    text, whole = json_text(bytes.fromhex(data), whole=True, most_bytes=MOST_BYTES)
    assert whole
    return text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("00", "0"),
        ("17", "23"),
        ("1818", "24"),
        ("1a000f4240", "1000000"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("c249010000000000000000", "18446744073709551616"),
        ("3bffffffffffffffff", "-18446744073709551616"),
        ("c349010000000000000000", "-18446744073709551617"),
        ("3903e7", "-1000"),
        ("f98000", "-0.0"),
        ("f93e00", "1.5"),
        ("f90001", "5.960464477539063e-08"),
        ("fb3ff199999999999a", "1.1"),
        ("fa47c35000", "100000.0"),
        ("f97c00", '"Infinity"'),
        ("f97e00", '"NaN"'),
        ("fbfff0000000000000", '"-Infinity"'),
        ("f4", "false"),
        ("f5", "true"),
        ("f6", "null"),
        ("f7", '"undefined"'),
        ("f0", '"simple(16)"'),
        ("f8ff", '"simple(255)"'),
        ("c074323031332d30332d32315432303a30343a30305a", '"2013-03-21T20:04:00Z"'),
        ("c11a514b67b0", "1363896240"),
        ("d74401020304", '"0x01020304"'),
        ("40", '"0x"'),
        ("4401020304", '"0x01020304"'),
        ("60", '""'),
        ("62225c", r'"\"\\"'),
        ("62c3bc", '"ü"'),
        ("64f0908591", '"𐅑"'),
        ("80", "[]"),
        ("8301820203820405", "[1,[2,3],[4,5]]"),
        ("a0", "{}"),
        ("a201020304", '{"1":2,"3":4}'),
        ("a26161016162820203", '{"a":1,"b":[2,3]}'),
        ("826161a161626163", '["a",{"b":"c"}]'),
        ("5f42010243030405ff", '"0x0102030405"'),
        ("7f657374726561646d696e67ff", '"streaming"'),
        ("9fff", "[]"),
        ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
        ("83018202039f0405ff", "[1,[2,3],[4,5]]"),
        ("bf61610161629f0203ffff", '{"a":1,"b":[2,3]}'),
        ("bf6346756ef563416d7421ff", '{"Fun":true,"Amt":-2}'),
        ("a2616101616102", '{"a":1,"a":2}'),
    ],
)
def test_the_examples_of_the_specification_are_the_json_that_they_say(data: str, text: str) -> None:
    assert text_of(data) == text


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("", "it ends too early"),
        ("1b00", "it ends too early"),
        ("bb0000000000000001", "it ends too early"),
        ("9f01", "it ends too early"),
        ("c2", "it ends too early"),
        ("1c", "a value cannot begin with 28"),
        ("0001", "there is data after its end"),
        ("ff", "there is a break where none can be"),
        ("8101ff", "there is data after its end"),
        ("82ff", "there is a break where none can be"),
        ("bf00ff", "there is a break where none can be"),
        ("9bffffffffffffffffff", "there is a break where none can be"),
        ("5f6161ff", "a piece of a string is something else"),
        ("7f7f6161ffff", "a piece of a string is something else"),
        ("7f" + "60" * 2001 + "ff", "a string has more than 2000 pieces"),
        ("a18000", "the name of a member is an array or a map"),
        ("81" * 129 + "00", "it is nested deeper than 128"),
    ],
)
def test_what_is_no_cbor_is_refused(data: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        text_of(data)


@given(st.binary(max_size=300))
def test_whatever_is_read_is_json_or_refused(data: bytes) -> None:
    for whole in (True, False):
        try:
            text, is_all = json_text(data, whole=whole, most_bytes=MOST_BYTES)
        except ValueError:
            continue
        if is_all:
            json.loads(text)


def test_it_is_read_when_asked() -> None:
    found = decoded(b64(bytes.fromhex("a16269641b0020000000000001")), reading("base64 cbor"))
    assert found is not None
    assert (found.body, found.steps, found.kind) == (b'{"id":9007199254740993}', ("base64", "CBOR"), JSON)


@pytest.mark.parametrize(
    "data",
    [b"\x81" * 190_000, b"\x9f" * 190_000, b"\xc1" * 190_000, b"\x9f" + b"\x80" * 190_000, b"\x7f" + b"\x60" * 190_000,
     b"\x9b" + b"\xff" * 8 + b"\0" * 190_000, b"\xc2\x5a\x00\x02\xe6\x30" + b"\xff" * 190_000],
    ids=["deep", "endless", "tags", "wide", "pieces", "announced", "large"],
)  # fmt: skip
def test_a_hostile_body_costs_next_to_nothing(data: bytes) -> None:
    body = b64(data)
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        found = decoded(body, reading("base64 cbor"))
        taken.append(time.process_time() - began)
    assert found is not None
    assert min(taken) < 0.05
