"""What is coded in a string is read: that is said, costs next to nothing whatever it claims, and changes no digit."""

import base64
import bz2
import gzip
import json
import lzma
import struct
import time
import zlib
from typing import Any

import msgspec
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.browse import coded, unpacking
from dashboard.browse.coded import JSON, TEXT, decoded, reading
from dashboard.browse.filters import entry_test
from dashboard.browse.packed import MOST_VALUES, json_text
from dashboard.browse.unpacking import MOST_BYTES

ORDER = b'{"id":9007199254740993,"big":123456789012345678901234567890,"total":1.50,"a":1,"a":2}'


def sent(data: bytes) -> bytes:
    """A body that holds these characters."""
    return json.dumps(data.decode()).encode()


def b64(data: bytes) -> bytes:
    return sent(base64.b64encode(data))


def by_arrow(data: bytes, codec: str) -> bytes:
    packed: bytes = pyarrow.compress(data, codec, asbytes=True)
    return packed


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (b64(ORDER), ("base64", "JSON")),
        (b64(gzip.compress(ORDER)), ("base64", "gzip", "JSON")),
        (b64(zlib.compress(ORDER)), ("base64", "zlib", "JSON")),
        (sent(base64.urlsafe_b64encode(gzip.compress(ORDER)).rstrip(b"=")), ("base64url", "gzip", "JSON")),
        (sent(base64.encodebytes(gzip.compress(ORDER))), ("base64", "gzip", "JSON")),
        (sent(ORDER.hex().encode()), ("hex", "JSON")),
        (sent(b"0x" + gzip.compress(ORDER).hex().upper().encode()), ("hex", "gzip", "JSON")),
        (b64(base64.b64encode(gzip.compress(ORDER))), ("base64", "base64", "gzip", "JSON")),
        (sent(ORDER), ("JSON",)),
        (b64(gzip.compress(ORDER[:40]) + gzip.compress(ORDER[40:])), ("base64", "gzip", "JSON")),
        (b64(by_arrow(ORDER, "zstd")), ("base64", "zstd", "JSON")),
        (b64(by_arrow(ORDER[:40], "zstd") + by_arrow(ORDER[40:], "zstd")), ("base64", "zstd", "JSON")),
        (b64(by_arrow(ORDER, "lz4")), ("base64", "lz4", "JSON")),
        (b64(bz2.compress(ORDER)), ("base64", "bzip2", "JSON")),
        (b64(lzma.compress(ORDER, preset=9)), ("base64", "xz", "JSON")),
    ],
)
def test_what_is_coded_shows_itself_and_keeps_every_digit(body: bytes, steps: tuple[str, ...]) -> None:
    found = decoded(body, coded.AUTOMATIC)
    assert found is not None
    if "base64url" in steps:
        assert found.steps[0] in ("base64", "base64url")  # without - and _ they are the same
        assert found.steps[1:] == steps[1:]
    else:
        assert found.steps == steps
    assert (found.body, found.kind, found.whole) == (ORDER, JSON, True)


def test_message_pack_is_written_as_json_with_every_digit() -> None:
    order = {"id": 2**53 + 1, "low": -(2**63), "high": 2**64 - 1, "paid": True, "note": None, "name": "Zoë"}
    for made in (msgspec.msgpack.encode(order), gzip.compress(msgspec.msgpack.encode(order))):
        found = decoded(b64(made), coded.AUTOMATIC)
        assert found is not None
        assert found.steps[-1] == "MessagePack"
        assert json.loads(found.body) == order


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)  # fmt: skip


@settings(max_examples=40)
@given(VALUES)
def test_every_message_pack_value_is_the_json_that_it_says(value: Any) -> None:
    text, whole = json_text(msgspec.msgpack.encode(value), whole=True, most_bytes=MOST_BYTES)
    assert whole
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        ("82a16101a16102", '{"a":1,"a":2}'),
        ("8101c3", '{"1":true}'),
        ("c4020aff", '"0x0aff"'),
        ("cb7ff0000000000000", '"Infinity"'),
        ("d6ff00000000", '"1970-01-01T00:00:00Z"'),
        ("d7ff0000000400000001", '"1970-01-01T00:00:01.000000001Z"'),
        ("d40110", '"extension 1: 0x10"'),
        ("a1ff", '"0xff"'),
        ("91" * 128 + "c0", "[" * 128 + "null" + "]" * 128),
    ],
)
def test_what_json_does_not_know_is_written_as_a_string(packed: str, text: str) -> None:
    assert json_text(bytes.fromhex(packed), whole=True, most_bytes=MOST_BYTES) == (text, True)


