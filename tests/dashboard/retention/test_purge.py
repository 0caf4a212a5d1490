"""Purging a stream or a part of it: what would go is said first, exactly, and no more than that goes."""

import dataclasses
from html import unescape
from typing import Any

import pytest
from django.test import Client

from streams import store
from streams.access import SYSTEM, Actor
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from streams.selectors import EventsWanted, events_found, messages_from, removals_of
from streams.services.groups import group_create, group_seek
from streams.services.undo import removal_undo
from tests.dashboard.conftest import MakeStream, sees_all
from tests.dashboard.forms import sent_back

PAGE = "/streams/orders/purge/"


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    """Ten messages of two bytes; those with even offsets have the key ``a.x``, the others ``b``."""
    made = make_stream("orders")
    more(made, 1, 10)
    return made


def more(stream: Stream, first: int, last: int) -> None:
    batch = [NewMessage(id=f"m{n}", body=b"12", key="b" if n % 2 else "a.x") for n in range(first, last + 1)]
    store.log().run(append(stream.stream_id, batch))


def left(stream: Stream) -> list[int]:
    return [message.offset for message in messages_from(stream, offset=0, limit=100)]


def purged(client: Client, shown: Any, asked: dict[str, str], **typed: str) -> Any:
    return client.post(PAGE, {**asked, **sent_back(shown), **typed})


CHOICES = [
    ({"what": "all"}, [], "undo=true"),
    ({"what": "offset", "at": "4"}, list(range(4, 11)), "offset=4&undo=true"),
    ({"what": "offset", "at": "1,000"}, [], "offset=11&undo=true"),
    ({"what": "time", "at": "0 "}, list(range(1, 11)), ""),
    ({"what": "time", "at": "2100-01-01"}, [], "offset=11&undo=true"),
    ({"what": "newest", "at": "3"}, [8, 9, 10], "keep=3&undo=true"),
    ({"what": "key", "at": "b"}, [2, 4, 6, 8, 10], "key=b&undo=true"),
    ({"what": "key", "at": "a.*"}, [1, 3, 5, 7, 9], "key=a.*&undo=true"),
]


@pytest.mark.parametrize(("asked", "stays", "call"), CHOICES, ids=str)
def test_what_is_chosen_goes_as_it_was_shown_and_comes_back_as_it_was(
    owner: Client, stream: Stream, asked: dict[str, str], stays: list[int], call: str
) -> None:
    gone = 10 - len(stays)
    shown = owner.get(PAGE, asked)
    text = shown.content.decode()
    assert owner.get(PAGE, asked, headers={"HX-Request": "true"}).context["effect"].below
    assert left(stream) == list(range(1, 11)), "looking changes nothing"
    if not gone:
        assert "No message is removed." in text
        return
    assert f"This removes {gone} messages ({2 * gone} B), read or unread." in text
    preview, purge = (f"orders/{path}?{call}" for path in ("purge/preview", "messages"))
    assert f"curl -X POST 'http://testserver/api/v1/streams/{preview}'" in unescape(text)
    assert f"curl -X DELETE 'http://testserver/api/v1/streams/{purge}'" in unescape(text)
    more(stream, 11, 12)
    assert purged(owner, shown, asked).status_code == 302
    assert left(stream) == [*stays, 11, 12], "nothing goes that came later"
    (event,) = events_found(sees_all(stream.workspace), EventsWanted(), limit=1)
    assert (event.kind, (event.after or {})["messages"]) == ("stream.purged", gone)
    (removal,) = removals_of(stream)
    assert f"{gone} messages" in owner.get("/streams/orders/").content.decode()
    owner.post(f"/streams/orders/removals/{removal.number}/undo/")
    assert left(stream) == list(range(1, 13))


def test_what_is_typed_stands_in_the_address_and_stays_there_where_it_is_asked_again(
    owner: Client, make_stream: MakeStream
) -> None:
    more(make_stream("orders", labels={"env": "production"}), 1, 10)
    asked = {"what": "newest", "at": "9"}
    part = owner.get(PAGE, asked, headers={"HX-Request": "true"})
    assert part["HX-Replace-Url"] == f"{PAGE}?what=newest&at=9"
    answer = owner.post(part["HX-Replace-Url"], {**asked, **sent_back(part), "confirm": "order"})
    for shown in (part, answer):
        assert 'action="/streams/orders/purge/?what=newest&amp;at=9"' in shown.content.decode()
    assert "HX-Replace-Url" not in owner.get(PAGE, asked)


