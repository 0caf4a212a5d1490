"""Columns of chosen fields: cut out of the bodies' own text, in the address, inert."""

import re

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.browse.chosen_fields import Cell, cell_of, chosen
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/"


def cell(body: str, path: str) -> Cell | None:
    (field,) = chosen(path)
    return cell_of(body.encode(), field)


@pytest.mark.parametrize(
    ("body", "path", "text", "kind"),
    [
        ('{"id": 9007199254740993}', ".id", "9007199254740993", "number"),
        ('{"id": 123456789012345678901234567890}', "id", "123456789012345678901234567890", "number"),
        ('{"a": {"b": 1.50}}', ".a.b", "1.50", "number"),
        ('{"a": 1e400}', "$.a", "1e400", "number"),
        ('{"a": "caf\\u00e9"}', ".a", "café", "string"),
        ('{"a": ""}', ".a", '""', "string"),
        ('{"a": null}', ".a", "null", "literal"),
        ('{"a": {"b":\n [1.0,2]}}', ".a", '{"b": [1.0,2]}', ""),
        ('[{"sku": "x"}, {"sku": "y"}]', ".[0].sku", "x", "string"),
        ('{"items": [{"sku": 10}, {}, {"sku": 2.0}]}', ".items[*].sku", "10, 2.0", ""),
        ('{"a": 1, "a": 2}', ".a", "2", "number"),
        ('{"odd, name": 7}', '["odd, name"]', "7", "number"),
        ('{"a": "\\ud800", "b": 12345678901234567890}', ".b", "12345678901234567890", "number"),
        ('{"a": "\\ud800"}', ".a", "\\ud800", "string"),
        ('{"a": "x\\u202ey"}', ".a", "x\\u202ey", "string"),
        ("7", ".", "7", "number"),
    ],
)
def test_a_cell_is_the_text_of_its_value(body: str, path: str, text: str, kind: str) -> None:
    assert cell(body, path) == Cell(text, kind)


@pytest.mark.parametrize("path", [".b", ".a.b", ".a[0]", ".[0]", ".a[*]"])
def test_where_nothing_stands_there_is_no_cell(path: str) -> None:
    assert cell('{"a": 1}', path) is None


def test_a_long_value_is_cut_and_many_values_are() -> None:
    found = cell('{"a": "%s"}' % ("x" * 5000), ".a")
    assert found
    assert found.text == "x" * 120 + "…"
    assert cell("[1,2,3,4,5,6,7]", ".[*]") == Cell("1, 2, 3, 4, 5…")


def test_a_list_of_fields_has_commas_between() -> None:
    found = chosen('.customer.id, total,.items[0]["a,b"] ,')
    assert [field.steps for field in found] == [("customer", "id"), ("total",), ("items", 0, "a,b")]


@pytest.mark.parametrize("text", [".a = 1", ".a b", "a,b,c,d,e,f,g", '.["a', ".a[x]"])
def test_what_is_no_path_is_refused_in_a_sentence(viewer: Client, make_stream: MakeStream, text: str) -> None:
    make_stream("orders", bodies=[b'{"a": 1}'])
    with pytest.raises(ValueError, match=r"\.$"):
        chosen(text)
    assert viewer.get(PAGE, {"cols": text}).status_code == 422
    assert viewer.get(PAGE + "tail/", {"cols": text}).status_code == 422


def cells_on(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr data-offset.*?</tr>", page, re.DOTALL)
    return [
        [strip_tags(cell).strip() for cell in re.findall(r'<td class="mono chosen">.*?</td>', row)]
        for row in rows
    ]


def test_the_table_has_a_column_for_each(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"n": 9007199254740993, "s": "<b>"}', b'{"s": "y"}'])
    page = viewer.get(PAGE, {"start": "oldest", "cols": ".n,.s", "open": "1"}).content.decode()
    assert cells_on(page) == [["9007199254740993", "&lt;b&gt;"], ["–", "y"]]
    assert '<span class="faint" title="This message has no such field">–</span>' in page
    assert '<bdi class="mono">.n</bdi></th>' in page
    assert 'colspan="7"' in page


def test_a_search_and_a_tail_bring_the_columns_too(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"n": 1}', b'{"n": 2}'])
    part = {"HX-Request": "true"}
    found = viewer.get(PAGE, {"match": ".n = 2", "cols": ".n"}, headers=part).content.decode()
    assert cells_on(found) == [["2"]]
    told = viewer.get(PAGE + "tail/", {"after": "1", "cols": ".n"}, headers=part).content.decode()
    assert cells_on(told) == [["2"]]


def test_pages_around_and_spans_keep_the_columns(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"] * 60)
    page = viewer.get(PAGE, {"cols": ".n"}).content.decode()
    assert re.search(r'href="\?cols=\.n&amp;before=\d+"', page)
    assert re.search(r'<a href="\?cols=\.n&amp;start=time', page)
