"""What comes out of decoding may be nested as deep as it likes: every page, search, tail and export gets past it."""

import base64
import gzip
import json
import time

import pytest
from django.test import Client

from dashboard.browse import coded
from dashboard.browse.chosen_fields import cell_of, chosen
from dashboard.browse.coded import DEEPEST, JSON, TEXT, decoded, reading
from dashboard.browse.filters import entry_test
from dashboard.browse.message_rows import MessageRow
from dashboard.browse.unpacking import MOST_BYTES
from streams.filters.bodies import body_test
from streams.log.entries import parse
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

PARTS = {"HX-Request": "true"}


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def b64(data: bytes) -> bytes:
    return json.dumps(base64.b64encode(data).decode()).encode()


BODIES = {
    "base64": b64(nested(1000)),
    "in-a-string": json.dumps(nested(900).decode()).encode(),
    "gzip": b64(gzip.compress(nested(5000))),
    "cut": b64(gzip.compress(b"[" * 1_000_000)),
    "no-escape": b64(b'a line with "\\ud8" that is no escape'),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_deep_body_breaks_no_page_no_search_no_tail_and_no_export(
    owner: Client, make_stream: MakeStream, body: bytes
) -> None:
    make_stream("orders", bodies=[body, b'{"a": 1}'])
    for query in ("match=.a+%3D+1", "match=.a+~+1", "match=.+~+1", "cols=.,.a.a", "decode=base64+json"):
        page = owner.get(f"/streams/orders/?open=1&{query}")
        part = owner.get(f"/streams/orders/?{query}", headers=PARTS)
        tail = owner.get(f"/streams/orders/tail/?after=0&{query}", headers=PARTS)
        assert (page.status_code, part.status_code, tail.status_code) == (200, 200, 200), query
        assert b'"offset":2' in content(owner.get(f"/streams/orders/export/?{query}"))
    for address in ("messages/1/", "messages/1/?decode=base64+json", "publish/?like=1"):
        assert owner.get(f"/streams/orders/{address}").status_code == 200


def test_json_is_what_is_no_deeper_than_a_body_may_be() -> None:
    for depth, kind in ((DEEPEST, JSON), (DEEPEST + 1, TEXT)):
        found = decoded(b64(nested(depth)), coded.AUTOMATIC)
        assert found is not None
        assert (found.kind, found.body) == (kind, nested(depth))


def test_what_is_too_deep_to_be_read_as_json_says_so() -> None:
    found = decoded(b64(nested(1000)), reading("base64 json"))
    assert found is not None
    assert found.fault == f"not json: it is nested deeper than {DEEPEST}"


def test_a_path_finds_nothing_in_what_is_too_deep_and_text_is_found() -> None:
    for match, passes in ((".a", False), (".a ~ 1", False), ('"a":{"a"', True)):
        wanted = entry_test(body=match)
        assert wanted is not None
        assert wanted([b"1-0", [b"i", b"x", b"b", BODIES["base64"], b"c", b"1"]]) is passes
    assert body_test(".a.a")(nested(DEEPEST))
    assert not body_test(".a.a")(nested(100_000))


def test_what_is_cut_is_laid_out_at_the_cost_of_its_size() -> None:
    row = MessageRow(parse([b"1-1", [b"i", b"x", b"b", BODIES["cut"], b"c", b"1"]]))
    began = time.thread_time()
    assert row.is_readable
    assert len(row.laid_out.html if row.is_json else row.decoded_text) < 10 * MOST_BYTES
    assert time.thread_time() - began < 1


def test_a_cell_of_what_is_no_json_is_empty() -> None:
    (field,) = chosen(".a")
    assert cell_of(b'"\\ud8"', field) is None
