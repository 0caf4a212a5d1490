"""Seeks with a preview and an undo, and dead letters in bulk, in the console."""

import json
import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from dashboard.groups.group_rows import PastSeek, not_given_back
from dashboard.views import group_page
from streams import selectors, store
from streams.access import SYSTEM
from streams.log import config, groups, read, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Replay
from streams.services.groups import group_change, group_create
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import confirmed, sent_back
from tests.dashboard.groups.test_groups import BODIES, LETTERS, PAGE, bury, fetched, letters, make_group

BULK = f"{LETTERS}bulk/"


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """Ten of twenty messages are done."""
    group = make_group(make_stream("orders", bodies=BODIES))
    store.log().run(groups.ack(group.stream.stream_id, "billing", "leases", fetched(group, limit=10)))
    return group


def seeks_as_code(page: str) -> list[dict[str, Any]]:
    """The bodies of the seeks that a page shows as curl, in their order."""
    return [
        json.loads(body) for body in re.findall(r"/seek \\\n(?:  -H .*\n)*  -d '([^']*)'", unescape(page))
    ]


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


def test_a_place_older_than_the_stream_says_what_the_history_holds_and_brings_it(
    owner: Client, billing: Group
) -> None:
    stream_id = billing.stream.stream_id
    store.log().run(trim.purge(stream_id, keep=5))
    assert "data-gone" not in owner.get(f"{PAGE}?position=earliest").content.decode()
    page = owner.get(f"{PAGE}?position=offset&at=3").content.decode()
    assert "Offsets 3 to 15 are no longer in the stream" in page
    assert "The history does not have them either." in page
    assert seeks_as_code(page) == [{"position": "offset", "offset": 16}]
    assert 'name="history"' not in page
    store.log().run(config.archived_set(stream_id, 15))
    page = owner.get(f"{PAGE}?position=offset&at=3").content.decode()
    assert "At most 13 of these messages are in the history." in page
    assert 'name="gone_from" value="3"' in page
    assert seeks_as_code(page)[1] == {"position": "offset", "offset": 3, "history": True}
    page = owner.get(f"{PAGE}?position=timestamp&at=2001-01-01+00:00Z").content.decode()
    assert "Messages published from that time up to offset 15 are no longer in the stream" in page
    since = "2001-01-01T00:00:00+00:00"
    assert seeks_as_code(page)[1] == {"position": "timestamp", "timestamp": since, "history": True}
    sent = dict(re.findall(r'name="(next_offset|seen_from|gone_since)" value="([^"]*)"', page))
    answer = owner.post(f"{PAGE}seek/", {**sent, "history": "1"}, follow=True)
    replay = Replay.objects.get()
    assert f"Replay {replay.pk} delivers what is in the history" in answer.content.decode()
    assert (replay.to_offset, replay.since, replay.starts) == (15, datetime(2001, 1, 1, tzinfo=UTC), True)
    assert (replay.group, position(billing)) == ("billing", 16)
    assert "group billing" in owner.get("/streams/orders/history/").content.decode()


@pytest.mark.parametrize("ordered", [False, True])
def test_in_which_order_the_history_comes_is_said_where_it_is_chosen(
    owner: Client, billing: Group, ordered: bool
) -> None:
    stream_id = billing.stream.stream_id
    group_change(billing, changes={"ordered_by_key": ordered}, actor=SYSTEM)
    store.log().run(trim.purge(stream_id, keep=5))
    assert "newer messages may come before older ones" not in (
        owner.get(f"{PAGE}?position=offset&at=3").content.decode()
    )
    store.log().run(config.archived_set(stream_id, 15))
    page = owner.get(f"{PAGE}?position=offset&at=3").content.decode()
    (said,) = re.findall(r'id="seek-history-order">(.*?)</p>', page)
    assert 'id="seek-history" aria-describedby="seek-history-order"' in page
    assert "newer messages may come before older ones, also those of one key" in said
    assert ("It is ordered by key" in said) == ordered


def test_a_seek_without_the_history_begins_no_replay_and_ends_one(owner: Client, billing: Group) -> None:
    store.log().run(trim.purge(billing.stream.stream_id, keep=5))
    store.log().run(config.archived_set(billing.stream.stream_id, 15))
    sent = {"next_offset": 16, "seen_from": 16, "gone_from": 3}
    owner.post(f"{PAGE}seek/", {**sent, "history": "1"})
    owner.post(f"{PAGE}seek/", sent)
    (replay,) = Replay.objects.all()
    assert (replay.from_offset, replay.state) == (3, "cancelled")
    assert "was moved to another position" in owner.get("/streams/orders/history/").content.decode()


