"""Protobuf without its schema: what the wire format says is shown, every digit; nothing else is taken for it."""

import base64
import html
import json
import re
import struct
import time
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.browse import coded
from dashboard.browse.coded import JSON, decoded, reading
from dashboard.browse.filters import entry_test
from dashboard.browse.protobuf import DEEPEST, MOST_LOOKED_AT_BYTES, MOST_VALUES, written
from dashboard.browse.unpacking import MOST_BYTES
from streams.nesting import is_deeper
from tests.dashboard.conftest import MakeStream

Value = tuple[str, Any]
"""A type of Protobuf, and what is encoded as one."""
Fields = Sequence[tuple[int, Value]]


def varint(number: int) -> bytes:
    number %= 2**64
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def delimited(held: bytes) -> bytes:
    return varint(len(held)) + held


def encoded(fields: Fields) -> bytes:
    """A message as the specification has it: https://protobuf.dev/programming-guides/encoding/."""
    made = b""
    for number, (kind, held) in fields:
        match kind:
            case "int":
                form, data = 0, varint(held)
            case "sint":
                form, data = 0, varint(held << 1 ^ held >> 63)
            case "fixed64" | "sfixed64" | "double":
                form, data = 1, struct.pack({"fixed64": "<Q", "sfixed64": "<q", "double": "<d"}[kind], held)
            case "fixed32" | "sfixed32" | "float":
                form, data = 5, struct.pack({"fixed32": "<I", "sfixed32": "<i", "float": "<f"}[kind], held)
            case "message":
                form, data = 2, delimited(encoded(held))
            case _:
                form, data = 2, delimited(held.encode() if kind == "string" else held)
        made += varint(number << 3 | form) + data
    return made


ORDER = encoded(
    [
        (1, ("int", 2**53 + 1)),
        (2, ("string", "Zoë Müller")),
        (3, ("message", [(1, ("string", "SKU-4711")), (2, ("int", 2))])),
        (3, ("message", [(1, ("string", "SKU-4712")), (2, ("sint", -1))])),
        (4, ("double", 99.5)),
        (5, ("bytes", bytes.fromhex("00ff"))),
    ]
)
SAID = {
    "1": {"int": 2**53 + 1, "sint": -(2**52) - 1},
    "2": "Zoë Müller",
    "3": [
        {"1": "SKU-4711", "2": {"int": 2, "sint": 1}},
        {"1": "SKU-4712", "2": {"int": 1, "sint": -1}},
    ],
    "4": {"fixed64": int.from_bytes(struct.pack("<d", 99.5), "little"), "double": 99.5},
    "5": "0x00ff",
}


def b64(data: bytes) -> bytes:
    return json.dumps(base64.b64encode(data).decode()).encode()


def text_of(data: bytes) -> str:
    return written(data, whole=True, most_bytes=MOST_BYTES).text


def is_taken(data: bytes) -> bool:
    """Whether a body of these bytes is read as Protobuf though nobody said so."""
    found = decoded(b64(data), coded.AUTOMATIC)
    return found is not None and "Protobuf" in found.steps


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("089601", '{"1":{"int":150,"sint":75}}'),
        ("120774657374696e67", '{"2":"testing"}'),
        ("1a03089601", '{"3":{"1":{"int":150,"sint":75}}}'),
        ("08feffffffffffffffff01", '{"1":{"uint":18446744073709551614,"int":-2,"sint":9223372036854775807}}'),
        ("0dffffffff", '{"1":{"fixed32":4294967295,"sfixed32":-1,"float":"NaN"}}'),
        ("0d0000c07f0d000080ff", '{"1":[{"fixed32":2143289344,"float":"NaN"},'
                                 '{"fixed32":4286578688,"sfixed32":-8388608,"float":"-Infinity"}]}'),
        ("0dcdcccc3d", '{"1":{"fixed32":1036831949,"float":0.1}}'),
        ("09000000000000f0bf", '{"1":{"fixed64":13830554455654793216,"sfixed64":-4616189618054758400,"double":-1.0}}'),
        ("3206038e029ea705", '{"6":"0x038e029ea705"}'),
        ("0b08010c1001", '{"1":{"1":{"int":1,"sint":-1}},"2":{"int":1,"sint":-1}}'),
        ("0a00", '{"1":""}'),
        ("08808000", '{"1":{"int":0,"sint":0}}'),
        ("f8ffffff0f01", '{"536870911":{"int":1,"sint":-1}}'),
    ],
)  # fmt: skip
def test_what_the_wire_format_says_is_shown_and_a_number_is_all_that_it_may_be(data: str, text: str) -> None:
    assert text_of(bytes.fromhex(data)) == text