@pytest.mark.parametrize(
    "packed", ["", "c1", "93", "a5ab", "0102", "8190c0", "91" * 129 + "c0", "dfffffffff"]
)
def test_what_is_no_message_pack_is_refused(packed: str) -> None:
    with pytest.raises(
        ValueError, match=r"it ends too early|does not begin a value|there is data after|is an array|deeper"
    ):
        json_text(bytes.fromhex(packed), whole=True, most_bytes=MOST_BYTES)


@pytest.mark.parametrize(
    "body",
    [
        b'"SKU-4711"',
        b'"refused"',
        b'"deadbeef"',
        b'"d41d8cd98f00b204e9800998ecf8427e"',
        b'"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"',
        b'"550e8400e29b41d4a716446655440000"',
        b'"20261123172633"',
        b'"The quick brown fox jumps over the lazy dog"',
        b'"internationalization"',
        b'"AAAAAAAAAAAAAAAAAAAAAAAA"',
        b'"[draft] not yet"',
        b'"{name} is missing"',
        b'""',
        b"9007199254740993",
        b'{"data":"eyJhIjoxfQ=="}',
        b'"\\ud800"',
    ],
)
def test_what_only_looks_coded_is_shown_as_it_was_sent(body: bytes) -> None:
    assert decoded(body, coded.AUTOMATIC) is None


