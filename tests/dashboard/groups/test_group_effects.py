"""What a group's settings take away, and what a new group does: counted and shown before it is so."""

import re
from typing import Any

import pytest
from django.test import Client

from streams import selectors, store
from streams.access import SYSTEM
from streams.log import groups
from streams.models import Group, Stream
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import confirmed, sent_back
from tests.dashboard.groups.interest import left, publish, text_of
from tests.dashboard.groups.test_groups import fetched
from tests.waiting import until

TAB = "/streams/orders/groups/"
PAGE = f"{TAB}only/"
FORM = {"ack": "explicit", "ack_wait": "30", "max_deliver": "5", "max_ack_pending": "1000"}
NEW = {**FORM, "name": "only", "start_from": "earliest"}
PRODUCTION = {"env": "production"}


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders", retention="interest")
    publish(stream, 20)
    publish(stream, 5, key="us.1")
    return stream


def only(stream: Stream, **chosen: Any) -> Group:
    return group_create(stream, name="only", settings=chosen, actor=SYSTEM)[0]


def test_another_filter_says_what_goes_by_interest_and_takes_it_once_that_was_agreed_to(
    owner: Client, stream: Stream
) -> None:
    group = only(stream)
    wanted = {**FORM, "filter_keys": "us.>"}
    asked = owner.post(f"{PAGE}settings/", wanted)
    assert "This removes 20 messages (20 B)" in text_of(asked)
    assert "It cannot be undone." in text_of(asked)
    group.refresh_from_db()
    assert (group.filter_keys, left(stream)) == ([], 25)
    form = {**wanted, **sent_back(asked)}
    assert owner.post(f"{PAGE}settings/", form).status_code == 422, "it is most of the stream"
    assert owner.post(f"{PAGE}settings/", {**form, "confirm": "orders"}).status_code == 302
    assert left(stream) == 5


def test_what_is_in_flight_and_no_longer_wanted_is_counted_as_it_goes(owner: Client, stream: Stream) -> None:
    fetched(only(stream), limit=22)
    wanted = {**FORM, "filter_keys": "us.>"}
    assert "This removes 20 messages" in text_of(owner.post(f"{PAGE}settings/", wanted))
    assert confirmed(owner, f"{PAGE}settings/", wanted, confirm="orders").status_code == 302
    assert left(stream) == 5


def test_what_another_filter_removes_is_not_said_to_become_a_dead_letter_as_well(
    owner: Client, stream: Stream
) -> None:
    fetched(only(stream), limit=22)
    wanted = {**FORM, "filter_keys": "us.>", "max_deliver": "1"}
    page = text_of(owner.post(f"{PAGE}settings/", wanted))
    assert "This removes 20 messages" in page
    assert re.findall(r"(\d+) messages in flight become", page) == ["2"]


def test_fewer_deliveries_leave_out_what_dies_anyway(owner: Client, make_stream: MakeStream) -> None:
    group = only(make_stream("orders", bodies=[b"1"] * 9), max_deliver=2)
    again = fetched(group, limit=4)
    store.log().run(groups.nack(group.stream.stream_id, "only", "leases", again))
    fetched(group, limit=6)
    assert "2 messages in flight become" in text_of(
        owner.post(f"{PAGE}settings/", {**FORM, "max_deliver": "1"})
    )


def test_cancel_has_the_focus_where_something_would_go(owner: Client, stream: Stream) -> None:
    only(stream)
    page = owner.post(f"{PAGE}settings/", {**FORM, "filter_keys": "us.>"}).content.decode()
    assert re.findall(r"<[^>]* autofocus[^>]*>([^<]*)<", page) == ["Cancel"]


