"""Everything that matches, as a file."""

import asyncio
import csv
import io
import json

import pytest
from django.http import StreamingHttpResponse
from django.test import Client

from dashboard import exports
from streams import store
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from tests.dashboard.conftest import MakeStream


def content(answer: object) -> bytes:
    assert isinstance(answer, StreamingHttpResponse)

    async def collected() -> bytes:
        return b"".join([part async for part in answer])

    return asyncio.run(collected())


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders")
    messages = [
        NewMessage(id="a", key="eu", body=b'{"n": 9007199254740993,\r\n "f": 1.0}', headers=b'{"t": "1"}'),
        NewMessage(id="=cmd|' /C calc'!A0", key="@SUM", body=b"-5"),
        NewMessage(id="c", body='"=1+1 é \\" , "'.encode()),
    ]
    store.log().run(append(stream.stream_id, messages))
    return stream


def test_ndjson_is_the_messages_as_the_api_says_them_one_a_line(viewer: Client, orders: Stream) -> None:
    answer = viewer.get("/streams/orders/export/?format=ndjson")
    lines = content(answer).decode().splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [1, 2, 3]
    assert '"n": 9007199254740993,' in lines[0]
    assert '"f": 1.0' in lines[0]
    assert answer["Content-Disposition"] == 'attachment; filename="orders-1-3.ndjson"'


def test_csv_comes_back_from_a_csv_reader_and_holds_no_formula(viewer: Client, orders: Stream) -> None:
    answer = viewer.get("/streams/orders/export/?format=csv")
    head, first, second, third = csv.reader(io.StringIO(content(answer).decode(), newline=""))
    assert tuple(head) == exports.CSV_COLUMNS
    assert first[2:] == ["a", "eu", '{"t": "1"}', '{"n": 9007199254740993,\r\n "f": 1.0}']
    assert second[2:] == ["'=cmd|' /C calc'!A0", "'@SUM", "", "-5"]
    assert third[5] == '"=1+1 é \\" , "'


@pytest.mark.parametrize("text", ["=1", "+1+1", "-1+1", "@x", "\t=1", "\r=1", "+", "-", " =1", "\uff1d1"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_text(text: str) -> None:
    assert exports.cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("x;=1+1;", "x;'=1+1;"),
        ('k; =HYPERLINK("x")', 'k;\' =HYPERLINK("x")'),
        ("a\t@b", "a\t'@b"),
        ("=1;-5;+x", "'=1;-5;'+x"),
    ],
)
def test_behind_what_others_separate_fields_by_it_is_made_text_too(text: str, made: str) -> None:
    assert exports.cell(text) == made


@pytest.mark.parametrize("text", ["", "x=1", "-1.5e3", "+7", "2026-11-21", "a;b=1", "1;-2;3"])
def test_any_other_cell_stays_as_it_is(text: str) -> None:
    assert exports.cell(text) == text


def test_an_export_holds_what_matches_over_many_pages(
    viewer: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PAGE", 7)
    make_stream("orders", bodies=[b"%d" % n for n in range(1, 101)])
    lines = (content(viewer.get("/streams/orders/export/?match=.+%3E%3D+50&start=offset&at=40"))).splitlines()
    assert [json.loads(line)["offset"] for line in lines] == list(range(50, 101))


def test_what_is_published_while_it_is_written_is_left_out(viewer: Client, orders: Stream) -> None:
    answer = viewer.get("/streams/orders/export/")
    store.log().run(append(orders.stream_id, [NewMessage(id="late", body=b"1")]))
    assert len(content(answer).splitlines()) == 3


def test_an_export_of_nothing_is_an_empty_file(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert content(viewer.get("/streams/orders/export/")) == b""


async def test_a_page_is_read_only_when_the_last_was_taken(
    orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PAGE", 1)
    written = exports.written(orders, exports.FORMATS["ndjson"], start=1, stop=4, wanted=None)
    assert await anext(written) == b""
    assert json.loads(await anext(written))["offset"] == 1
    await written.aclose()  # type: ignore[attr-defined]
    assert [part async for part in written] == []


@pytest.mark.parametrize("query", ["format=xlsx", "match=.a+%3D", "start=offset&at=x"])
def test_an_export_that_cannot_be_made_is_said(viewer: Client, orders: Stream, query: str) -> None:
    answer = viewer.get(f"/streams/orders/export/?{query}")
    assert answer.status_code == 400


def test_an_export_of_another_workspace_is_404(stranger: Client, orders: Stream) -> None:
    assert stranger.get("/streams/orders/export/").status_code == 404
