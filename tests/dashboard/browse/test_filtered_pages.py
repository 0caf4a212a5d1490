"""Filters of messages on every page that has them: what passes is the same everywhere, and what is refused is said."""

import json
from html import unescape
from urllib.parse import urlencode

import pytest
from django.test import Client

from streams import store
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import SavedFilter, Stream
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

PARTS = {"HX-Request": "true"}


def test_pages_tails_exports_and_saved_filters_go_by_all_conditions(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream(
        "orders", bodies=[b'{"status": "%s", "n": %d}' % (s, n) for n in (1, 9) for s in (b"paid", b"new")]
    )
    query = {"match": ".status = paid && .n > 5"}
    page = owner.get("/streams/orders/", query)
    assert [row.message.offset for row in page.context["window"].rows] == [3]
    part = owner.get("/streams/orders/tail/", {**query, "after": "0"}, headers=PARTS)
    assert [row.message.offset for row in part.context["rows"]] == [3]
    lines = content(owner.get("/streams/orders/export/", query)).splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [3]
    saved = {"page": "messages", "name": "large", "query": "match=.status+%3D+paid+%26%26+.n+%3E+5"}
    owner.post("/filters/save/", {**saved, "next": "/streams/orders/"})
    assert "match=.status+%3D+paid+%26%26+.n+%3E+5" in owner.get("/streams/orders/").content.decode()


@pytest.mark.parametrize(
    "match", [".status = paid or refused", "paid || new ||", "(paid || new", ".n > 5 &&"]
)
def test_what_is_refused_is_said_at_the_field_on_every_page(
    owner: Client, make_stream: MakeStream, match: str
) -> None:
    make_stream("orders", bodies=[b"1"])
    for page in ("", "tail/"):
        answer = owner.get(f"/streams/orders/{page}", {"match": match})
        assert answer.status_code == 422
        assert answer.context["form"].errors["match"]
    assert owner.get("/streams/orders/export/", {"match": match}).status_code == 400


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    """Eight messages, each with its number of three bits: in the body ``a`` and ``b``, in a header ``c``."""
    stream = make_stream("orders")
    store.log().run(
        append(
            stream.stream_id,
            [
                NewMessage(
                    id=f"m{n}",
                    body=b'{"a": %d, "b": %d, "said": "a || (b)"}' % (n >> 2, n >> 1 & 1),
                    headers=b'{"c":"%d"}' % (n & 1),
                )
                for n in range(8)
            ],
        )
    )
    return stream


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        ({"match": ".a = 1 || .b = 1"}, {2, 3, 4, 5, 6, 7}),
        ({"match": ".a = 1 && .b = 1 || .b = 0"}, {0, 1, 4, 5, 6, 7}),
        ({"match": ".a = 1 && (.b = 1 || .b = 2)"}, {6, 7}),
        ({"match": '"a || (b)" && .a = 0'}, {0, 1, 2, 3}),
        ({"header": "c = 1 || c = 2"}, {1, 3, 5, 7}),
        ({"header": "c = 0 && (other || c)", "match": ".a = 1 || .b = 1"}, {2, 4, 6}),
    ],
)
def test_a_list_a_tail_a_tail_of_several_and_an_export_find_the_same_alternatives(
    viewer: Client, orders: Stream, query: dict[str, str], passes: set[int]
) -> None:
    offsets = {n + 1 for n in passes}
    page = viewer.get("/streams/orders/", query)
    assert {row.message.offset for row in page.context["window"].rows} == offsets
    part = viewer.get("/streams/orders/", query, headers=PARTS)
    assert {row.message.offset for row in part.context["window"].rows} == offsets
    tail = viewer.get("/streams/orders/tail/", {**query, "after": "0"}, headers=PARTS)
    assert {row.message.offset for row in tail.context["rows"]} == offsets
    several = viewer.get("/tail/", {**query, "after:orders": "0"}, headers=PARTS)
    assert {row.message.offset for row in several.context["rows"]} == offsets
    lines = content(viewer.get("/streams/orders/export/", query)).splitlines()
    assert {json.loads(line)["offset"] for line in lines} == offsets


def test_alternatives_are_kept_under_a_name_and_put_on_again_as_they_were_written(
    viewer: Client, orders: Stream
) -> None:
    query = urlencode({"header": "c || other", "match": "(.a = 1 || .b = 1) && .a = 0"})
    viewer.post("/filters/save/", {"page": "messages", "name": "either", "query": query, "next": "/streams/"})
    shown = unescape(viewer.get("/streams/orders/").content.decode())
    assert f'<a class="chip" href="?{query}"' in shown
    page = viewer.get(f"/streams/orders/?{query}")
    assert 'aria-current="true" title="Active; click to remove"' in page.content.decode()
    assert page.context["form"]["match"].value() == "(.a = 1 || .b = 1) && .a = 0"
    assert {row.message.offset for row in page.context["window"].rows} == {3, 4}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"match": ".a = 1 ||"}, "Enter a condition on both sides of ||"),
        ({"header": "(c || other"}, "A ( is not closed"),
    ],
)
def test_what_is_refused_is_not_kept_under_a_name(
    viewer: Client, orders: Stream, given: dict[str, str], says: str
) -> None:
    sent = {"page": "messages", "name": "either", "query": urlencode(given), "next": "/streams/orders/"}
    assert says in unescape(viewer.post("/filters/save/", sent, follow=True).content.decode())
    assert not SavedFilter.objects.exists()


def test_a_refusal_is_said_in_the_language_of_the_page(viewer: Client, orders: Stream) -> None:
    german = {"Accept-Language": "de"}
    page = viewer.get("/streams/orders/", {"match": "(.a = 1 || .b = 1"}, headers=german)
    assert "Eine ( ist nicht geschlossen" in unescape(page.content.decode())
    sent = {"page": "messages", "name": "x", "query": "match=%7C%7C", "next": "/streams/orders/"}
    told = viewer.post("/filters/save/", sent, headers=german, follow=True)
    assert "Auf beiden Seiten von || eine Bedingung angeben" in unescape(told.content.decode())
