"""A pickle is listed, operation by operation, and never loaded."""

import base64
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.browse import coded
from dashboard.browse.coded import TEXT, decoded, reading
from dashboard.browse.pickles import MOST_OPERATIONS, listing
from dashboard.browse.unpacking import MOST_BYTES


def b64(data: bytes) -> bytes:
    return json.dumps(base64.b64encode(data).decode()).encode()


class Hostile:
    """Makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_a_pickle_would_do_is_listed_and_not_done(tmp_path: Path, protocol: int) -> None:
    folder = tmp_path / "made"
    data = pickle.dumps({"id": 2**63, "deed": Hostile(folder)}, protocol)
    for asked in (coded.AUTOMATIC, reading("base64 pickle")):
        found = decoded(b64(data), asked)
        assert not folder.exists()
    assert found is not None
    assert (found.steps, found.kind, found.whole) == (("base64", "pickle", TEXT), TEXT, True)
    for said in ("9223372036854775808", "mkdir", str(folder), "REDUCE", "STOP"):
        assert said in found.body.decode()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x80\x04K\x01", "pickle exhausted before seeing STOP"),
        (b"K\x01.K", "there is data after its end"),
        (b"\xff.", "at position 0, opcode b'\\xff' unknown"),
        (b"\x8b\xff\xff\xff\x7fab.", "not enough data in stream to read long4"),
        (b"I" + b"9" * 5000 + b"\n.", "Exceeds the limit (4300 digits)"),
        (b"X\x01\x00\x00\x00\xff.", "'utf-8' codec can't decode"),
    ],
)
def test_what_is_no_pickle_says_why(data: bytes, fault: str) -> None:
    found = decoded(b64(data), reading("base64 pickle"))
    assert found is not None
    assert (found.body, found.fault[: len(fault) + 12]) == (b64(data), f"not pickle: {fault}")


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda data: b"(" + data + b"."))
def test_whatever_it_is_it_is_listed_or_refused(data: bytes) -> None:
    for whole in (True, False):
        try:
            text, _ = listing(data, whole=whole, most_bytes=MOST_BYTES)
        except ValueError:
            continue
        assert text.encode()


def test_of_many_operations_the_first_are_listed() -> None:
    began = time.process_time()
    text, whole = listing(pickle.dumps(list(range(50_000))), whole=True, most_bytes=MOST_BYTES)
    assert time.process_time() - began < 0.05
    assert (text.count("\n") + 1, whole) == (MOST_OPERATIONS, False)
