"""What a seek and its undo say that they deliver: again only what was delivered before."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.groups.seek_effect import covered
from dashboard.views import group_page
from streams import selectors, store
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import PAGE, fetched, make_group

HUNDRED = [b"1"] * 100


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """A hundred messages wait; nothing was delivered."""
    return make_group(make_stream("orders", bodies=HUNDRED))


def seek(owner: Client, *, to: int, seen_from: int) -> str:
    """What the page says once a group was sent there."""
    answer = owner.post(f"{PAGE}seek/", {"next_offset": to, "seen_from": seen_from}, follow=True)
    return text(answer.content.decode())


def text(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(strip_tags(page)))


def acknowledged(group: Group, *, limit: int) -> None:
    leases = fetched(group, limit=limit)
    store.log().run(groups.ack(group.stream.stream_id, group.name, "leases", leases))


def test_an_undo_says_first_what_comes_again_and_then_that_comes(owner: Client, billing: Group) -> None:
    seek(owner, to=51, seen_from=1)
    acknowledged(billing, limit=10)
    page = text(owner.get(PAGE).content.decode())
    effect = "60 messages are delivered: 10 again (offsets 51 to 60), 50 for the first time."
    assert (
        f"Undo makes offset 1 the next one. {effect} What was acknowledged of them since then comes again, too."
        " Delivery counts are not restored." in page
    )
    assert "stay acknowledged" not in page
    assert effect in text(owner.get(f"{PAGE}?position=offset&at=1").content.decode())
    assert f"The next offset is 1; it was 61. {effect}" in seek(owner, to=1, seen_from=51)
    acked = selectors.group_view(billing).state.acked
    acknowledged(billing, limit=100)
    assert selectors.group_view(billing).state.acked - acked == 100, "all of them came, also 51 to 60"


def test_an_undo_of_a_seek_before_anybody_fetched_delivers_for_the_first_time(
    owner: Client, billing: Group
) -> None:
    page = seek(owner, to=51, seen_from=1)
    assert "Undo makes offset 1 the next one. 50 messages are delivered for the first time." in page
    assert "50 messages are delivered for the first time." in seek(owner, to=1, seen_from=51)


def test_an_undo_of_a_seek_back_says_what_it_skips(owner: Client, billing: Group) -> None:
    acknowledged(billing, limit=20)
    page = seek(owner, to=1, seen_from=21)
    assert "The next offset is 1; it was 21. 20 messages are redelivered." in page
    assert (
        "Undo makes offset 21 the next one. 20 messages are skipped. Delivery counts are not restored."
        in page
    )
    fetched(billing, limit=5)
    assert "15 messages are skipped." in text(owner.get(PAGE).content.decode())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"start_from": "latest"}, "101 messages are delivered, at most 1 of them again (offset 101)."),
        (
            {"start_from": "offset", "start_offset": 81},
            "101 messages are delivered: 21 again (offsets 81 to 101), 80 for the first time.",
        ),
        (
            {"start_from": "last"},
            "101 messages are delivered, at most 2 of them again (offsets 1 to 101).",
        ),
        ({"start_from": "earliest"}, "101 messages are redelivered."),
    ],
)
def test_what_lies_before_the_start_of_a_group_was_not_delivered_to_it(
    owner: Client, make_stream: MakeStream, settings: dict[str, Any], said: str
) -> None:
    group = make_group(make_stream("orders", bodies=HUNDRED), **settings)
    store.log().run(append(group.stream.stream_id, [NewMessage(id="more", body=b"1")]))
    fetched(group, limit=1000)
    assert said in text(owner.get(f"{PAGE}?position=earliest").content.decode())


def test_what_waits_for_its_key_was_not_delivered(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    store.log().run(append(stream.stream_id, [NewMessage(id=str(n), body=b"1", key="k") for n in range(5)]))
    group = make_group(stream, ordered_by_key=True)
    fetched(group, limit=5)
    said = "5 messages are delivered: 1 again (offsets 1 to 5), 4 for the first time."
    assert said in text(owner.get(f"{PAGE}?position=earliest").content.decode())
    seek(owner, to=1, seen_from=6)
    fetched(group, limit=5)
    said = "5 messages are delivered, at most 2 of them again (offsets 1 to 5)."
    assert said in text(owner.get(f"{PAGE}?position=earliest").content.decode())


def test_a_filter_of_before_let_less_through(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    sent = [NewMessage(id=str(n), body=b"1", key=f"{'ab'[n % 2]}.{n}") for n in range(6)]
    store.log().run(append(stream.stream_id, sent))
    group = make_group(stream, filter_keys=["b.*"])
    fetched(group, limit=6)
    Group.objects.filter(pk=group.pk).update(filter_keys=[])
    said = "6 messages are delivered, at most 3 of them again (offsets 1 to 6)."
    assert said in text(owner.get(f"{PAGE}?position=earliest").content.decode())


def test_an_undo_that_would_read_very_many_messages_is_not_counted(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_page, "MOST_COUNTED", 10)
    stream = make_stream("orders")
    store.log().run(
        append(stream.stream_id, [NewMessage(id=str(n), body=b"1", key="b.1") for n in range(40)])
    )
    group = make_group(stream, filter_keys=["b.*"])
    page = seek(owner, to=21, seen_from=1)
    assert (
        "Undo makes offset 1 the next one. Messages from that offset on are delivered for the first time."
        in page
    )
    fetched(group, limit=5)
    said = "Messages from that offset on are delivered; those delivered before (offsets 21 to 25) again."
    assert said in text(owner.get(PAGE).content.decode())
    page = seek(owner, to=1, seen_from=26)
    assert "Undo makes offset 26 the next one. Messages before that offset are skipped." in page


def test_of_more_seeks_than_are_looked_at_the_rest_is_not_known(
    owner: Client, billing: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_page, "SEEKS_LOOKED_AT", 2)
    fetched(billing, limit=100)
    for to, seen_from in ((11, 101), (21, 11), (31, 21)):
        seek(owner, to=to, seen_from=seen_from)
    said = "30 messages are delivered, at most 10 of them again (offsets 1 to 10)."
    assert said in text(owner.get(f"{PAGE}?position=earliest").content.decode())


def test_offsets_that_were_gone_through_twice_count_once() -> None:
    assert covered([(1, 5), (3, 9), (20, 30), (9, 10)], low=2, high=25) == [(2, 10), (20, 25)]
    assert covered([(5, 5), (30, 40)], low=1, high=30) == []
