"""A page that is open still when another stream was made under the name of its own: its forms leave that one alone."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from streams import store
from streams.access import SYSTEM
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Stream
from streams.selectors import group_view, messages_from, removals_of
from streams.services.messages import message_delete
from streams.services.streams import stream_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.groups.test_groups import bury, fetched, letters, make_group
from tests.dashboard.test_configuration import applied, looked_at
from tests.dashboard.test_stream_settings import filled

FORMS = {
    "purge": ("/streams/orders/purge/?what=all", "/streams/orders/purge/", {"what": "all"}),
    "delete a message": ("/streams/orders/messages/3/delete/", "/streams/orders/messages/3/delete/", {}),
    "remove for good": ("/streams/orders/removals/1/end/", "/streams/orders/removals/1/end/", {}),
    "undo": ("/streams/orders/", "/streams/orders/removals/1/undo/", {}),
    "retention": (
        "/streams/orders/retention/?discard=old&max_messages=1",
        "/streams/orders/retention/",
        {"discard": "old", "max_messages": "1", "confirm": "orders"},
    ),
    "settings": ("/streams/orders/settings/", "/streams/orders/settings/", filled(description="late")),
    "seal": (
        "/streams/orders/settings/",
        "/streams/orders/settings/",
        {"lasting": "1", "sealed": "on", "confirm": "orders"},
    ),
    "delete": ("/streams/orders/settings/", "/streams/orders/delete/", {"confirm": "orders", "seen": "5"}),
}
"""Page, address of the form, and what is filled in."""


@pytest.fixture
def make_orders(make_stream: MakeStream) -> Callable[[], Stream]:
    """Five messages, of which the first was removed and can come back."""

    def make() -> Stream:
        stream = make_stream("orders", bodies=[b"1"] * 5)
        message_delete(stream, offset=1, actor=SYSTEM)
        return stream

    return make


def holds(stream: Stream) -> Any:
    stream.refresh_from_db()
    offsets = [message.offset for message in messages_from(stream, offset=0, limit=99)]
    return stream.description, stream.sealed, stream.max_messages, offsets, len(removals_of(stream))


@pytest.mark.parametrize(("page", "address", "filled_in"), FORMS.values(), ids=FORMS)
def test_the_one_that_has_the_name_now_is_left_alone(
    owner: Client, make_orders: Callable[[], Stream], page: str, address: str, filled_in: dict[str, str]
) -> None:
    stream_id = make_orders().stream_id
    seen = owner.get(page)
    stream_delete(Stream.objects.get(stream_id=stream_id), actor=SYSTEM)
    stream = make_orders()
    before = holds(stream)
    form: dict[str, Any] = {**sent_back(seen), **filled_in}
    answer = owner.post(address, form, follow=True)
    assert "another one with the same name" in answer.content.decode()
    assert (holds(stream), answer.status_code) == (before, 200 if answer.redirect_chain else 409)
    again = {**form, **sent_back(owner.get(page))}
    owner.post(address, again)
    assert not Stream.objects.filter(stream_id=stream.stream_id).exists() or holds(stream) != before


def test_a_file_is_looked_at_again_where_it_would_delete_another_one(
    owner: Client, make_stream: MakeStream
) -> None:
    text = "okmq: 1\nstreams: {other: {}}\n"
    stream = make_stream("orders", bodies=[b"1"] * 5)
    seen = looked_at(owner, text, prune="on")
    stream_delete(stream, actor=SYSTEM)
    make_stream("orders", bodies=[b"1"] * 4)
    again = applied(owner, seen, confirm="default")
    assert Stream.objects.filter(name="orders").exists()
    applied(owner, again, confirm="default")
    assert not Stream.objects.filter(name="orders").exists()


def test_a_file_is_looked_at_again_where_one_stream_would_lose_what_another_was_to(
    owner: Client, make_stream: MakeStream
) -> None:
    text = "okmq: 1\nstreams: {d: {max_messages: 2}, e: {max_messages: 2}}\n"
    d, e = make_stream("d", bodies=[b"1"] * 10), make_stream("e", bodies=[b"1"] * 2)
    seen = looked_at(owner, text)
    for offset in range(1, 9):
        message_delete(d, offset=offset, actor=SYSTEM)
    store.log().run(append(e.stream_id, [NewMessage(id=f"n{each}", body=b"1") for each in range(8)]))
    again = applied(owner, seen)
    assert Stream.objects.get(name="e").max_messages is None
    applied(owner, again)
    assert Stream.objects.get(name="e").max_messages == 2


def test_a_file_is_looked_at_again_where_a_stream_that_goes_holds_what_another_held(
    owner: Client, make_stream: MakeStream
) -> None:
    a, b = make_stream("a", bodies=[b"1"] * 10), make_stream("b", bodies=[b"1"])
    seen = looked_at(owner, "okmq: 1\nstreams: {other: {}}\n", prune="on")
    for offset in range(1, 11):
        message_delete(a, offset=offset, actor=SYSTEM)
    store.log().run(append(b.stream_id, [NewMessage(id=f"n{each}", body=b"1") for each in range(9)]))
    again = applied(owner, seen, confirm="default")
    assert Stream.objects.filter(name="b").exists()
    applied(owner, again, confirm="default")
    assert not Stream.objects.filter(name="b").exists()


GROUP = "/streams/orders/groups/billing/"
GROUP_FORMS = {
    "seek": (f"{GROUP}?position=earliest", "seek/", {"next_offset": "1", "seen_from": "4"}),
    "pause": (GROUP, "pause/", {"until": ""}),
    "replay": (f"{GROUP}", "dead-letters/replay/", {"offset": "2"}),
    "delete letters": (
        f"{GROUP}dead-letters/bulk/?do=delete&scope=chosen&offset=2",
        "dead-letters/bulk/",
        {"do": "delete", "scope": "chosen"},
    ),
    "settle": (
        f"{GROUP}pending/settle/?what=ack&scope=chosen&offset=3",
        "pending/settle/",
        {"what": "ack", "scope": "chosen"},
    ),
    "settings": (f"{GROUP}settings/", "settings/", {"max_deliver": "9"}),
    "delete": (f"{GROUP}settings/", "delete/", {"confirm": "billing", "seen_letters": "9"}),
}
"""Page, the form's place under the group's, and what is filled in."""


def how_it_stands(group: Group) -> Any:
    view = group_view(Group.objects.select_related("stream").get(pk=group.pk))
    return view.group.max_deliver, view.state.delivered_offset, view.state.paused_until_ms, letters(group)


@pytest.mark.parametrize(("page", "address", "filled_in"), GROUP_FORMS.values(), ids=GROUP_FORMS)
def test_a_group_that_has_the_name_now_is_left_alone(
    owner: Client, make_stream: MakeStream, page: str, address: str, filled_in: dict[str, str]
) -> None:
    def make() -> Group:
        group = make_group(make_stream("orders", bodies=[b"1"] * 9))
        bury(group, count=2)
        fetched(group, limit=1)
        return group

    old = make()
    seen = owner.get(page)
    stream_delete(old.stream, actor=SYSTEM)
    group = make()
    before = how_it_stands(group)
    form = {**sent_back(seen), **filled_in}
    assert form["of"]
    answer = owner.post(f"{GROUP}{address}", form, follow=True)
    assert "another one with the same name" in answer.content.decode()
    assert how_it_stands(group) == before
    answer = owner.post(f"{GROUP}{address}", {**form, **sent_back(owner.get(page))}, follow=True)
    assert "another one with the same name" not in answer.content.decode()
