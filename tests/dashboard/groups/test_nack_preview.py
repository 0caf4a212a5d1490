"""The desk says what a nack does: what is on its last delivery becomes a dead letter, and may go for good by it."""

import pytest
from django.test import Client

from dashboard.confirmations import LARGE_MESSAGES
from streams import selectors, store
from streams.log import groups, spent
from streams.models import Group
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.groups.interest import left, publish, text_of
from tests.dashboard.groups.test_groups import BODIES, PAGE, fetched, letters, make_group

DESK = f"{PAGE}pending/settle/"
FORM = {"what": "nack", "scope": "all"}
PRODUCTION = {"env": "production"}


def died(group: Group) -> list[int]:
    """The dead letters, once what is due for it has become one."""
    store.log().run(spent.retire(group.stream.stream_id, group.name))
    return letters(group)


def nacked(group: Group, leases: list[str]) -> None:
    store.log().run(groups.nack(group.stream.stream_id, group.name, "leases", leases))


def test_a_nack_of_last_deliveries_says_what_becomes_a_dead_letter_and_what_goes_for_good(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", retention="interest", labels=PRODUCTION)
    publish(stream, 5)
    group = make_group(stream, max_deliver=1)
    fetched(group, limit=5)
    page = owner.post(DESK, FORM)
    assert "5 messages are on their last delivery (max deliveries: 1): they become dead letters" in text_of(
        page
    )
    assert "This removes 5 messages (5 B)" in text_of(page)
    assert "redelivered" not in text_of(page)
    assert "autofocus>Cancel" in text_of(page)
    answer = owner.post(DESK, {**FORM, **sent_back(page)})
    assert (answer.status_code, died(group), left(stream)) == (422, [], 5)
    assert "Type orders to confirm" in text_of(answer)
    done = owner.post(DESK, {**FORM, **sent_back(page), "confirm": "orders"}, follow=True)
    assert "Nacked: 5. Of these become dead letters: 5." in text_of(done)
    assert (died(group), left(stream)) == ([1, 2, 3, 4, 5], 0)


def test_a_nack_counts_apart_what_is_redelivered_and_what_becomes_a_dead_letter(
    owner: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), max_deliver=2)
    nacked(group, fetched(group, limit=1))
    fetched(group, limit=3)
    page = owner.post(DESK, FORM)
    assert "1 message is on its last delivery (max deliveries: 2): it becomes a dead letter" in text_of(page)
    assert "2 messages are redelivered at once, to the next consumer that fetches." in text_of(page)
    assert "This removes" not in text_of(page)
    assert "to confirm" not in text_of(page)
    assert owner.post(DESK, {**FORM, **sent_back(page)}).status_code == 302
    assert died(group) == [1]
    assert [row.offset for row in selectors.in_flight(group)[0]] == [2, 3]


def test_a_delay_says_when(owner: Client, make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), max_deliver=2)
    nacked(group, fetched(group, limit=1))
    fetched(group, limit=2)
    page = text_of(owner.post(DESK, {**FORM, "delay": "1 h"}))
    assert "It becomes one when the delay of 1 h is over, unless it is acknowledged before." in page
    assert "1 message is redelivered in 1 h, to the next consumer that fetches then." in page


@pytest.mark.parametrize("most", [-1, 5])
def test_a_nack_of_what_has_deliveries_left_makes_no_dead_letter_and_asks_nothing(
    owner: Client, make_stream: MakeStream, most: int
) -> None:
    stream = make_stream("orders", retention="interest", labels=PRODUCTION)
    publish(stream, 3)
    group = make_group(stream, max_deliver=most)
    fetched(group, limit=3)
    page = owner.post(DESK, FORM)
    assert "3 messages are redelivered at once" in text_of(page)
    assert "last delivery" not in text_of(page).split("<form", 1)[1]
    assert owner.post(DESK, {**FORM, **sent_back(page)}).status_code == 302
    assert (died(group), left(stream)) == ([], 3)


def test_what_another_group_wants_stays_as_its_dead_letter_is_made(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", retention="interest")
    publish(stream, 5)
    group = make_group(stream, max_deliver=1)
    make_group(stream, name="other")
    fetched(group, limit=5)
    page = owner.post(DESK, FORM)
    assert "5 messages are on their last delivery" in text_of(page)
    assert "This removes" not in text_of(page)
    assert owner.post(DESK, {**FORM, **sent_back(page)}).status_code == 302
    assert (died(group), left(stream)) == ([1, 2, 3, 4, 5], 5)


def test_a_nack_that_makes_dead_letters_on_a_production_stream_asks_for_its_name(
    owner: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES, labels=PRODUCTION), max_deliver=1)
    fetched(group, limit=1)
    page = owner.post(DESK, FORM)
    assert "Type orders to confirm" in text_of(page)
    assert owner.post(DESK, {**FORM, **sent_back(page), "confirm": "order"}).status_code == 422
    assert died(group) == []


def test_a_thousand_dead_letters_by_a_nack_ask_for_the_streams_name(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * LARGE_MESSAGES)
    group = make_group(stream, max_deliver=1, max_ack_pending=2000)
    fetched(group, limit=LARGE_MESSAGES - 1)
    assert "to confirm" not in text_of(owner.post(DESK, FORM))
    fetched(group, limit=1)
    assert "Type orders to confirm" in text_of(owner.post(DESK, FORM))


def test_a_nack_asks_again_once_another_message_is_on_its_last_delivery(
    owner: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), max_deliver=2)
    leases = fetched(group, limit=2)
    nacked(group, leases[:1])
    fetched(group, limit=1)
    page = owner.post(DESK, FORM)
    assert "1 message is on its last delivery" in text_of(page)
    store.log().run(groups.ack(group.stream.stream_id, group.name, "offsets", [1]))
    nacked(group, leases[1:])
    fetched(group, limit=1)
    again = owner.post(DESK, {**FORM, **sent_back(page)})
    assert again.status_code == 409, "as many, and another one"
    assert "Nothing was done: more would become dead letters than previewed." in text_of(again)
    assert died(group) == []
    assert owner.post(DESK, {**FORM, **sent_back(again)}).status_code == 302
    assert died(group) == [2]


@pytest.mark.parametrize("seen", ["", "x"])
def test_a_nack_whose_dead_letters_nobody_was_shown_does_nothing(
    owner: Client, make_stream: MakeStream, seen: str
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), max_deliver=1)
    fetched(group, limit=2)
    answer = owner.post(DESK, {**FORM, "seen_offsets": "1-2", "seen_dying": seen})
    assert answer.status_code == (422 if seen else 409)
    assert died(group) == []