def test_readable_text_is_said_and_what_only_begins_like_a_file_is_shown_as_sent() -> None:
    text = decoded(b64(b"a line, and\nanother line"), coded.AUTOMATIC)
    assert text is not None
    assert (text.steps, text.kind) == (("base64", TEXT), TEXT)
    for sign in (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xfd7zXZ\x00", b"BZh"):
        assert decoded(b64(sign + bytes(40)), coded.AUTOMATIC) is None


def test_raw_shows_what_was_sent_and_steps_do_what_they_say() -> None:
    assert decoded(b64(ORDER), reading("raw")) is None
    assert decoded(b64(b"short"), coded.AUTOMATIC) is None
    short = decoded(b64(b"short"), reading("base64"))
    assert short is not None
    assert (short.body, short.steps) == (b"short", ("base64", TEXT))
    inner = zlib.compress(ORDER)[2:-4]
    found = decoded(b64(inner), reading("base64, deflate → json"))
    assert found is not None
    assert (found.body, found.steps) == (ORDER, ("base64", "deflate", "JSON"))
    for codec in ("brotli", "snappy"):
        found = decoded(b64(by_arrow(ORDER, codec)), reading(f"base64 {codec}"))
        assert found is not None
        assert (found.body, found.steps) == (ORDER, ("base64", codec, "JSON"))


@pytest.mark.parametrize(
    ("body", "asked", "fault"),
    [
        (b'"not base64!"', "base64", "not base64: it contains other characters"),
        (b'"abcde"', "base64", "not base64: it ends in the middle of a byte"),
        (b'"abc"', "hex", "not hex: it ends in the middle of a byte"),
        (b64(gzip.compress(ORDER)[:-9]), "base64 gzip", "not gzip: it ends too early"),
        (b64(ORDER), "base64 gzip", "not gzip: incorrect header check"),
        (b64(b"\xc1"), "base64 msgpack", "not msgpack: byte 0xc1 does not begin a value"),
        (b64(b"\xdf\xff\xff\xff\xff"), "base64 msgpack", "not msgpack: it ends too early"),
        (b64(b"text"), "base64 json", "not json: it is not JSON"),
        (b64(by_arrow(ORDER, "zstd")[:-9]), "base64 zstd", "not zstd: Truncated compressed stream"),
        (b64(by_arrow(ORDER, "lz4")[:-9]), "base64 lz4", "not lz4: Truncated compressed stream"),
        (b64(bz2.compress(ORDER)[:-9]), "base64 bzip2", "not bzip2: it ends too early"),
        (b64(lzma.compress(ORDER)[:-9]), "base64 xz", "not xz: it ends too early"),
        (b64(b"text"), "base64 xz", "not xz: Input format not supported by decoder"),
        (b64(by_arrow(ORDER, "snappy")[:-9]), "base64 snappy", "not snappy: Corrupt snappy compressed data"),
        (b64(b"\xff\xff\xff\xff\x0f\x00a"), "base64 snappy", "not snappy: it does not begin with its length"),
        (b'{"a":1}', "base64", "it is not a string"),
    ],
)
def test_what_cannot_be_decoded_says_why_and_is_shown_as_sent(body: bytes, asked: str, fault: str) -> None:
    found = decoded(body, reading(asked))
    assert found is not None
    assert (found.body, found.fault) == (body, fault)


@pytest.mark.parametrize("text", ["bas64", "auto gzip", "raw base64", "base64 base64 base64 base64 gzip"])
def test_a_reading_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not auto, raw|At most 4 steps"):
        reading(text)


BOMB = gzip.compress(b"0" * 20_000_000)
"""20 kB of what would be a thousand times as much."""


@pytest.mark.parametrize(
    "body",
    [
        b64(BOMB),
        b64(gzip.compress(BOMB)),
        b64(b"\xdd\xff\xff\xff\xff" + b"\xc0" * 60_000),
        b64(b"\x91" * 60_000),
        b64(b"\xdd" + struct.pack(">I", 60_000) + b"\x90" * 60_000),
        b64(gzip.compress(b"[" * 1_000_000)),
        sent(b"4" * 4_000_000),
        sent(b"A" * 4_000_000),
        b'"' + b"\\n" * 2_000_000 + b'"',
        b64(gzip.compress(b"") * 9_000),
        b64(zlib.compress(b"") * 23_000),
        b64(b"\x03\x00" * 90_000),
        b64(by_arrow(bytes(200_000_000), "zstd")),
        b64(by_arrow(bytes(20_000_000), "lz4")),
        b64(bz2.compress(bytes(20_000_000))),
        b64(lzma.compress(bytes(20_000_000))),
        b64(by_arrow(b"", "zstd") * 15_000),
        b64(by_arrow(b"", "lz4") * 15_000),
        b64(bz2.compress(b"") * 9_000),
        b64(by_arrow(bytes(4_000_000), "snappy")),
    ],
    ids=[
        *("gzip", "gzip-in-gzip", "array", "deep", "wide", "brackets", "hex", "base64", "escapes"),
        *("empty-gzip", "empty-zlib", "empty-deflate", "zstd", "lz4", "bzip2", "xz"),
        *("empty-zstd", "empty-lz4", "empty-bzip2", "snappy"),
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        *(
            "auto",
            "base64 gzip",
            "base64 gzip gzip",
            "base64 deflate",
            "base64 msgpack",
            "hex",
            "base64 brotli",
        ),
        *("base64 snappy", "base64 float32", "base64 pickle"),
    ],
)
def test_a_bomb_costs_next_to_nothing(body: bytes, asked: str) -> None:
    began = time.process_time()
    found = decoded(body, reading(asked))
    assert time.process_time() - began < 0.05
    assert found is None or found.fault or len(found.body) <= 2 * MOST_BYTES + 100_000


def test_of_many_files_the_first_are_unpacked_and_that_is_said() -> None:
    for files, whole in ((unpacking.MOST_FILES, True), (unpacking.MOST_FILES + 1, False)):
        found = decoded(b64(gzip.compress(b"a line of a log\n") * files), coded.AUTOMATIC)
        assert found is not None
        assert (found.body.count(b"\n"), found.whole) == (unpacking.MOST_FILES, whole)


def test_of_a_wide_message_pack_the_beginning_is_written() -> None:
    text, whole = json_text(b"\xdc\x75\x30" + b"\x01" * 30_000, whole=True, most_bytes=MOST_BYTES)
    assert not whole
    assert text.count("1") < MOST_VALUES


def test_a_filter_looks_at_what_is_shown_and_at_what_was_sent() -> None:
    body = b64(gzip.compress(ORDER))

    def passes(match: str, asked: str) -> bool:
        wanted = entry_test(body=match, reading=reading(asked))
        assert wanted is not None
        return wanted([b"1-0", [b"i", b"a", b"b", body]])

    assert passes(".id = 9007199254740993", "auto")
    assert not passes(".id = 9007199254740992", "auto")
    assert not passes(".id = 9007199254740993", "raw")
    assert passes(body[1:20].decode(), "auto")