def test_which_groups_lose_what_they_have_not_read_is_said_and_asked_again_where_it_is_more(
    owner: Client, stream: Stream
) -> None:
    for name, keys in (("billing", ["a.*"]), ("ledger", []), ("other", ["c"])):
        group_create(stream, name=name, settings={"filter_keys": keys}, actor=SYSTEM)
    taken = store.log().run(groups.fetch(stream.stream_id, "ledger", limit=6)).deliveries
    store.log().run(groups.ack(stream.stream_id, "ledger", "leases", [each.lease for each in taken]))
    losing = {
        "offset": ["4:billing", "2:ledger"],
        "key": ["5:billing", "2:ledger"],
    }
    for what, at in (("offset", "9"), ("key", "a.x")):
        assert sent_back(owner.get(PAGE, {"what": what, "at": at}))["losing"] == losing[what]
    asked = {"what": "key", "at": "a.x"}
    shown = owner.get(PAGE, asked)
    assert "Group ledger loses 2 unread messages." in shown.content.decode()
    group_seek(stream.groups.get(name="ledger"), next_offset=1, actor=SYSTEM)
    again = purged(owner, shown, asked)
    assert again.status_code == 409
    assert "Nothing was purged: more would be removed than previewed." in again.content.decode()
    assert "Group ledger loses 5 unread messages." in again.content.decode()
    assert len(left(stream)) == 10
    assert purged(owner, again, asked).status_code == 302
    assert left(stream) == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("asked", [{"what": "all"}, {"what": "key", "at": "b"}], ids=str)
def test_what_came_back_meanwhile_is_asked_again(
    owner: Client, stream: Stream, asked: dict[str, str]
) -> None:
    purged(owner, owner.get(PAGE, {"what": "offset", "at": "6"}), {"what": "offset", "at": "6"})
    shown = owner.get(PAGE, asked)
    removal_undo(stream, 1, actor=Actor("ann"))
    again = purged(owner, shown, asked)
    assert (again.status_code, len(left(stream))) == (409, 10)
    assert purged(owner, again, asked).status_code == 302


def test_what_was_never_shown_does_not_go(owner: Client, stream: Stream) -> None:
    for sent in ({}, {"seen_messages": "10", "seen_most": "10"}, {"seen_below": "11"}):
        assert owner.post(PAGE, {"what": "all", **sent}).status_code == 409
    assert len(left(stream)) == 10


def test_a_part_of_a_production_stream_goes_only_for_its_name(owner: Client, make_stream: MakeStream) -> None:
    stream, asked = make_stream("orders", labels={"env": "production"}), {"what": "newest", "at": "9"}
    more(stream, 1, 10)
    shown = owner.get(PAGE, asked)
    for typed in ("", "order"):
        answer = purged(owner, shown, asked, confirm=typed)
        assert answer.status_code == 422
        assert "Type orders to confirm" in answer.content.decode()
    assert len(left(stream)) == 10
    assert purged(owner, answer, asked, confirm="orders").status_code == 302
    assert left(stream) == list(range(2, 11))


def test_what_cannot_be_undone_and_is_much_goes_only_for_the_name(
    owner: Client, make_stream: MakeStream, settings: Any
) -> None:
    more(make_stream("orders"), 1, 1000)
    asked = {"what": "key", "at": ">"}
    assert "They can be restored for" in owner.get(PAGE, asked).content.decode()
    settings.ENV = dataclasses.replace(settings.ENV, undo_s=0)
    shown = owner.get(PAGE, asked)
    assert "It cannot be undone." in shown.content.decode()
    assert "undo=true" not in shown.content.decode(), "the call beside it would be refused"
    message = owner.get("/streams/orders/messages/3/delete/").content.decode()
    assert ("messages/3" in message, "undo=true" in message) == (True, False)
    assert purged(owner, shown, asked).status_code == 422
    assert purged(owner, shown, asked, confirm="orders").status_code == 302
    stream = Stream.objects.get(name="orders")
    assert (left(stream), removals_of(stream)) == ([], [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"what": "offset", "at": "soon"},
        {"what": "newest", "at": "-1"},
        {"what": "time", "at": "soon"},
        {"what": "key", "at": ""},
        {"what": "key", "at": "a..b"},
        {"what": "all", "at": "7"},
        {"what": "some", "at": "7"},
    ],
    ids=str,
)
def test_what_cannot_be_read_purges_nothing_and_is_no_call(
    owner: Client, stream: Stream, wrong: dict[str, str]
) -> None:
    answer = owner.get(PAGE, wrong)
    assert answer.status_code == 422
    assert "notice bad" in answer.content.decode()
    assert "DELETE" not in answer.content.decode()
    assert "DELETE" not in owner.get(PAGE, wrong, headers={"HX-Request": "true"}).content.decode()
    assert owner.post(PAGE, {**wrong, "seen_below": "99", "seen_most": "99"}).status_code == 422
    assert len(left(stream)) == 10


def test_a_stream_that_denies_it_keeps_everything(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", deny_purge=True)
    more(stream, 1, 2)
    for asked in ({"what": "all"}, {"what": "key", "at": "b"}):
        shown = owner.get(PAGE, asked)
        assert "Purging this stream is denied." in shown.content.decode()
        answer = purged(owner, shown, asked)
        assert answer.status_code == 422
        assert "has deny_purge set" in answer.content.decode()
    assert len(left(stream)) == 2