@pytest.mark.parametrize(
    "place",
    [{"gone_from": "3"}, {"gone_since": "2001-01-01T00:00:00+00:00"}],
    ids=lambda place: next(iter(place)),
)
def test_a_preview_that_is_shown_again_still_offers_the_history(
    owner: Client, billing: Group, place: dict[str, str]
) -> None:
    store.log().run(trim.purge(billing.stream.stream_id, keep=5))
    store.log().run(config.archived_set(billing.stream.stream_id, 15))
    sent = {"next_offset": 18, "seen_from": 30, "history": "1", **place}
    page = owner.post(f"{PAGE}seek/", sent, follow=True).content.decode()
    assert "the group has moved since the preview" in page
    assert 'name="history"' in page
    assert not Replay.objects.exists()


def test_where_no_further_replay_is_taken_nothing_is_moved(
    owner: Client, billing: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.log().run(trim.purge(billing.stream.stream_id, keep=5))
    store.log().run(config.archived_set(billing.stream.stream_id, 15))
    monkeypatch.setattr("streams.services.replays.MOST_UNFINISHED", 0)
    sent = {"next_offset": 18, "seen_from": 16, "gone_from": 3, "history": "1"}
    answer = owner.post(f"{PAGE}seek/", sent, follow=True)
    assert "replays of this workspace are under way" in answer.content.decode()
    assert position(billing) == 16


def test_a_preview_shows_the_first_and_the_last_of_the_messages(owner: Client, billing: Group) -> None:
    preview = owner.get(f"{PAGE}?position=offset&at=4").context["preview"]
    assert (preview.first.message.body, preview.last.message.body) == (b"4", b"10")


def test_a_preview_shows_only_messages_that_the_groups_filter_lets_through(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    keys = ["a.1", "b.1", "a.2", "b.2", "a.3", "b.3", "a.4"]
    sent = [NewMessage(id=key, body=f'"{key}"'.encode(), key=key) for key in keys]
    store.log().run(append(stream.stream_id, sent))
    group = make_group(stream, filter_keys=["b.*"])

    def shown(query: str) -> list[str | None]:
        preview = owner.get(f"{PAGE}?{query}").context["preview"]
        rows = (preview.first, preview.last, preview.next_message)
        return [None if row is None else row.message.key for row in rows]

    assert shown("position=offset&at=6") == ["b.1", "b.2", "b.3"]
    assert shown("position=latest") == ["b.1", "b.3", None]
    assert shown("position=offset&at=2") == [None, None, "b.1"]
    fetched(group, limit=2)
    assert shown("position=earliest") == ["b.1", "b.2", "b.1"]
    assert shown("position=offset&at=7") == ["b.3", "b.3", None]
    text = "No message stored from there on matches the group's filter."
    assert text in owner.get(f"{PAGE}?position=latest").content.decode()


def test_a_preview_that_did_not_find_what_comes_next_says_so(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_page, "LOOKED_FOR_S", 0.0)
    make_group(make_stream("orders", bodies=[b"1"] * (read.PAGE + 1)), filter_keys=["b.*"])
    page = owner.get(f"{PAGE}?position=earliest").content.decode()
    assert "The next message was not found in time" in page


def test_an_undo_returns_the_position_and_says_what_it_does_not_bring_back(
    owner: Client, billing: Group
) -> None:
    fetched(billing, limit=2)
    owner.post(f"{PAGE}seek/", {"next_offset": 1, "seen_from": 13})
    page = owner.get(PAGE)
    last = page.context["last_seek"]
    assert (last.to, last.back_to, last.in_flight, last.oldest) == (1, 13, 2, 11)
    assert "2 messages were in flight then and are not restored by it" in page.content.decode()
    owner.post(f"{PAGE}seek/", {"next_offset": last.back_to, "seen_from": last.to})
    assert position(billing) == 13


def test_the_line_that_tells_of_a_seek_has_its_undo(owner: Client, billing: Group) -> None:
    page = owner.post(f"{PAGE}seek/", {"next_offset": 1, "seen_from": 11}, follow=True).content.decode()
    line = page.split("The next offset is 1; it was 11.")[1].split("</form>")[0]
    assert "Undo: back to offset 11" in line
    sent = dict(re.findall(r'name="(of|next_offset|seen_from)" value="(\d+)"', line))
    again = owner.post(f"{PAGE}seek/", sent, follow=True).content.decode()
    assert position(billing) == 11
    assert "The next offset is 11; it was 1." in again
    assert owner.get(PAGE).content.decode().count("Undo: back to offset") == 1


def test_after_an_undo_what_was_in_flight_is_told_of_until_it_is_given_back(
    owner: Client, billing: Group
) -> None:
    fetched(billing, limit=6)
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "offsets", [11, 12, 15]))
    owner.post(f"{PAGE}seek/", {"next_offset": 21, "seen_from": 17})
    assert owner.get(PAGE).context["not_given_back"] is None  # said beside the Undo
    owner.post(f"{PAGE}seek/", {"next_offset": 17, "seen_from": 21})
    page = owner.get(PAGE)
    assert "3 messages, from offset 13 on, that were in flight" in page.content.decode()
    fetched(billing, limit=2)
    (form,) = re.findall(
        r"<form[^>]*>(?:(?!</form>).)*Go to offset 13.*?</form>", page.content.decode(), re.DOTALL
    )
    sent = dict(re.findall(r'name="(next_offset|seen_from)" value="(\d+)"', form))
    owner.post(f"{PAGE}seek/", sent)
    assert owner.get(PAGE).context["not_given_back"] is None
    assert len(fetched(billing, limit=100)) == 8


