"""The overview, the list of streams, making and deleting one."""

import re

import pytest
from django.test import Client

from streams import store
from streams.log import trim
from streams.models import Stream, Workspace
from tests.dashboard.conftest import MakeStream


def names_in(content: bytes) -> list[str]:
    return re.findall(r'href="/streams/([^/"]+)/" data-row>', content.decode())


def test_with_no_stream_the_overview_shows_how_to_begin(owner: Client) -> None:
    page = owner.get("/").content.decode()
    assert "No streams yet" in page
    assert "curl http://testserver/api/v1/streams/" in page


@pytest.mark.parametrize("path", ["/", "/streams/"])
def test_a_page_without_streams_is_told_of_the_first_one(owner: Client, path: str) -> None:
    page = owner.get(path).content.decode()
    (notice,) = re.findall(r'<p class="notice[^>]*data-field="streams"[^>]*>', page)
    assert 'data-format="differs" data-value="0" hidden' in notice


def test_the_overview_sums_what_is_kept(owner: Client, make_stream: MakeStream, unique: str) -> None:
    make_stream(unique, bodies=[b"1", b"22", b"333"])
    totals = owner.get("/").context["totals"]
    assert (totals.streams, totals.messages, totals.bytes) == (1, 3, 6)


def test_the_list_shows_each_stream(owner: Client, make_stream: MakeStream, unique: str) -> None:
    make_stream(unique, bodies=[b"1"], ttl=604_800, max_messages=2)
    page = owner.get("/streams/").content.decode()
    assert f'data-live="stream:{unique}" data-field="messages" data-format="count">1<' in page
    kept = '<span class="nowrap">7 d</span> · <span class="nowrap">2 messages</span>'
    assert f"<span>{kept}</span> <span><span data-live=" in page
    assert 'data-of-messages="2">50 %</span> used</span>' in page


def test_over_how_long_a_stream_goes_is_not_said_of_an_empty_one(
    owner: Client, make_stream: MakeStream, unique: str
) -> None:
    stream = make_stream(unique, bodies=[b"1"])
    over = re.compile(
        r'<span [^>]*data-field="span_s" data-format="differs" data-value="null"( hidden)?> · over'
    )
    assert over.findall(owner.get(f"/streams/{unique}/").content.decode()) == [""]
    store.log().run(trim.purge(stream.stream_id))
    assert over.findall(owner.get(f"/streams/{unique}/").content.decode()) == [" hidden"]


def test_a_search_finds_a_part_of_a_name(owner: Client, make_stream: MakeStream) -> None:
    for name in ("orders.eu", "orders.us", "payments"):
        make_stream(name)
    assert names_in(owner.get("/streams/?name=orders").content) == ["orders.eu", "orders.us"]


def test_a_search_that_finds_nothing_offers_to_clear_it(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    page = owner.get("/streams/?name=zzz").content.decode()
    assert "No stream matches" in page
    assert "Clear search" in page


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", ["a", "b", "c"]),
        ("-name", ["c", "b", "a"]),
        ("-messages", ["b", "c", "a"]),
        ("bytes", ["a", "c", "b"]),
        ("nonsense", ["a", "b", "c"]),
    ],
)
def test_the_list_sorts_by_its_columns(
    owner: Client, make_stream: MakeStream, sort: str, expected: list[str]
) -> None:
    make_stream("a")
    make_stream("b", bodies=[b"1", b"2"])
    make_stream("c", bodies=[b"1"])
    assert names_in(owner.get(f"/streams/?sort={sort}").content) == expected


def test_htmx_gets_the_table_alone(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    part = owner.get("/streams/", headers={"HX-Request": "true"}).content
    assert names_in(part) == ["orders"]
    assert b"<html" not in part


def test_the_list_has_pages(owner: Client, make_stream: MakeStream) -> None:
    for number in range(52):
        make_stream(f"s{number:02}")
    assert len(names_in(owner.get("/streams/").content)) == 50
    assert names_in(owner.get("/streams/?page=2").content) == ["s50", "s51"]
    assert names_in(owner.get("/streams/?page=99&sort=-messages").content) == ["s50", "s51"]


def test_a_stranger_sees_no_stream_of_ours(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("hush")
    assert b"hush" not in stranger.get("/streams/").content + stranger.get("/").content
    assert stranger.get("/streams/hush/").status_code == 404


def test_a_stream_is_made_with_what_it_keeps(owner: Client) -> None:
    answer = owner.post(
        "/streams/_new/",
        {
            "name": "orders",
            "ttl": "7 d",
            "max_bytes": "10 GiB",
            "max_messages": "",
            "discard": "new",
            "archive": "on",
        },
    )
    assert answer["Location"] == "/streams/orders/"
    stream = Stream.objects.get(name="orders")
    assert (stream.ttl, stream.max_bytes, stream.max_messages, stream.discard) == (
        604_800,
        10 * 2**30,
        None,
        "new",
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "find"),
        ("name", "-x"),
        ("name", "x" * 51),
        ("name", "a\n"),
        ("ttl", "soon"),
        ("max_bytes", "0"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_made(owner: Client, field: str, value: str) -> None:
    answer = owner.post("/streams/_new/", {"name": "orders", "discard": "old", field: value})
    if field == "name" and value == "a\n":
        assert answer.status_code == 302  # a browser's stray line end is stripped
        return
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not Stream.objects.filter(internal=False).exists()


def test_a_name_that_stands_with_other_settings_is_refused_at_its_field(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", ttl=60)
    answer = owner.post("/streams/_new/", {"name": "orders", "discard": "old", "archive": "on"})
    assert "exists with other settings" in str(answer.context["form"].errors["name"])


def test_a_viewer_may_not_make_a_stream(viewer: Client) -> None:
    assert viewer.get("/streams/_new/").status_code == 403
    assert viewer.post("/streams/_new/", {"name": "x", "discard": "old"}).status_code == 403


def test_a_stream_is_deleted_once_its_name_is_typed(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    assert owner.post("/streams/orders/delete/", {"confirm": "order"}).status_code == 422
    assert Stream.objects.filter(name="orders").exists()
    sent = {"confirm": "orders", "seen": "1"}
    assert owner.post("/streams/orders/delete/", sent)["Location"] == "/streams/"
    assert not Stream.objects.filter(name="orders").exists()


def test_a_viewer_may_look_at_the_settings_but_not_delete(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert b"disabled" in viewer.get("/streams/orders/settings/").content
    assert viewer.post("/streams/orders/delete/", {"confirm": "orders"}).status_code == 403
    assert Stream.objects.filter(name="orders").exists()


def test_a_stranger_deletes_nothing_of_ours(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert stranger.post("/streams/orders/delete/", {"confirm": "orders"}).status_code == 404
    assert Stream.objects.filter(name="orders").exists()


def test_the_same_name_in_two_workspaces_is_two_streams(
    owner: Client, stranger: Client, make_stream: MakeStream, elsewhere: Workspace
) -> None:
    make_stream("orders", bodies=[b'"ours"'])
    make_stream("orders", bodies=[b'"theirs"', b"2"], within=elsewhere)
    assert owner.get("/streams/orders/").context["row"].messages == 1
    assert stranger.get("/streams/orders/").context["row"].messages == 2
