"""Where messages are kept by interest, what a person's seek or answer removes for good is shown and agreed to first."""

import re
from typing import Any

import pytest
from django.test import Client

from dashboard.views import group_page
from streams import selectors, store
from streams.access import SYSTEM
from streams.log import groups
from streams.models import Group, Stream
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.groups.interest import left, publish, text_of
from tests.dashboard.groups.test_groups import fetched

PAGE = "/streams/orders/groups/only/"
SEEK = f"{PAGE}seek/"
DESK = f"{PAGE}pending/settle/"
PRODUCTION = {"env": "production"}
NEWEST = {"position": "latest"}


def group_of(stream: Stream, name: str = "only", **chosen: Any) -> Group:
    return group_create(stream, name=name, settings=chosen, actor=SYSTEM)[0]


def position(group: Group) -> int:
    return selectors.group_view(group).state.delivered_offset + 1


def agreed(page: Any, **typed: str) -> dict[str, Any]:
    """What the form of a preview sends."""
    preview = page.context["preview"]
    moves = {"next_offset": preview.after, "seen_from": preview.before}
    return {**moves, **sent_back(page), **typed}


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders", retention="interest")
    publish(stream, 100)
    return stream


@pytest.fixture
def only(stream: Stream) -> Group:
    return group_of(stream)


def test_a_seek_forward_says_what_it_removes_and_does_so_once_that_was_agreed_to(
    owner: Client, stream: Stream, only: Group
) -> None:
    page = owner.get(PAGE, NEWEST)
    assert "This removes 100 messages (100 B)" in text_of(page)
    assert "It cannot be undone." in text_of(page)
    assert "Go to offset 101 and remove 100 messages" in text_of(page)
    assert re.findall(r"<[^>]* autofocus[^>]*>([^<]*)<", page.content.decode()) == ["Cancel"]
    for typed in ({}, {"confirm": "only"}):
        answer = owner.post(SEEK, agreed(page, **typed))
        assert (answer.status_code, position(only)) == (422, 1)
        assert "Type orders to confirm" in text_of(answer)
    assert left(stream) == 100
    done = owner.post(SEEK, agreed(answer, confirm="orders"), follow=True)
    assert "100 messages are removed: no group wants them any more." in text_of(done)
    assert (position(only), left(stream)) == (101, 0)


def test_a_seek_that_nobody_was_shown_is_shown_first(owner: Client, stream: Stream, only: Group) -> None:
    unseen = {"next_offset": 101, "seen_from": 1, "confirm": "orders"}
    page = owner.post(SEEK, unseen)
    assert (page.status_code, position(only)) == (409, 1)
    assert "Nothing was moved yet: this removes messages. Confirm it here." in text_of(page)
    assert owner.post(SEEK, agreed(page, confirm="orders")).status_code == 302
    assert left(stream) == 0


@pytest.mark.parametrize(("labels", "status"), [({}, 302), (PRODUCTION, 422)])
def test_a_few_messages_go_without_a_name_unless_the_stream_is_production(
    owner: Client, make_stream: MakeStream, labels: dict[str, str], status: int
) -> None:
    stream = make_stream("orders", retention="interest", labels=labels)
    publish(stream, 100)
    group_of(stream)
    page = owner.get(PAGE, {"position": "offset", "at": "5"})
    assert "This removes 4 messages" in text_of(page)
    assert owner.post(SEEK, agreed(page)).status_code == status
    assert left(stream) == (96 if status == 302 else 100)


def test_what_another_group_wants_stays_and_is_not_asked_about(
    owner: Client, stream: Stream, only: Group
) -> None:
    group_of(stream, "other")
    page = owner.get(PAGE, NEWEST)
    assert (page.context["preview"].letting_go, "This removes" in text_of(page)) == (None, False)
    assert owner.post(SEEK, agreed(page)).status_code == 302
    assert (position(only), left(stream)) == (101, 100)


