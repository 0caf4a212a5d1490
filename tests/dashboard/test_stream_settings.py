"""The Settings tab: what may change back and forth, what stays once it is on, the way to purge, and the end."""

from typing import Any

import pytest
from django.test import Client

from streams import store
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Stream
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/settings/"


def filled(**changed: str) -> dict[str, Any]:
    """The form as the page shows it for a stream without settings of its own, and what a person changed."""
    held = {"max_message_bytes": "1 MiB", "dedup_window": "1 d", "archive": "on"}
    return {name: value for name, value in (held | changed).items() if value}


def test_everything_on_the_form_is_saved_and_told_as_one_event(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    form = filled(
        description="Orders,\r\nof all shops",
        labels="env:production\r\nurl:https://shop:443/\r\n\r\n",
        keys="orders.eu.>, orders.*.paid",
        max_message_bytes="64 KiB",
        dedup_window="2 h",
        archive="",
    )
    assert owner.post(PAGE, form)["Location"] == PAGE
    stream = Stream.objects.get(name="orders")
    assert stream.description == "Orders,\nof all shops"
    assert stream.labels == {"env": "production", "url": "https://shop:443/"}
    assert stream.keys == ["orders.eu.>", "orders.*.paid"]
    assert (stream.max_message_bytes, stream.dedup_window, stream.archive) == (65_536, 7200, False)
    event = Event.objects.filter(kind="stream.changed").get()
    assert event.actor == "owner"
    assert set(event.after or {}) == {
        *("description", "labels", "keys", "max_message_bytes", "dedup_window", "archive")
    }


def test_what_the_page_shows_is_sent_back_without_a_change(owner: Client, make_stream: MakeStream) -> None:
    held = {"labels": {"b": " two ", "a": ""}, "keys": ["a.>"], "description": "one\ntwo", "archive": False}
    make_stream("orders", max_message_bytes=1001, dedup_window=90, **held)
    shown = owner.get(PAGE).context["form"].initial
    sent = {name: str(value).replace("\n", "\r\n") for name, value in shown.items() if value is not False}
    assert owner.post(PAGE, sent).status_code == 302
    assert not Event.objects.filter(kind="stream.changed").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", "env"),
        ("labels", "1:one"),
        ("labels", "a:1\na:2"),
        ("labels", "\n".join(f"n{number}:1" for number in range(65))),
        ("keys", "orders..eu"),
        ("keys", " ".join(f"k{number}" for number in range(101))),
        ("max_message_bytes", "17 MiB"),
        ("max_message_bytes", ""),
        ("dedup_window", "8 d"),
        ("dedup_window", "soon"),
        ("description", "é" * 2049),
        ("description", "a\x00b"),
    ],
)
def test_a_wrong_value_is_said_at_its_field_and_nothing_is_saved(
    owner: Client, make_stream: MakeStream, field: str, value: str
) -> None:
    make_stream("orders")
    answer = owner.post(PAGE, filled(description="new") | {field: value})
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert Stream.objects.get(name="orders").description == ""


def test_a_label_of_several_lines_is_left_as_it_is(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", labels={"note": "one\ntwo"})
    assert owner.post(PAGE, filled(labels="note:lost", description="new")).status_code == 302
    stream = Stream.objects.get(name="orders")
    assert (stream.labels, stream.description) == ({"note": "one\ntwo"}, "new")


def test_a_switch_that_stays_on_asks_for_the_name(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    wanted = {"lasting": "1", "deny_purge": "on"}
    assert owner.post(PAGE, wanted | {"confirm": "Orders"}).status_code == 422
    assert owner.post(PAGE, {"lasting": "1", "confirm": "orders"}).status_code == 422
    assert not Stream.objects.get(name="orders").deny_purge
    assert owner.post(PAGE, wanted | {"confirm": "orders"}).status_code == 302
    stream = Stream.objects.get(name="orders")
    assert (stream.deny_purge, stream.deny_delete, stream.sealed) == (True, False, False)


def test_a_sealed_stream_still_takes_labels_and_says_why_it_takes_nothing_else(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", sealed=True, deny_delete=True, deny_purge=True)
    assert b"Switch on permanently" not in owner.get(PAGE).content
    assert owner.post(PAGE, filled(labels="team:shop")).status_code == 302
    answer = owner.post(PAGE, filled(labels="team:shop", dedup_window="1 h"))
    assert answer.status_code == 422
    assert "sealed" in answer.content.decode()
    stream = Stream.objects.get(name="orders")
    assert (stream.labels, stream.dedup_window) == ({"team": "shop"}, 86_400)


def test_the_way_to_purge_is_there_unless_it_is_denied(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    way = b'href="/streams/orders/purge/"'
    assert way in owner.get(PAGE).content
    shown = viewer.get(PAGE).content
    assert way not in shown
    assert b"This needs the role operator." in shown
    owner.post(PAGE, {"lasting": "1", "deny_purge": "on", "confirm": "orders"})
    assert way not in owner.get(PAGE).content


def test_a_stream_that_has_grown_since_its_page_is_deleted_only_once_that_was_seen(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", labels={"env": "production"})
    seen = owner.get(PAGE).context["delete_form"]["seen"].value()
    store.log().run(append(stream.stream_id, [NewMessage(id=f"m{each}", body=b"1") for each in range(1204)]))
    answer = owner.post("/streams/orders/delete/", {"confirm": "orders", "seen": seen})
    assert answer.status_code == 409
    assert "Nothing was deleted" in answer.content.decode()
    seen_again = answer.context["delete_form"]["seen"].value()
    assert (seen, seen_again) == (0, 1204)
    assert owner.post("/streams/orders/delete/", {"confirm": "orders"}).status_code == 409
    assert Stream.objects.filter(name="orders").exists()
    owner.post("/streams/orders/delete/", {"confirm": "orders", "seen": seen_again})
    assert not Stream.objects.filter(name="orders").exists()


def test_what_purging_and_deleting_would_take_follows_the_stream(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[b"1"])
    dangers = owner.get(PAGE).content.decode().split("This removes")[1:]
    assert len(dangers) == 2
    for sentence in dangers:
        assert 'data-live="stream:orders" data-field="messages"' in sentence.partition("</p>")[0]