def test_what_an_undone_seek_dropped_and_the_stream_has_lost_is_told_of_no_more(
    owner: Client, billing: Group
) -> None:
    fetched(billing, limit=2)
    owner.post(f"{PAGE}seek/", {"next_offset": 1, "seen_from": 13})
    owner.post(f"{PAGE}seek/", {"next_offset": 13, "seen_from": 1})
    told = owner.get(PAGE).context["not_given_back"]
    assert (told.messages, told.is_exact, told.oldest) == (2, True, 11)
    store.log().run(trim.purge(billing.stream.stream_id, keep=8))
    assert owner.get(PAGE).context["not_given_back"] is None


def test_a_seek_to_where_the_group_is_tells_what_it_dropped(owner: Client, billing: Group) -> None:
    fetched(billing, limit=2)
    owner.post(f"{PAGE}seek/", {"next_offset": 13, "seen_from": 13})
    last = owner.get(PAGE).context["last_seek"]
    assert (last.in_flight, last.oldest, last.moved) == (2, 11, False)


def moved(back_to: int, to: int, *, dropped: int = 0, oldest: int | None = None) -> PastSeek:
    return PastSeek("ann", 0, to, back_to, dropped, 0, oldest)


@pytest.mark.parametrize(
    ("since", "left"),
    [
        ([], None),
        ([moved(21, 11)], (6, True, 4)),
        ([moved(21, 11), moved(15, 21)], (6, True, 4)),
        ([moved(21, 30)], None),
        ([moved(21, 11), moved(15, 4)], None),
        ([moved(21, 11), moved(15, 2)], None),
        ([moved(21, 11), moved(15, 4), moved(20, 15)], None),
        ([moved(21, 11), moved(15, 4), moved(6, 15)], (5, False, 6)),
        ([moved(21, 11), moved(15, 4), moved(4, 15)], (6, True, 4)),
        ([moved(21, 8)], (4, False, 4)),
        ([moved(21, 11, dropped=2, oldest=19), moved(11, 21)], (8, True, 4)),
    ],
)
def test_what_is_not_given_back_is_what_no_later_seek_had_delivered_again(
    since: list[PastSeek], left: tuple[int, bool, int] | None
) -> None:
    told = not_given_back([moved(11, 21, dropped=6, oldest=4), *since][::-1])
    assert (told and (told.messages, told.is_exact, told.oldest)) == left


def test_a_seek_that_skips_what_waits_for_its_key_says_so(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    store.log().run(append(stream.stream_id, [NewMessage(id=str(n), body=b"1", key="k") for n in range(5)]))
    group_create(stream, name="billing", settings={"ordered_by_key": True}, actor=SYSTEM)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=5))
    preview = owner.get(PAGE, {"position": "latest"}).content.decode()
    assert "The position stays where it is. 4 messages waiting for their key are skipped." in preview
    owner.post(f"{PAGE}seek/", {"next_offset": 6, "seen_from": 6})
    page = owner.get(PAGE)
    last = page.context["last_seek"]
    assert (last.in_flight, last.waiting, last.oldest, last.moved) == (1, 4, 1, False)
    assert "4 messages were waiting for their key then" in page.content.decode()
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
    confirmed(owner, BULK, form)
    answer = owner.post(BULK, form)
    assert (answer.status_code, answer["Location"]) == (302, LETTERS)


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
    confirmed(owner, BULK, {"do": "delete"} | form)
    assert letters(dead) == left


