"""Seeks with a preview and an undo, and dead letters in bulk, in the console."""

import re
from datetime import UTC, datetime

import pytest
from django.test import Client

from streams import selectors, store
from streams.access import SYSTEM
from streams.log import config, groups, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Replay
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, PAGE, bury, fetched, letters, make_group

BULK = f"{PAGE}dead-letters/bulk/"


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """Ten of twenty messages are done."""
    group = make_group(make_stream("orders", bodies=BODIES))
    store.log().run(groups.ack(group.stream.stream_id, "billing", "leases", fetched(group, limit=10)))
    return group


def position(group: Group) -> int:
    return selectors.group_view(group).state.delivered_offset + 1


@pytest.mark.parametrize(
    ("query", "after"),
    [
        ("position=shift&at=-4", 7),
        ("position=shift&at=%2B5", 16),
        ("position=shift&at=3", 14),
        ("position=shift&at=-500", 1),
        ("position=like&at=audit", 3),
    ],
)
def test_a_seek_may_be_relative_or_follow_another_group(
    owner: Client, billing: Group, query: str, after: int
) -> None:
    fetched(make_group(billing.stream, "audit"), limit=2)
    assert owner.get(f"{PAGE}?{query}").context["preview"].after == after
    assert position(billing) == 11


@pytest.mark.parametrize("query", ["position=shift&at=x", "position=like", "position=like&at=nobody"])
def test_a_place_that_is_not_there_is_said_in_the_form(owner: Client, billing: Group, query: str) -> None:
    page = owner.get(f"{PAGE}?{query}")
    assert page.status_code == 422
    assert "at" in page.context["seek_form"].errors


def test_a_place_older_than_the_stream_names_the_replay_and_has_it_counted(
    owner: Client, billing: Group
) -> None:
    stream_id = billing.stream.stream_id
    store.log().run(trim.purge(stream_id, keep=5))
    assert "data-gone" not in owner.get(f"{PAGE}?position=earliest").content.decode()
    page = owner.get(f"{PAGE}?position=offset&at=3").content.decode()
    assert "Offsets 3 to 15 are no longer in the stream" in page
    assert "The history has nothing of it either." in page
    store.log().run(config.archived_set(stream_id, 15))
    page = owner.get(f"{PAGE}?position=timestamp&at=2001-01-01+00:00Z").content.decode()
    assert "What was published from that time up to offset 15 is no longer in the stream" in page
    part = page.split("data-gone")[1].split("</form>")[0]
    sent = dict(re.findall(r'name="(target|to_offset|since)" value="([^"]*)"', part))
    assert owner.post("/streams/orders/history/", sent).status_code == 302
    replay = Replay.objects.get()
    assert (replay.to_offset, replay.since, replay.starts) == (15, datetime(2001, 1, 1, tzinfo=UTC), False)


def test_a_preview_shows_the_first_and_the_last_of_the_messages(owner: Client, billing: Group) -> None:
    preview = owner.get(f"{PAGE}?position=offset&at=4").context["preview"]
    assert (preview.first.message.body, preview.last.message.body) == (b"4", b"10")


def test_an_undo_returns_the_position_and_says_what_it_does_not_bring_back(
    owner: Client, billing: Group
) -> None:
    fetched(billing, limit=2)
    owner.post(f"{PAGE}seek/", {"next_offset": 1, "seen_from": 13})
    page = owner.get(PAGE)
    last = page.context["last_seek"]
    assert (last.to, last.back_to, last.in_flight, last.oldest) == (1, 13, 2, 11)
    assert "2 messages were in flight then and are not brought back by it" in page.content.decode()
    owner.post(f"{PAGE}seek/", {"next_offset": last.back_to, "seen_from": last.to})
    assert position(billing) == 13


def test_a_seek_that_skips_what_waits_for_its_key_says_so(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    store.log().run(append(stream.stream_id, [NewMessage(id=str(n), body=b"1", key="k") for n in range(5)]))
    group_create(stream, name="billing", settings={"ordered_by_key": True}, actor=SYSTEM)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=5))
    preview = owner.get(PAGE, {"position": "latest"}).content.decode()
    assert "The position stays where it is. 4 messages that wait for their key are skipped." in preview
    owner.post(f"{PAGE}seek/", {"next_offset": 6, "seen_from": 6})
    page = owner.get(PAGE)
    last = page.context["last_seek"]
    assert (last.in_flight, last.waiting, last.oldest, last.moved) == (1, 4, 1, False)
    assert "4 messages waited for their key then" in page.content.decode()
    assert "Undo: back to" not in page.content.decode()


