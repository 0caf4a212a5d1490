"""Bodies with lone surrogates: taken as they were sent, wherever the text is cut, and in small steps."""

import json
import time
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dataplane import marked
from streams.dataplane.marked import Marked
from streams.dataplane.messages import read_publication
from streams.errors import Refusal

PARTS = [
    rb"\\",
    rb"\ud800",
    rb"\uDFff",
    rb"\ud83d\ude00",
    rb"\"",
    rb"\n",
    rb"\u00e9",
    b"d",
    b"u",
    b"ud800",
    b"x",
]


@pytest.fixture(scope="module", autouse=True)
def _small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marked, "PIECE_BYTES", 16)
        yield


@given(st.lists(st.sampled_from(PARTS), max_size=40))
def test_what_was_sent_is_taken_and_comes_back(parts: list[bytes]) -> None:
    data = b'"' + b"".join(parts) + b'"'
    text = Marked(data)
    msgspec.json.decode(text.data)  # it has no lone surrogate any more
    assert text.restored(text.data) == data
    assert text.value(text.data) == json.loads(data)


@given(st.lists(st.sampled_from([*PARTS, rb"\ud8", rb"\udz", rb"\uD80"]), max_size=40))
def test_what_is_no_json_is_none_wherever_it_is_cut(parts: list[bytes]) -> None:
    data = b'[{"id":"a","body":"' + b"".join(parts) + b'"}]'
    try:
        json.loads(data)
    except ValueError:
        with pytest.raises(Refusal) as refused:
            read_publication(data)
        assert refused.value.code == "invalid_json"
    else:
        (message,) = read_publication(data).messages
        assert message.body == data[18:-2]


@pytest.mark.parametrize("unit", [rb"\\", rb"\ud800", rb"\\\ud800", rb"\ud83d\ude00"])
def test_a_body_of_surrogates_costs_little_and_no_step_is_long(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single step of such a text took five seconds, in which nobody else was served."""
    monkeypatch.setattr(marked, "PIECE_BYTES", 65_536)
    body = b'"' + unit * (1_000_000 // len(unit)) + rb'\udfff"'
    data = b"[" + b",".join([b'{"id":"%d","body":%b}' % (n, body) for n in range(16)]) + b"]"
    pieces = list(marked._pieces(data))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 65_536
    began = time.thread_time()
    assert [message.body for message in read_publication(data).messages] == [body] * 16
    assert time.thread_time() - began < 2.5