@pytest.mark.parametrize("do", ["replay", "delete"])
@pytest.mark.parametrize("reason", ["", "time"])
def test_all_that_match_are_those_that_were_shown_and_what_died_since_stays(
    owner: Client, dead: Group, do: str, reason: str
) -> None:
    shown_after = f"{LETTERS}?reason=time&after=10" if reason else LETTERS
    form = {"do": do, "scope": "all", "reason": reason, "next": shown_after}
    page = owner.get(BULK, form)
    assert f'href="{escape(shown_after)}"' in page.content.decode(), "Cancel leads there, too"
    bury(dead, count=3, why="Timeout again")
    answer = owner.post(BULK, {**form, **sent_back(page)})
    assert answer["Location"] == shown_after  # where what died since is seen
    assert letters(dead) == [*([11, 12] if reason else []), 15, 16, 17]


@pytest.mark.parametrize(("do", "asks"), [("delete", True), ("replay", False)])
def test_dead_letters_of_a_production_stream_go_only_for_its_name(
    owner: Client, dead: Group, do: str, asks: bool
) -> None:
    stream_change(dead.stream, changes={"labels": {"env": "production"}}, actor=SYSTEM)
    form = {"do": do, "scope": "chosen", "offset": [11, 13]}
    page = owner.post(BULK, form).content.decode()
    assert ("Type orders to confirm" in page) is asks
    assert ("autofocus>Cancel" in page) is asks
    answer = confirmed(owner, BULK, form, confirm="Orders")
    assert (answer.status_code, letters(dead)) == ((422, [11, 12, 13, 14]) if asks else (302, [12, 14]))
    confirmed(owner, BULK, form, confirm="orders")
    assert letters(dead) == [12, 14]


def test_the_chosen_are_replayed(owner: Client, dead: Group) -> None:
    confirmed(owner, BULK, {"do": "replay", "scope": "chosen", "offset": [12, 13]})
    assert letters(dead) == [11, 14]
    assert len(fetched(dead, limit=2)) == 2


def test_the_list_is_filtered_by_reason(viewer: Client, dead: Group) -> None:
    shown = viewer.get(f"{LETTERS}?reason=TIME").context["letters"]
    assert [each.letter.offset for each in shown] == [13, 14]


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"do": "burn", "scope": "all"},
        {"do": "delete", "scope": "chosen", "offset": "all", "seen_offsets": ""},
        {"do": "delete", "scope": "all", "seen_offsets": "11-14-15"},
    ],
)
def test_a_bulk_that_cannot_be_read_does_nothing(owner: Client, dead: Group, form: dict[str, str]) -> None:
    owner.post(BULK, {"seen_offsets": "11-14"} | form)
    assert letters(dead) == [11, 12, 13, 14]


def test_a_viewer_moves_no_dead_letter(viewer: Client, dead: Group) -> None:
    assert viewer.post(BULK, {"do": "delete", "scope": "all", "seen_offsets": "11-14"}).status_code == 403
    assert letters(dead) == [11, 12, 13, 14]
    page = viewer.get(LETTERS).content.decode()
    assert page.count('<td class="pick" title="This needs the right to manage.">') == 4


def test_a_dead_letter_is_edited_and_published_again_though_the_stream_lost_it(
    owner: Client, dead: Group
) -> None:
    owner.post("/streams/orders/messages/11/delete/", {"confirm": "1"})
    page = "/streams/orders/publish/?like=11&letter_of=billing"
    shown = owner.get(page)
    form = shown.context["form"]
    assert form["body"].value() == "11"
    told = f'A copy of <a href="{LETTERS}11/">dead letter 11</a> of group billing in stream orders.'
    assert told in shown.content.decode()
    sent = {name: form[name].value() or "" for name in form.fields}
    after = owner.post(page, sent, follow=True).content.decode()
    assert "Stored at offset" in after
    assert told in after, "the way back is there afterwards, too"
    owner.post(f"{LETTERS}replay/", {"offset": "11"})
    after = owner.post(page, sent | {"id": "another"}, follow=True).content.decode()
    assert "Stored at offset" in after
    assert "A copy of" not in after, "it is no dead letter any more"
    assert owner.get("/streams/orders/publish/?like=9&letter_of=billing").status_code == 404
