"""Vectors of numbers with a point are read as arrays, with as few digits as say which numbers they are."""

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.browse.coded import JSON, decoded, reading
from dashboard.browse.vectors import DOUBLE, FLOAT, MOST_NUMBERS, json_text


def b64(data: bytes) -> bytes:
    return json.dumps(base64.b64encode(data).decode()).encode()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_every_number_of_a_vector_is_shown(numbers: list[float]) -> None:
    for form, kind in ((FLOAT, "f"), (DOUBLE, "d")):
        data = struct.pack(f"<{len(numbers)}{kind}", *numbers)
        text, whole = json_text(data, form, whole=True)
        assert whole
        assert struct.pack(f"<{len(numbers)}{kind}", *json.loads(text)) == data


def test_a_vector_is_json_in_which_paths_find_numbers() -> None:
    for asked, form in (("float32", "<4f"), ("float64", "<4d")):
        found = decoded(
            b64(struct.pack(form, 0.1, -1, float("nan"), float("-inf"))), reading(f"base64 {asked}")
        )
        assert found is not None
        assert (found.body, found.kind, found.whole) == (b'[0.1,-1.0,"NaN","-Infinity"]', JSON, True)


@pytest.mark.parametrize(
    ("data", "fault"), [(b"", "it is empty"), (b"abcde", "it ends in the middle of a number")]
)
def test_what_is_no_vector_says_why(data: bytes, fault: str) -> None:
    for form in (FLOAT, DOUBLE):
        with pytest.raises(ValueError, match=fault):
            json_text(data, form, whole=True)


def test_of_a_long_vector_the_beginning_is_shown() -> None:
    text, whole = json_text(bytes(4 * MOST_NUMBERS + 4), FLOAT, whole=True)
    assert (len(json.loads(text)), whole) == (MOST_NUMBERS, False)
