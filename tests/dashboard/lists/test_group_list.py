"""The list of a stream's groups: in pages, narrowed, ordered."""

import re

import pytest
from django.test import Client

from dashboard.lists.group_list import PAGE_SIZE
from tests.costs import cost_of
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import make_group
from tests.dashboard.verdicts import judged


def test_groups_come_in_pages_in_the_order_and_by_the_name_that_is_asked_for(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    for number in range(PAGE_SIZE + 2):
        make_group(stream, f"g{number:02}")
    judged(stream, "g30", "stopped", lag_ms=5_000)
    judged(stream, "g40", "slow", lag_ms=9_000)

    def shown(query: str) -> list[str]:
        page = viewer.get(f"/streams/orders/groups/?{query}").content.decode()
        return re.findall(r'id="group-(g\d+)"', page)

    assert shown("") == [f"g{number:02}" for number in range(PAGE_SIZE)]
    assert shown("page=2") == shown("page=99") == ["g50", "g51"]
    assert shown("sort=-status")[:2] == ["g30", "g40"]
    assert shown("sort=-time")[:2] == ["g40", "g30"]
    assert shown("group=4&sort=-name") == [
        "g49",
        "g48",
        "g47",
        "g46",
        "g45",
        "g44",
        "g43",
        "g42",
        "g41",
        "g40",
        "g34",
        "g24",
        "g14",
        "g04",
    ]
    assert "No group matches" in viewer.get("/streams/orders/groups/?group=no-such").content.decode()


def rows(page: str) -> list[tuple[str, str]]:
    return re.findall(r'data-row href="/streams/([^/]+)/groups/([^/]+)/"', page)


def test_groups_are_sorted_by_lag_by_what_is_in_flight_and_by_dead_letters(
    viewer: Client, make_stream: MakeStream
) -> None:
    orders = make_stream("orders")
    for name, lag, pending, dead in (("a", 3, 0, 1), ("b", 1, 5, 0), ("c", 2, 1, 9)):
        make_group(orders, name)
        judged(orders, name, "ok", lag=lag, pending=pending, dead=dead)

    def shown(sort: str) -> str:
        return "".join(name for _, name in rows(viewer.get(f"/groups/?sort={sort}").content.decode()))

    assert [shown(sort) for sort in ("-lag", "lag", "-pending", "-dead", "dead")] == [
        "acb",
        "bca",
        "bca",
        "cab",
        "bac",
    ]


def test_the_groups_of_all_streams_stand_on_one_page(
    viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    orders, mail = make_stream("orders"), make_stream("mail")
    for stream, name in ((orders, "billing"), (orders, "search"), (mail, "billing")):
        make_group(stream, name)
    judged(orders, "billing", "stopped", lag_ms=5_000)
    judged(mail, "billing", "slow", lag_ms=9_000)
    judged(orders, "search", "ok")

    def shown(query: str) -> list[tuple[str, str]]:
        return rows(viewer.get(f"/groups/?{query}").content.decode())

    assert shown("") == [("mail", "billing"), ("orders", "billing"), ("orders", "search")]
    assert shown("sort=-status") == [("orders", "billing"), ("mail", "billing"), ("orders", "search")]
    assert shown("sort=-time")[0] == ("mail", "billing")
    assert shown("status=stopped") == [("orders", "billing")]
    assert shown("status=slow&group=search") == []
    assert shown("group=sea") == [("orders", "search")]
    assert rows(stranger.get("/groups/").content.decode()) == []
    part = viewer.get("/groups/", headers={"HX-Request": "true"})
    assert "HX-Request" in part["Vary"]
    assert len(rows(part.content.decode())) == 3
    for place in ("group-totals", "group-counts"):  # what stands beside the table moves with it
        assert f'id="{place}" hx-swap-oob="true"' in part.content.decode()
    assert b"<html" not in part.content


def test_a_count_on_the_overview_leads_to_the_groups_that_it_counts(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    for name in ("a", "b"):
        make_group(stream, name)
    judged(stream, "a", "catching up")
    way = '/groups/?status=catching%20up&amp;sort=-status"><strong>1</strong> catching up'
    assert way in viewer.get("/").content.decode()
    assert rows(viewer.get("/groups/?status=catching%20up").content.decode()) == [("orders", "a")]


def test_without_a_group_the_page_says_how_to_begin_and_without_a_hit_how_to_clear(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    assert "No groups yet" in viewer.get("/groups/").content.decode()
    make_group(stream, "billing")
    assert "Clear filters" in viewer.get("/groups/?group=nothing").content.decode()


@pytest.mark.long
def test_only_the_groups_on_the_page_are_looked_at_closely(viewer: Client, make_stream: MakeStream) -> None:
    streams = [make_stream(f"s{number}") for number in range(3)]
    for number in range(2 * PAGE_SIZE):
        make_group(streams[number % 3], f"g{number:03}")
    few = cost_of(lambda: viewer.get("/groups/?sort=-status"))
    for number in range(2 * PAGE_SIZE, 3 * PAGE_SIZE):
        make_group(streams[number % 3], f"g{number:03}")
    many = cost_of(lambda: viewer.get("/groups/?sort=-status"))
    assert (many.statements, many.trips) == (few.statements, few.trips)
    assert (
        many.commands - few.commands <= 2 * PAGE_SIZE
    )  # one plain read each, for the order and for the counts


def test_the_totals_of_all_groups_stand_above_them(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    for name, lag_ms in (("billing", 125_000), ("mail", 5_000)):
        make_group(stream, name)
        judged(stream, name, "slow", lag_ms=lag_ms, lag=1_100, pending=30, dead=2)
    make_group(stream, "unseen")
    page = viewer.get("/groups/").content.decode()
    (strip,) = re.findall(r'<dl class="panel figures strip".*?</dl>', page, re.DOTALL)
    assert re.findall(r'<dd class="figure">(.*?)</dd>', strip) == ["2,200", "2 min 5 s", "60", "4"]


def test_the_list_of_groups_is_exported_as_it_is_narrowed_and_ordered(
    viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    for name, lag_ms in (("billing", 125_000), ("mail", 5_000)):
        make_group(stream, name)
        judged(stream, name, "slow", lag_ms=lag_ms, lag=1_100, pending=30, dead=2)
    make_group(stream, "unseen")
    answer = viewer.get("/groups/_export/?sort=-time")
    head, *lines = answer.content.decode().splitlines()
    assert head == "stream,group,status,reason,lag,lag_seconds,in_flight,dead_letters,done_in_seconds"
    assert [line.split(",")[:3] for line in lines] == [
        ["orders", "billing", "slow"],
        ["orders", "mail", "slow"],
        ["orders", "unseen", "unknown"],
    ]
    assert lines[0].endswith("1100,125.0,30,2,")
    assert lines[2].endswith(",,,,,")
    assert answer["Content-Disposition"] == 'attachment; filename="groups.csv"'
    narrowed = viewer.get("/groups/_export/?status=unknown").content.decode().splitlines()
    assert [line.split(",")[1] for line in narrowed[1:]] == ["unseen"]
    assert len(stranger.get("/groups/_export/").content.decode().splitlines()) == 1


def test_the_sums_of_groups_of_which_nothing_is_known_are_unknown_never_nought(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    make_group(stream, "unseen")

    def sums() -> list[str]:
        return re.findall(r'<dd class="figure">(.*?)</dd>', viewer.get("/groups/").content.decode())

    assert sums() == ["–"] * 4
    make_group(stream, "seen")
    judged(stream, "seen", "slow", lag_ms=9_000)
    assert sums()[1] == "9 s"
    assert "–" not in sums()