def test_where_limits_alone_retain_a_seek_removes_nothing(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", labels=PRODUCTION)
    publish(stream, 100)
    group_of(stream)
    assert owner.post(SEEK, agreed(owner.get(PAGE, NEWEST))).status_code == 302
    assert left(stream) == 100
    assert "Undo: back to offset 1" in text_of(owner.get(PAGE))


def test_more_than_was_shown_is_asked_again(owner: Client, stream: Stream, only: Group) -> None:
    other = group_of(stream, "other")
    leases = fetched(other, limit=30)
    store.log().run(groups.ack(stream.stream_id, "other", "leases", leases[:5]))
    page = owner.get(PAGE, {"position": "offset", "at": "31"})
    assert "This removes 5 messages" in text_of(page)
    shown = agreed(page, confirm="orders")
    shown["seen_most"] = shown["seen_messages"]
    store.log().run(groups.ack(stream.stream_id, "other", "leases", leases[5:6]))
    again = owner.post(SEEK, shown)
    assert (again.status_code, position(only)) == (409, 1)
    assert "Nothing was moved: more would be removed than previewed." in text_of(again)
    assert "This removes 6 messages" in text_of(again)
    assert "within a minute it may be up to 30 messages" in text_of(again), "and no more than it is about"
    assert owner.post(SEEK, agreed(again, confirm="orders")).status_code == 302
    assert left(stream) == 94


def test_a_seek_back_says_what_it_drops_for_good(owner: Client, stream: Stream, only: Group) -> None:
    fetched(only, limit=10)
    page = owner.get(PAGE, {"position": "offset", "at": "4"})
    assert "This removes 3 messages" in text_of(page)
    assert owner.post(SEEK, agreed(page)).status_code == 302
    assert left(stream) == 97


@pytest.mark.parametrize("has_gone", [False, True], ids=["about to go", "gone"])
def test_no_undo_is_promised_of_what_a_seek_removed(
    owner: Client, stream: Stream, only: Group, has_gone: bool
) -> None:
    owner.post(SEEK, agreed(owner.get(PAGE, NEWEST), confirm="orders"))
    if has_gone:
        assert left(stream) == 0
    page = owner.get(PAGE)
    assert "Undo: back to offset" not in text_of(page)
    assert text_of(page).count("It cannot be undone: nothing that it skipped is in the stream any more.") == 2
    assert "for the first time" not in text_of(page)


def test_an_undo_tells_of_what_is_left(owner: Client, stream: Stream, only: Group) -> None:
    group_of(stream, "other", filter_keys=["us.>"])
    publish(stream, 7, key="us.1")
    owner.post(SEEK, agreed(owner.get(PAGE, NEWEST), confirm="orders"))
    for _ in range(2):
        page = owner.get(PAGE)
        assert "the next one. 7 messages are delivered for the first time." in text_of(page)
        assert "Undo: back to offset 1" in text_of(page)
        assert left(stream) == 7


def test_an_undo_that_goes_forward_is_shown_first(owner: Client, stream: Stream, only: Group) -> None:
    group_of(stream, "other", filter_keys=["us.>"])
    publish(stream, 900, key="us.1")
    fetched(only, limit=1000)
    owner.post(SEEK, {"next_offset": 1, "seen_from": 1001})
    other = fetched(group_of(stream, "third"), limit=1000)
    store.log().run(groups.ack(stream.stream_id, "third", "leases", other))
    page = owner.get(PAGE)
    assert "This removes 100 messages" in text_of(page)
    link = re.findall(r'href="([^"]*)">Undo: back to offset 1,001…</a>', text_of(page))
    assert link == [f"{PAGE}?position=offset&amp;at=1001"] * len(link)
    assert link, "it leads to the preview"
    assert owner.post(SEEK, {"next_offset": 1001, "seen_from": 1}).status_code == 409
    assert (position(only), left(stream)) == (1, 1000)


@pytest.mark.parametrize("has_gone", [False, True], ids=["about to go", "gone"])
def test_no_undo_is_promised_of_more_than_is_counted(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch, has_gone: bool
) -> None:
    monkeypatch.setattr(group_page, "MOST_COUNTED", 10)
    group_of(stream, filter_keys=["eu.>"])
    owner.post(SEEK, agreed(owner.get(PAGE, NEWEST), confirm="orders"))
    if has_gone:
        assert left(stream) == 0
    page = owner.get(PAGE)
    assert "It cannot be undone: nothing that it skipped is in the stream any more." in text_of(page)
    assert "Undo: back to offset" not in text_of(page)


def test_an_undo_that_goes_forward_says_what_goes_where_what_it_skips_is_not_counted(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_page, "MOST_COUNTED", 10)
    group_of(stream, filter_keys=["eu.>"])
    publish(stream, 20, key="us.1")
    group_of(stream, "other", filter_keys=["us.>"])
    group = Group.objects.get(name="only")
    fetched(group, limit=100)
    owner.post(SEEK, {"next_offset": 1, "seen_from": 101})
    page = owner.get(PAGE)
    assert "Messages before that offset are skipped." in text_of(page)
    assert "This removes 100 messages" in text_of(page)


@pytest.mark.parametrize("what", ["ack", "term"])
def test_the_desk_says_what_settling_removes_and_asks_for_the_name(
    owner: Client, stream: Stream, only: Group, what: str
) -> None:
    fetched(only, limit=20)
    form = {"what": what, "scope": "all"}
    page = owner.post(DESK, form)
    assert "This removes 20 messages (20 B)" in text_of(page)
    answer = owner.post(DESK, {**form, **sent_back(page)})
    assert (answer.status_code, left(stream)) == (422, 100)
    assert owner.post(DESK, {**form, **sent_back(page), "confirm": "orders"}).status_code == 302
    assert left(stream) == 80
    assert len(selectors.dead_letters(only)) == (20 if what == "term" else 0)


def test_the_desk_asks_nothing_more_where_nothing_is_removed(
    owner: Client, stream: Stream, only: Group
) -> None:
    group_of(stream, "other")
    fetched(only, limit=20)
    form = {"what": "ack", "scope": "all"}
    page = owner.post(DESK, form)
    assert "This removes" not in text_of(page)
    assert owner.post(DESK, {**form, **sent_back(page)}).status_code == 302
    assert left(stream) == 100


def test_the_desk_asks_again_once_more_would_be_removed(owner: Client, stream: Stream, only: Group) -> None:
    other = fetched(group_of(stream, "other"), limit=10)
    store.log().run(groups.ack(stream.stream_id, "other", "leases", other[:1]))
    fetched(only, limit=5)
    form = {"what": "ack", "scope": "all"}
    page = owner.post(DESK, form)
    assert "This removes 1 message (1 B)" in text_of(page)
    shown = sent_back(page)
    shown["seen_most"] = shown["seen_messages"]
    store.log().run(groups.ack(stream.stream_id, "other", "leases", other[1:2]))
    again = owner.post(DESK, {**form, **shown})
    assert again.status_code == 409
    assert "Nothing was done: more would be removed than previewed." in text_of(again)
    assert selectors.group_view(only).state.ack_pending == 5
    assert owner.post(DESK, {**form, **sent_back(again)}).status_code == 302
    assert left(stream) == 98


def test_to_nack_removes_nothing(owner: Client, stream: Stream, only: Group) -> None:
    fetched(only, limit=20)
    page = owner.post(DESK, {"what": "nack", "scope": "all"})
    assert "This removes" not in text_of(page)
    assert owner.post(DESK, {"what": "nack", "scope": "all", **sent_back(page)}).status_code == 302
    assert left(stream) == 100