def test_a_message_whose_first_field_is_readable_is_a_message_inside_and_text_stays_text() -> None:
    inner = encoded([(1, ("string", str(uuid.uuid4())))])
    assert inner.decode().isascii()
    assert list(json.loads(text_of(encoded([(1, ("bytes", inner))])))["1"]) == ["1"]
    for text in ("\n\nDear Zoë,\nit is refused.\n", "(2", "a\tb\r\n", "👩‍👩‍👧\u00a0€"):
        assert json.loads(text_of(encoded([(1, ("string", text))]))) == {"1": text}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("", "it is empty"),
        ("08", "it ends too early"),
        ("0a05616263", "it ends too early"),
        ("0d000000", "it ends too early"),
        ("0b0801", "it ends too early"),
        ("0001", "there is no field 0 (byte 0)"),
        ("08010c", "a field cannot be of wire type 4 there (byte 2)"),
        ("0b14", "a field cannot be of wire type 4 there (byte 1)"),
        ("0801 0e", "a field cannot be of wire type 6 there (byte 2)"),
        ("f8ffffff7f01", "there is no field 4294967295 (byte 0)"),
        ("08ffffffffffffffffff02", "a number has more than 64 bits (byte 1)"),
        ("08ffffffffffffffffffff01", "a number has more than 64 bits (byte 1)"),
        ("0b" * 100, f"it is nested deeper than {DEEPEST}"),
    ],
)
def test_what_is_no_protobuf_is_shown_as_sent_and_says_why(data: str, fault: str) -> None:
    body = json.dumps(data.replace(" ", "")).encode()
    if data:
        found = decoded(body, reading("hex protobuf"))
        assert found is not None
        assert (found.body, found.fault) == (body, f"not protobuf: {fault}")
    with pytest.raises(ValueError, match="^" + fault.replace("(", r"\(").replace(")", r"\)")):
        text_of(bytes.fromhex(data))


