import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.nesting import holds_more, is_deeper, is_wider

strings = st.text(alphabet='[]{}"\\a,', max_size=6)
values = st.recursive(
    st.none() | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=30,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def number(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + sum(map(number, inner))


def commas(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(0, len(inner) - 1) + sum(map(commas, inner))


def texts(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    names = len(value) if isinstance(value, dict) else 0
    return isinstance(value, str) + names + sum(map(texts, inner))


@given(values, st.integers(0, 8))
def test_width_is_that_of_the_decoded_value(value: Any, limit: int) -> None:
    text = json.dumps(value, separators=(",", ":")).encode()
    assert is_wider(text, limit) == (max(commas(value), texts(value)) > limit)


@given(values, st.integers(0, 8))
def test_depth_and_number_are_those_of_the_decoded_value(value: Any, limit: int) -> None:
    text = json.dumps(value).encode()
    assert is_deeper(text, limit) == (depth(value) > limit)
    assert holds_more(text, limit) == (number(value) > limit)


@pytest.mark.parametrize("text", [b"[" * 129, b"[[]," * 64 + b"[" * 65, b'["\\"[",' * 128 + b"[1"])
def test_what_is_malformed_is_measured_too(text: bytes) -> None:
    assert is_deeper(text, 128)


def test_a_string_may_begin_in_one_piece_and_end_in_another() -> None:
    for strings in range(32_760, 32_770):
        text = b"[" + b'"[",' * strings + b"[]]"
        assert [holds_more(text, 1), holds_more(text, 2)] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b"[" + (b"[" * 127 + b"]" * 127 + b",") * 12_000 + b"[]]",
        b"[" * 129 + b'"[[",' * 600_000,
        b"[" * 129 + b'"\\"\\\\[",' * 300_000,
        b'"' + b'\\"[' * 1_000_000,
    ],
    ids=["flat", "towers", "brackets in strings", "escapes", "a string without an end"],
)
def test_three_megabytes_of_anything_are_measured_quickly(text: bytes) -> None:
    began = time.thread_time()
    is_deeper(text, 128)
    assert time.thread_time() - began < 1
