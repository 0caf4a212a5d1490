"""Filters with names on their pages: kept, put on and off, deleted, for oneself and for everybody."""

from html import unescape

import pytest
from django.test import Client

from dashboard.templatetags.saved_filters import saved_filters
from streams.models import SavedFilter
from tests.dashboard.conftest import MakeStream

PAGES = [
    ("messages", "/streams/orders/", "key=orders.%2A&match=refused"),
    ("streams", "/streams/", "name=ord&label=env%3Aproduction"),
    ("groups", "/groups/", "group=bill&sort=-lag"),
    ("events", "/events/", "kind=stream.&stream=orders"),
]


def keep(client: Client, page: str, name: str, query: str, **more: str) -> None:
    sent = {"page": page, "name": name, "query": query, "next": "/streams/?name=ord", **more}
    answer = client.post("/filters/save/", sent)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/streams/?name=ord")


def chips(answer: object) -> dict[str, tuple[bool, str]]:
    """The chips of a page: whether they are on, and where they lead."""
    found = saved_filters({"request": answer.wsgi_request}, "streams")  # type: ignore[attr-defined]
    assert found is not None
    return {chip.saved.name: (chip.is_on, chip.address) for chip in found.chips}


@pytest.mark.parametrize(("page", "path", "query"), PAGES)
def test_each_list_keeps_its_filters_and_offers_them(
    viewer: Client, make_stream: MakeStream, page: str, path: str, query: str
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    stream.groups.create(name="billing")
    shown = unescape(viewer.get(f"{path}?{query}").content.decode())
    assert f'name="query" value="{query}"' in shown
    keep(viewer, page, "mine", query)
    shown = unescape(viewer.get(path).content.decode())
    assert f'<a class="chip" href="?{query}"' in shown
    shown = viewer.get(f"{path}?{query}").content.decode()
    assert 'aria-current="true" title="Active; click to remove"' in shown


def test_chips_add_to_each_other_and_are_taken_off_alone(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    keep(owner, "streams", "eu", "label=region:eu")
    keep(owner, "streams", "orders", "name=ord")
    assert chips(owner.get("/streams/?name=ord&page=3&size=25")) == {
        "eu": (False, "?name=ord&size=25&label=region%3Aeu"),
        "orders": (True, "?size=25"),
    }


def test_ones_own_are_seen_by_nobody_else_and_shared_ones_by_all(
    owner: Client, viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    keep(viewer, "streams", "mine", "name=a")
    keep(owner, "streams", "ours", "name=b", shared="1")
    seen = [set(chips(each.get("/streams/"))) for each in (viewer, owner, stranger)]
    assert seen == [{"mine", "ours"}, {"ours"}, set()]
    mine = SavedFilter.objects.get(name="mine").pk
    for other in (owner, stranger):
        assert other.post(f"/filters/{mine}/delete/").status_code == 404
    assert viewer.post(f"/filters/{mine}/delete/", {"next": "/streams/"}).status_code == 302
    assert set(chips(viewer.get("/streams/"))) == {"ours"}


def test_a_viewer_neither_shares_filters_nor_deletes_shared_ones(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    keep(owner, "streams", "ours", "name=b", shared="1")
    ours = SavedFilter.objects.get().pk
    sent = {"page": "streams", "name": "x", "query": "name=a", "shared": "1"}
    assert viewer.post("/filters/save/", sent).status_code == 403
    assert viewer.post(f"/filters/{ours}/delete/").status_code == 403
    assert SavedFilter.objects.count() == 1
    shown = viewer.get("/streams/?name=b").content.decode()
    assert 'name="shared" value="1" disabled' in shown
    assert 'disabled title="This needs the role operator.">Delete' in shown


def test_what_cannot_be_kept_is_said_on_the_page(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    for sent in ({"name": ""}, {"page": "tokens"}, {"query": "x=1"}, {"name": "a\u202eb"}):
        given = {"page": "streams", "name": "n", "query": "name=a", "next": "/streams/", **sent}
        told = viewer.post("/filters/save/", given, follow=True).content.decode()
        assert "Expected" in told or "There is no filter to save." in told
    assert not SavedFilter.objects.exists()


def test_a_search_that_is_typed_can_be_kept_as_it_stands(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    part = viewer.get("/streams/?name=ord", headers={"HX-Request": "true"}).content.decode()
    assert 'name="query" value="name=ord"' in part
