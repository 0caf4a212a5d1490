"""Following several streams at once: which, what has come in each, and for whom."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from dashboard.browse.tails import LEAST_OF_EACH, MOST_STREAMS, ROWS_AT_ONCE
from tests.dashboard.conftest import MakeStream

PART = {"HX-Request": "true"}


def followed(answer: object) -> list[str]:
    return [row.name for row in answer.context["followed"]]  # type: ignore[attr-defined]


def came(answer: object) -> list[tuple[str, int]]:
    rows = answer.context["rows"]  # type: ignore[attr-defined]
    return [(row.stream.name, row.message.offset) for row in rows]


def test_streams_are_chosen_by_name_by_pattern_and_from_the_list(
    viewer: Client, make_stream: MakeStream
) -> None:
    for name in ("orders", "payments-eu", "payments-us", "clicks", "refunds"):
        make_stream(name)
    assert followed(viewer.get("/tail/?streams=orders,+payments-*&stream=clicks")) == [
        *("clicks", "orders", "payments-eu", "payments-us"),
    ]
    assert followed(viewer.get("/tail/")) == []


def test_a_name_that_no_stream_has_is_said(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    page = viewer.get("/tail/?streams=orders+ordres")
    assert followed(page) == ["orders"]
    assert "There is no stream “ordres” here." in page.content.decode()


def test_more_streams_than_a_page_follows_are_counted(viewer: Client, make_stream: MakeStream) -> None:
    names = [f"many-{number:02}" for number in range(MOST_STREAMS + 2)]
    for name in names:
        make_stream(name)
    page = viewer.get("/tail/?streams=many-*")
    assert followed(page) == names[:MOST_STREAMS]
    assert "2 more streams were selected; only the first 20 by name are followed." in page.content.decode()


def test_each_row_says_its_stream_and_the_newest_come_first(viewer: Client, make_stream: MakeStream) -> None:
    for name in ("orders", "clicks"):
        make_stream(name, bodies=[b"1", b"2"])
    part = viewer.get("/tail/?streams=*&after:orders=1&after:clicks=0", headers=PART)
    assert sorted(came(part)) == [("clicks", 1), ("clicks", 2), ("orders", 2)]
    times = [row.message.timestamp_ms for row in part.context["rows"]]
    assert times == sorted(times, reverse=True)
    shown = part.content.decode()
    assert shown.count('<a href="/streams/clicks/">clicks</a>') == 2
    assert 'href="/streams/orders/messages/2/"' in shown


def test_only_the_streams_that_moved_are_asked(viewer: Client, make_stream: MakeStream) -> None:
    for name in ("orders", "clicks"):
        make_stream(name, bodies=[b"1"])
    assert came(viewer.get("/tail/?streams=*&after:orders=0", headers=PART)) == [("orders", 1)]


def test_one_stream_that_rushes_does_not_push_out_the_others(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("rushes", bodies=[b"1"] * 150)
    make_stream("rests", bodies=[b"1"] * LEAST_OF_EACH)
    part = viewer.get("/tail/?after:rushes=0&after:rests=0", headers=PART)
    rows = [name for name, _ in came(part)]
    assert (rows.count("rushes"), rows.count("rests")) == (ROWS_AT_ONCE // 2, LEAST_OF_EACH)
    assert "100 more messages arrived and are not shown" in part.content.decode()


def test_the_filters_are_those_of_one_stream(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"n": 1}', b'{"n": 2}'])
    make_stream("clicks", bodies=[b'{"n": 2}'])
    part = viewer.get("/tail/?match=.n+%3D+2&cols=.n&after:orders=0&after:clicks=0", headers=PART)
    assert sorted(came(part)) == [("clicks", 1), ("orders", 2)]
    assert viewer.get("/tail/?match=.n+%3D&after:orders=0", headers=PART).status_code == 422


def test_nothing_comes_of_the_streams_of_another_workspace(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"secret"])
    part = stranger.get("/tail/?streams=orders&after:orders=0", headers=PART)
    assert came(part) == []
    assert "secret" not in part.content.decode()
    assert followed(stranger.get("/tail/?streams=*&stream=orders")) == []


def test_how_many_rows_stay_is_chosen(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    for page in ("/tail/?streams=orders&", "/streams/orders/tail/?"):
        assert 'data-ring="500"' in viewer.get(page).content.decode()
        assert 'data-ring="2500"' in viewer.get(f"{page}ring=2500").content.decode()
        assert viewer.get(f"{page}ring=7").status_code == 422


def test_the_page_names_the_place_in_each_stream_from_which_it_goes_on(
    viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[b"1", b"2"])
    make_stream("clicks")
    shown = viewer.get("/tail/?streams=*").content.decode()
    assert re.findall(r'data-after="(\d+)" data-as="([^"]+)"', shown) == [
        ("0", "after:clicks"),
        ("2", "after:orders"),
    ]


def test_the_calls_are_one_for_each_stream(viewer: Client, make_stream: MakeStream) -> None:
    for name in ("orders", "clicks"):
        make_stream(name)
    shown = viewer.get("/tail/?streams=*&key=a.*").content.decode()
    assert "/api/v1/streams/clicks/tail?key=a.*" in shown
    assert "/api/v1/streams/orders/tail?key=a.*" in shown


def test_streams_that_are_ticked_in_the_list_are_followed(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert 'formaction="/tail/"' in viewer.get("/streams/").content.decode()
    assert followed(viewer.get("/tail/?stream=orders")) == ["orders"]


def more_of(page: object) -> tuple[str, dict[str, list[str]]]:
    """The address that a page asks for streams that are made meanwhile, with the fields that go with it."""
    shown = page.content.decode()  # type: ignore[attr-defined]
    (address,) = re.findall(r'hx-get="(/tail/_more/[^"]*)"', shown)
    fields = {
        name: re.findall(rf'<input type="hidden" name="{name}" value="([^"]*)">', shown)
        for name in ("known", "more")
    }
    return unescape(address), fields


def again(client: Client, address: str, fields: dict[str, list[str]]) -> Any:
    return client.get(f"{address}&{urlencode(fields, doseq=True)}", headers=PART)


def test_a_stream_that_is_made_later_is_taken_in_with_all_its_messages(
    viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("orders-eu", bodies=[b"1"])
    address, fields = more_of(viewer.get("/tail/?streams=orders-*,fresh&ring=50"))
    assert again(viewer, address, fields).status_code == 204
    for name in ("orders-us", "fresh", "clicks"):
        make_stream(name, bodies=[b"1", b"2"])
    shown = again(viewer, address, fields).content.decode()
    assert re.findall(r'data-after="(\d+)" data-as="([^"]+)"', shown) == [
        ("0", "after:fresh"),
        ("0", "after:orders-us"),
    ]
    said = re.sub(r"<[^>]+>", "", shown)
    assert re.search(r"Also followed, since [:\d]{8}: fresh, orders-us\.", said)
    assert "There is no stream" not in shown
    fields["known"] += ["fresh", "orders-us"]
    assert again(viewer, address, fields).status_code == 204


def test_no_more_are_taken_in_than_a_page_follows(viewer: Client, make_stream: MakeStream) -> None:
    for number in range(MOST_STREAMS - 1):
        make_stream(f"many-{number:02}")
    address, fields = more_of(viewer.get("/tail/?streams=many-*"))
    for name in ("many-a", "many-b", "many-c"):
        make_stream(name)
    shown = again(viewer, address, fields).content.decode()
    assert re.findall(r'data-as="after:([^"]+)"', shown) == ["many-a"]
    assert "2 more streams were selected" in shown
    full = {"known": [*fields["known"], "many-a"], "more": ["2"]}
    assert again(viewer, address, full).status_code == 204, "that is said already"
    make_stream("many-d")
    shown = again(viewer, address, full).content.decode()
    assert "data-as" not in shown
    assert "3 more streams were selected" in shown


def test_a_stream_that_there_is_room_for_later_begins_where_it_is(
    viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("old-a", bodies=[b"1"])
    make_stream("old-b", bodies=[b"1", b"2"])
    address, _ = more_of(viewer.get("/tail/?streams=old-*"))
    shown = again(viewer, address, {"known": ["old-a"]}).content.decode()
    assert re.findall(r'data-after="(\d+)" data-as="([^"]+)"', shown) == [("2", "after:old-b")]


def test_a_page_that_follows_none_yet_begins_anew_when_one_is_made(
    viewer: Client, make_stream: MakeStream
) -> None:
    address, fields = more_of(viewer.get("/tail/?streams=orders-*"))
    assert again(viewer, address, fields).status_code == 204
    make_stream("orders-eu")
    assert again(viewer, address, fields)["HX-Refresh"] == "true"
    assert "tail/_more/" not in viewer.get("/tail/").content.decode(), "nothing was asked for"


def test_streams_of_another_workspace_are_not_taken_in(stranger: Client, make_stream: MakeStream) -> None:
    address, fields = more_of(stranger.get("/tail/?streams=*"))
    make_stream("orders")
    assert again(stranger, address, fields).status_code == 204