def test_a_group_made_again_has_no_seek_to_undo(owner: Client, billing: Group) -> None:
    owner.post(f"{PAGE}seek/", {"next_offset": 1, "seen_from": 11})
    stream = billing.stream
    owner.post(f"{PAGE}delete/", {"confirm": "billing"})
    make_group(stream)
    assert owner.get(PAGE).context["last_seek"] is None


@pytest.fixture
def dead(billing: Group) -> Group:
    """Four dead letters, 11 to 14, of two reasons."""
    bury(billing, count=2, why="no such customer")
    bury(billing, count=2, why="Timeout")
    return billing


@pytest.mark.parametrize("do", ["replay", "delete"])
def test_what_would_go_is_said_first(owner: Client, dead: Group, do: str) -> None:
    page = owner.post(BULK, {"do": do, "scope": "all", "reason": ""}).content.decode()
    assert "4 dead letters, of offsets 11 to 14." in page
    assert letters(dead) == [11, 12, 13, 14]


def test_a_preview_of_chosen_ones_counts_what_is_still_dead(owner: Client, dead: Group) -> None:
    form = {"do": "replay", "scope": "chosen", "offset": [9, 12, 13, 77]}
    assert "2 dead letters, of offsets 12 to 13." in owner.post(BULK, form).content.decode()
    owner.post(BULK, form | {"confirmed": "1"})
    answer = owner.post(BULK, form)
    assert (answer.status_code, answer["Location"]) == (302, f"{PAGE}#dead-letters")


@pytest.mark.parametrize(
    ("form", "left"),
    [
        ({"scope": "chosen", "offset": [11, 13]}, [12, 14]),
        ({"scope": "all", "reason": "timeout"}, [11, 12]),
        ({"scope": "all", "reason": ""}, []),
        ({"scope": "all", "reason": "nothing"}, [11, 12, 13, 14]),
    ],
)
def test_the_chosen_or_all_that_match_are_deleted(
    owner: Client, dead: Group, form: dict[str, object], left: list[int]
) -> None:
    owner.post(BULK, {"do": "delete", "confirmed": "1"} | form)
    assert letters(dead) == left


def test_the_chosen_are_replayed(owner: Client, dead: Group) -> None:
    owner.post(BULK, {"do": "replay", "scope": "chosen", "offset": [12, 13], "confirmed": "1"})
    assert letters(dead) == [11, 14]
    assert len(fetched(dead, limit=2)) == 2


def test_the_list_is_filtered_by_reason(viewer: Client, dead: Group) -> None:
    shown = viewer.get(f"{PAGE}?reason=TIME").context["letters"]
    assert [each.letter.offset for each in shown] == [13, 14]


@pytest.mark.parametrize(
    "form", [{}, {"do": "burn", "scope": "all"}, {"do": "delete", "scope": "chosen", "offset": "all"}]
)
def test_a_bulk_that_cannot_be_read_does_nothing(owner: Client, dead: Group, form: dict[str, str]) -> None:
    owner.post(BULK, form | {"confirmed": "1"})
    assert letters(dead) == [11, 12, 13, 14]


def test_a_viewer_moves_no_dead_letter(viewer: Client, dead: Group) -> None:
    assert viewer.post(BULK, {"do": "delete", "scope": "all", "confirmed": "1"}).status_code == 403
    assert letters(dead) == [11, 12, 13, 14]
    page = viewer.get("/streams/orders/groups/billing/").content.decode()
    assert page.count('<td class="pick" title="This needs the right to manage.">') == 4


def test_a_dead_letter_is_edited_and_published_again_though_the_stream_lost_it(
    owner: Client, dead: Group
) -> None:
    owner.post("/streams/orders/messages/11/delete/", {"confirm": "1"})
    form = owner.get("/streams/orders/publish/?like=11&letter_of=billing").context["form"]
    assert form["body"].value() == "11"
    assert owner.get("/streams/orders/publish/?like=9&letter_of=billing").status_code == 404
