"""A body as a tree that folds."""

import json
import re
import time
from urllib.parse import parse_qs

import pytest

from dashboard.browse.trees import tree
from streams.filters.bodies import body_test


def shown(body: bytes) -> str:
    return str(tree(body, address="/streams/orders/").html)


def texts(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


def test_numbers_keep_every_digit_and_names_that_stand_twice_both_stand() -> None:
    html = shown(b'{"a": 123456789012345678901234567890, "a": 1.0, "b": 1e400}')
    assert re.findall(r'json-number">([^<]*)', html) == [
        "123456789012345678901234567890",
        "1.0",
        "1e400",
    ]


def test_objects_and_arrays_fold_and_say_how_many_values_they_have() -> None:
    html = shown(b'{"items": [1, 2, 3], "none": {}, "empty": []}')
    assert html.count("<details") == 2
    assert "{3}" in html
    assert "[3]" in html
    assert "none: {}" in texts(html)


@pytest.mark.parametrize("body", [b"5", b'"a"', b"null", b"true", b"[]", b"{}", b'{"":{"":0}}'])
def test_any_json_value_is_a_whole_tree(body: bytes) -> None:
    assert tree(body, address="/").complete


def test_every_value_links_to_a_filter_that_its_message_passes() -> None:
    body = '{"id": 9007199254740993, "odd name": {"a.b": [null, {"x": "é\\"=<"}]}, "n": -1.50}'.encode()
    found = re.findall(r'href="/streams/orders/\?([^"]*)"', shown(body))
    assert len(found) == 4
    for query in found:
        (wanted,) = parse_qs(query.replace("&amp;", "&"))["match"]
        assert body_test(wanted)(body), wanted


def test_markup_in_names_and_values_is_text() -> None:
    html = shown(json.dumps({"<script>": "<img src=x>", "\u202e": '"><b>'}, ensure_ascii=False).encode())
    assert re.findall(r"<(?!/?(?:details|summary|div|span|a)[ >])", html) == []
    assert "\u202e" not in html


@pytest.mark.parametrize(
    "body",
    [
        json.dumps([{"n": n} for n in range(100_000)]).encode(),
        b'{"x": "' + b"y" * 1_000_000 + b'"}',
        b"[" * 60_000 + b"]" * 60_000,
        b'"' + b'\\"' * 500_000 + b'"',
    ],
    ids=["long", "wide", "deep", "quotes"],
)
def test_a_megabyte_is_cut_short_at_once(body: bytes) -> None:
    began = time.thread_time()
    cut = tree(body, address="/")
    assert time.thread_time() - began < 1
    assert not cut.complete
    assert len(cut.html) < 1_000_000