def test_one_message_more_than_was_shown_is_asked_again(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", retention="interest")
    publish(stream, 1)
    publish(stream, 99, key="us.1")
    only(stream)
    wanted = {**FORM, "filter_keys": "us.>"}
    shown = sent_back(owner.post(f"{PAGE}settings/", wanted))
    shown["seen_most"] = shown["seen_messages"]
    publish(stream, 1)
    again = owner.post(f"{PAGE}settings/", {**wanted, **shown})
    assert again.status_code == 409
    assert "Nothing was saved: more would be removed than previewed" in text_of(again)
    assert left(stream) == 101
    assert owner.post(f"{PAGE}settings/", {**wanted, **sent_back(again)}).status_code == 302
    assert left(stream) == 99


@pytest.mark.parametrize(("labels", "status"), [({}, 302), (PRODUCTION, 422)])
def test_a_small_loss_of_a_production_stream_asks_for_its_name(
    owner: Client, make_stream: MakeStream, labels: dict[str, str], status: int
) -> None:
    stream = make_stream("orders", retention="interest", labels=labels)
    publish(stream, 1)
    publish(stream, 99, key="us.1")
    only(stream)
    answer = confirmed(owner, f"{PAGE}settings/", {**FORM, "filter_keys": "us.>"})
    assert answer.status_code == status
    assert left(stream) == (99 if status == 302 else 100)


def test_what_another_group_still_wants_does_not_go_and_is_not_asked(owner: Client, stream: Stream) -> None:
    only(stream)
    group_create(stream, name="other", settings={}, actor=SYSTEM)
    assert owner.post(f"{PAGE}settings/", {**FORM, "filter_keys": "us.>"}).status_code == 302
    assert left(stream) == 25


def test_where_limits_alone_retain_another_filter_takes_nothing(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", labels=PRODUCTION)
    publish(stream, 20)
    only(stream)
    assert owner.post(f"{PAGE}settings/", {**FORM, "filter_keys": "us.>"}).status_code == 302
    assert left(stream) == 20


@pytest.mark.parametrize(
    ("chosen", "stays"), [({"filter_keys": "us.>"}, 5), ({"start_from": "latest"}, 0)], ids=str
)
def test_a_new_group_says_what_goes_by_interest_and_is_made_once_that_was_agreed_to(
    owner: Client, stream: Stream, chosen: dict[str, str], stays: int
) -> None:
    wanted = {**NEW, **chosen}
    asked = owner.post(TAB, wanted)
    assert f"This removes {25 - stays} messages" in text_of(asked)
    assert not Group.objects.exists()
    form = {**wanted, **sent_back(asked)}
    assert owner.post(TAB, form).status_code == 422
    assert not Group.objects.exists()
    assert owner.post(TAB, {**form, "confirm": "orders"})["Location"] == PAGE
    assert left(stream) == stays


def test_a_new_group_that_wants_everything_is_made_at_once(owner: Client, stream: Stream) -> None:
    assert owner.post(TAB, NEW)["Location"] == PAGE
    assert left(stream) == 25


def test_a_group_that_is_there_already_is_not_asked_about(owner: Client, stream: Stream) -> None:
    only(stream)
    group_create(stream, name="other", settings={}, actor=SYSTEM)
    assert owner.post(TAB, NEW)["Location"] == PAGE
    assert "name" in owner.post(TAB, {**NEW, "filter_keys": "us.>"}).context["form"].errors


@pytest.mark.parametrize(("labels", "asks_name"), [({}, False), (PRODUCTION, True)])
def test_fewer_deliveries_say_how_many_in_flight_become_dead_letters(
    owner: Client, make_stream: MakeStream, labels: dict[str, str], asks_name: bool
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 30, labels=labels)
    group = only(stream, max_deliver=-1)
    fetched(group, limit=20)
    wanted = {**FORM, "max_deliver": "1"}
    asked = owner.post(f"{PAGE}settings/", wanted)
    assert "20 messages in flight become dead letters" in text_of(asked)
    group.refresh_from_db()
    assert group.max_deliver == -1
    shown = sent_back(asked)
    fetched(group, limit=1)
    again = owner.post(f"{PAGE}settings/", {**wanted, **shown})
    assert (again.status_code, "21 messages in flight" in text_of(again)) == (409, True)
    answer = owner.post(f"{PAGE}settings/", {**wanted, **sent_back(again)})
    assert answer.status_code == (422 if asks_name else 302)


def test_deliveries_that_nothing_in_flight_has_had_are_saved_at_once(
    owner: Client, make_stream: MakeStream
) -> None:
    group = only(make_stream("orders", bodies=[b"1"] * 30), max_deliver=-1)
    fetched(group, limit=20)
    assert owner.post(f"{PAGE}settings/", {**FORM, "max_deliver": "2"}).status_code == 302


def test_to_be_deleted_when_idle_asks_as_deleting_does(owner: Client, stream: Stream) -> None:
    group = only(stream, max_deliver=-1)
    leases = fetched(group, limit=3)
    store.log().run(groups.term(stream.stream_id, "only", "leases", leases[:2], reason="no"))
    wanted = {**FORM, "max_deliver": "", "inactive_after": "1 h"}
    asked = owner.post(f"{PAGE}settings/", wanted)
    told = text_of(asked)
    assert "is deleted once nobody has fetched from it for 1 h" in told
    assert "what is in flight (1) and its dead letters (2)" in told
    form = {**wanted, **sent_back(asked)}
    assert owner.post(f"{PAGE}settings/", form).status_code == 422
    assert owner.post(f"{PAGE}settings/", {**form, "confirm": "only"}).status_code == 302
    group.refresh_from_db()
    assert group.inactive_after == 3600
    longer = {**wanted, "inactive_after": "2 h"}
    assert owner.post(f"{PAGE}settings/", longer).status_code == 302, "it takes nothing sooner"


def test_what_goes_at_once_with_an_end_that_is_set_asks_for_the_streams_name_too(
    owner: Client, stream: Stream
) -> None:
    group = only(stream)
    wanted = {**FORM, "filter_keys": "us.>", "inactive_after": "1 h"}
    asked = owner.post(f"{PAGE}settings/", wanted)
    assert "This removes 20 messages" in text_of(asked)
    assert "is deleted once nobody has fetched from it for 1 h" in text_of(asked)
    assert "Type orders/only to confirm" in text_of(asked)
    form = {**wanted, **sent_back(asked)}
    for typed in ("only", "orders"):
        assert owner.post(f"{PAGE}settings/", {**form, "confirm": typed}).status_code == 422
    group.refresh_from_db()
    assert (group.filter_keys, left(stream)) == ([], 25)
    assert owner.post(f"{PAGE}settings/", {**form, "confirm": "orders/only"}).status_code == 302
    assert left(stream) == 5


def test_what_grows_as_it_did_goes_with_a_group_that_ends(owner: Client, stream: Stream) -> None:
    """Messages and dead letters alike: who was asked again can save, as long as the stream moves as it did."""
    group = only(stream)
    group_create(stream, name="none", settings={"filter_keys": ["none"]}, actor=SYSTEM)

    def moves() -> None:
        publish(stream, 3)
        leases = fetched(group, limit=1)
        store.log().run(groups.term(stream.stream_id, "only", "leases", leases, reason="no"))

    wanted = {**FORM, "inactive_after": "1 h", "confirm": "only"}
    asked = owner.post(f"{PAGE}settings/", wanted)
    assert "25 messages that no other group wants are removed" in text_of(asked)
    moves()
    again = owner.post(f"{PAGE}settings/", {**wanted, **sent_back(asked)})
    assert (again.status_code, "its dead letters (1)" in text_of(again)) == (409, True)
    moves()
    assert owner.post(f"{PAGE}settings/", {**wanted, **sent_back(again)}).status_code == 302


def test_a_group_that_is_idle_for_longer_already_is_said_to_go_at_once(owner: Client, stream: Stream) -> None:
    group = only(stream)
    until(lambda: selectors.group_view(group).unfetched_ms > 100)
    asked = owner.post(f"{PAGE}settings/", {**FORM, "inactive_after": "0.1 s"})
    assert "The group only is deleted within seconds" in text_of(asked)
    assert Group.objects.exists()


def test_a_viewer_is_refused_before_anything_is_counted(viewer: Client, stream: Stream) -> None:
    only(stream)
    assert viewer.post(f"{PAGE}settings/", {**FORM, "filter_keys": "us.>"}).status_code == 403
    assert viewer.post(TAB, {**NEW, "filter_keys": "us.>"}).status_code == 403
