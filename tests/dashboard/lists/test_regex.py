"""Lists searched by a regular expression instead of a part of the name."""

from html import unescape

import pytest
from django.test import Client

from streams.access import SYSTEM
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream


def streams(client: Client, query: str) -> list[str]:
    return [row.name for row in client.get(f"/streams/?{query}").context["page"].rows]


def groups(client: Client, address: str) -> list[str]:
    return [row.group.name for row in client.get(address).context["page"].rows]


def test_streams_are_found_by_an_expression_in_every_order(viewer: Client, make_stream: MakeStream) -> None:
    for name in ("orders-eu", "orders-us", "orders.old", "clicks"):
        make_stream(name)
    for sort in ("name", "messages", "rate", "status", "created", "keeps"):
        found = streams(viewer, f"name=^orders-(eu|us)$&regex=1&sort={sort}")
        assert sorted(found) == ["orders-eu", "orders-us"], sort
    assert streams(viewer, "name=s.o") == ["orders.old"]
    assert streams(viewer, "name=s.[eu]&regex=1") == ["orders-eu", "orders-us"]
    assert len(streams(viewer, "regex=1")) == 4


def test_what_is_searched_is_exported(viewer: Client, make_stream: MakeStream) -> None:
    for name in ("orders-eu", "clicks"):
        make_stream(name)
    told = b"".join(viewer.get("/streams/_export/?name=^o&regex=1")).decode()
    assert "orders-eu" in told
    assert "clicks" not in told


def test_groups_are_found_by_an_expression(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    for name in ("billing", "billing-2", "shipping"):
        group_create(stream, name=name, settings={}, actor=SYSTEM)
    for address in ("/groups/?", "/streams/orders/groups/?"):
        for sort in ("name", "-status", "lag"):
            found = groups(viewer, f"{address}group=ing$&regex=1&sort={sort}")
            assert sorted(found) == ["billing", "shipping"], (address, sort)
        assert groups(viewer, f"{address}group=ing$") == []


def test_an_expression_that_cannot_be_read_is_said_in_place_of_rows(
    viewer: Client, make_stream: MakeStream
) -> None:
    group_create(make_stream("orders"), name="billing", settings={}, actor=SYSTEM)
    for address in ("/streams/?name=(&", "/groups/?group=(&", "/streams/orders/groups/?group=(&"):
        answer = viewer.get(f"{address}regex=1")
        assert answer.status_code == 200
        assert answer.context["page"].rows == []
        page = unescape(answer.content.decode())
        assert page.count("This is not a regular expression: missing )") == 1
        assert "No name matches" not in page
        assert "matches</h2>" not in page, "nobody looked"


@pytest.mark.parametrize("said", ["1", "on", "true", "True"])
def test_an_address_says_as_a_form_does_that_it_is_an_expression(
    viewer: Client, make_stream: MakeStream, said: str
) -> None:
    group_create(make_stream("orders"), name="billing", settings={}, actor=SYSTEM)
    assert streams(viewer, f"name=^o&regex={said}") == ["orders"]
    assert groups(viewer, f"/groups/?group=^b&regex={said}") == ["billing"]


@pytest.mark.parametrize("said", ["", "0", "off", "false"])
def test_a_switch_that_is_off_is_off(viewer: Client, make_stream: MakeStream, said: str) -> None:
    make_stream("orders")
    assert streams(viewer, f"name=^o&regex={said}") == []


def test_streams_of_others_are_not_matched(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert streams(stranger, "name=.*&regex=1") == []


def test_the_call_of_the_page_looks_for_the_same(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert "name_regex=%5Eo" in unescape(viewer.get("/streams/?name=^o&regex=1").content.decode())