# What is expected of it is told from the values that were encoded.
NUMBERS = st.one_of(
    st.tuples(st.just("int"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("sint"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("fixed64"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("sfixed64"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("fixed32"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("sfixed32"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False, allow_infinity=False)),
)
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc"])
SCALARS = st.one_of(
    NUMBERS,
    st.tuples(st.just("string"), st.text(LETTERS)),
    st.tuples(st.just("bytes"), st.binary().map(lambda data: b"\0" + data)),
)


def messages(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Messages that begin with a small number, so that they are never readable as text."""
    fields = st.lists(st.tuples(st.integers(2, 2**29 - 1), inner), max_size=6)
    return st.tuples(st.just("message"), fields.map(lambda rest: [(1, ("int", 1)), *rest]))


MESSAGES = messages(st.recursive(SCALARS, messages, max_leaves=12))


def agrees(value: Value, shown: Any) -> bool:
    """Whether what is shown of a value is, or holds, what was encoded."""
    kind, held = value
    if kind == "message":
        by_number: dict[str, list[Value]] = {}
        for number, inner in held:
            by_number.setdefault(str(number), []).append(inner)
        listed = {number: each if len(by_number[number]) > 1 else [each] for number, each in shown.items()}
        return list(shown) == list(by_number) and all(
            len(same) == len(listed[number]) and all(map(agrees, same, listed[number]))
            for number, same in by_number.items()
        )
    if kind == "string":
        return bool(shown == held)
    if kind == "bytes":
        return bool(shown == f"0x{held.hex()}")
    if kind in ("float", "double"):
        form = "<f" if kind == "float" else "<d"
        return struct.pack(form, float(shown[kind])) == struct.pack(form, held)
    return bool(shown.get(kind, shown.get(kind.removeprefix("s"))) == held)


@settings(max_examples=100)
@given(MESSAGES)
def test_every_message_is_shown_with_each_value_and_every_digit(message: Value) -> None:
    made = written(encoded(message[1]), whole=True, most_bytes=MOST_BYTES)
    assert made.whole
    assert agrees(message, json.loads(made.text))


@settings(max_examples=100)
@given(
    st.binary(min_size=1, max_size=300)
    | st.lists(st.sampled_from([ORDER, b"\x0a\x05", b"\x0b", b"\x80"])).map(b"".join)
)
def test_whatever_is_read_is_json_within_its_bounds_or_refused(data: bytes) -> None:
    for whole in (True, False):
        try:
            made = written(data, whole=whole, most_bytes=MOST_BYTES)
        except ValueError:
            continue
        assert not made.whole or json.loads(made.text) is not None
        assert not made.is_certain or whole


def test_what_is_certain_is_read_without_being_asked() -> None:
    for body, steps in (
        (b64(ORDER), ("base64", "Protobuf")),
        (json.dumps(ORDER.hex()).encode(), ("hex", "Protobuf")),
    ):
        found = decoded(body, coded.AUTOMATIC)
        assert found is not None
        assert (found.steps, found.kind, found.whole) == (steps, JSON, True)
        assert found.is_without_names
        assert json.loads(found.body) == SAID


TEXTS = st.text(LETTERS, max_size=40)
OBJECTS = st.recursive(
    st.none() | st.integers(-9, 2**63) | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


@settings(max_examples=150)
@given(st.one_of(
    st.binary(max_size=120),
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: text.encode("latin1", "replace") + b"\xe9"),
    TEXTS.map(lambda text: text.encode("utf-16-le")),
    OBJECTS.map(msgspec.msgpack.encode),
    OBJECTS.map(msgspec.json.encode),
    # Avro without its schema: strings by their lengths, and numbers, both zigzag.
    st.lists(TEXTS.map(lambda text: varint(2 * len(text.encode())) + text.encode())
             | st.integers(-(2**40), 2**40).map(lambda number: varint(number << 1 ^ number >> 63))).map(b"".join),
    # Strings after their lengths, in a byte.
    st.lists(TEXTS.map(lambda text: bytes([len(text.encode())]) + text.encode())).map(b"".join),
))  # fmt: skip
def test_nothing_else_is_taken_for_it(data: bytes) -> None:
    assert not is_taken(data)


@pytest.mark.parametrize(
    "data",
    [
        encoded([(1, ("string", "one field of text is anything"))]),
        encoded([(1, ("int", 1)), (2, ("int", 2)), (3, ("double", 1.5))]),
        encoded([(2, ("string", "out of their order")), (1, ("int", 1))]),
        encoded([(1, ("string", "numbers far apart")), (200, ("int", 1))]),
        encoded([(4, ("string", "begins with a letter")), (5, ("int", 1))]),
        ORDER[:-1],
        ORDER + b"\x88\x80\x00\x01",
        msgspec.msgpack.encode(["an array of text", "and numbers", 1, 2]),
    ],
)
def test_what_could_be_something_else_waits_for_being_asked(data: bytes) -> None:
    assert not is_taken(data)


def nested(size: int) -> bytes:
    """Messages in each other of so many bytes in all."""
    inner = b"\x08\x01"
    while len(inner) < size:
        inner = b"\x0a" + delimited(inner)
    return inner


def readable_nested(size: int) -> bytes:
    """Messages in each other that are text as well, up to the deepest: each is looked at for text whole."""
    inner = b"a" * size
    for _ in range(100):
        inner = b"\n" + delimited(inner)
    return inner


@pytest.mark.parametrize(
    "data",
    [
        nested(190_000),
        readable_nested(147_500),
        b"\x0b" * 190_000,
        b"\x08\x01" * 95_000,
        b"\x0a\x00" * 95_000,
        (b"\x0a\x7f" + b"\x08\x01" * 63 + b"\x08") * 1_500,
        b"\x0a" + delimited(b"\xff" * 190_000),
        encoded([(1, ("string", "a" * 190_000))]),
        b"\xff" * 190_000,
    ],
    ids=["nested", "readable", "groups", "numbers", "empty", "almost", "bytes", "text", "varint"],
)
@pytest.mark.parametrize("asked", ["auto", "base64 protobuf"])
def test_a_hostile_body_costs_next_to_nothing(data: bytes, asked: str) -> None:
    body = b64(data)
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        found = decoded(body, reading(asked))
        taken.append(time.process_time() - began)
    assert min(taken) < 0.05
    assert found is None or found.fault or len(found.body) <= MOST_BYTES


def test_of_many_fields_the_beginning_is_shown_and_that_is_said() -> None:
    for data in (
        encoded([(2, ("int", 7))] * (MOST_VALUES + 1)),
        encoded([(1, ("string", "a" * 50_000))] * 2),
    ):
        found = decoded(b64(data), reading("base64 protobuf"))
        assert found is not None
        assert (found.fault, found.whole) == ("", False)
        assert found.body.startswith((b'{"2":[{"int":7', b'{"1":["aaaa'))


def test_the_beginning_of_a_message_is_read_as_far_as_it_goes() -> None:
    made = written(ORDER[:-1], whole=False, most_bytes=MOST_BYTES)
    assert not made.whole
    assert made.text.startswith('{"1":{"int":9007199254740993')
    assert '"4":{"fixed64"' in made.text


def test_it_is_no_deeper_than_json_may_be() -> None:
    """Where each message stands in an array as well."""
    data = encoded([(1, ("int", 1))])
    for _ in range(200):
        data = encoded([(1, ("bytes", data)), (1, ("int", 1))])
    text = text_of(data)
    assert len(data) < MOST_LOOKED_AT_BYTES
    assert text.count("{") > DEEPEST
    assert not is_deeper(text.encode(), coded.DEEPEST)


def test_a_path_of_field_numbers_finds_the_message() -> None:
    def passes(match: str, asked: str = "auto") -> bool:
        wanted = entry_test(body=match, reading=reading(asked))
        assert wanted is not None
        return wanted([b"1-0", [b"i", b"a", b"b", b64(ORDER)]])

    assert passes(".1.int = 9007199254740993")
    assert not passes(".1.int = 9007199254740992")
    assert passes(".3[*].1 = SKU-4712 && .4.double > 99")
    assert not passes(".2 ~ Zoë", "raw")


def test_pages_show_the_numbers_and_say_that_names_are_not_known(
    owner: Client, make_stream: MakeStream
) -> None:
    said = "Names and types stand in a schema that is not known here"
    make_stream("orders", bodies=[b64(ORDER), b64(b'{"id":5}')])
    shown = owner.get("/streams/orders/messages/1/").content.decode()
    assert "Decoded: base64, Protobuf" in shown
    assert said in shown
    assert "9007199254740993" in shown
    assert said not in owner.get("/streams/orders/messages/2/").content.decode()
    (link,) = re.findall(r'href="([^"]*match=[^"]*9007199254740993)"', shown)
    assert len(owner.get(html.unescape(link)).context["window"].rows) == 1
    listed = owner.get("/streams/orders/?cols=.3[*].1,.4.double&match=.2+~+Zo")
    (row,) = listed.context["window"].rows
    assert [cell.text for cell in row.cells] == ["SKU-4711, SKU-4712", "99.5"]
    assert '<option value="base64 protobuf">' in listed.content.decode()
