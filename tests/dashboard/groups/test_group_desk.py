"""The desk of messages in flight and the settings of a group, in the console."""

import re
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.confirmations import LARGE_MESSAGES
from dashboard.groups.group_rows import GroupRow
from dashboard.live import live_groups
from streams import selectors, store
from streams.log import dead_letters, groups, stats, trim
from streams.models import Event, Group
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import confirmed, sent_back
from tests.dashboard.groups.test_groups import BODIES, LETTERS, PAGE, bury, fetched, letters, make_group

DESK = f"{PAGE}pending/"


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """Three messages are out."""
    group = make_group(make_stream("orders", bodies=BODIES))
    fetched(group, limit=3)
    return group


def out(group: Group) -> list[int]:
    return [row.offset for row in selectors.in_flight(group)[0]]


def test_the_desk_shows_who_has_what_and_changes_nothing(viewer: Client, billing: Group) -> None:
    page = viewer.get(DESK)
    rows = [(row.offset, row.deliveries, row.consumer, row.id) for row, _ in page.context["rows"]]
    assert rows == [(1, 1, "c-1", "m1"), (2, 1, "c-1", "m2"), (3, 1, "c-1", "m3")]
    assert "This needs the right to consume." in page.content.decode()
    assert out(billing) == [1, 2, 3]


def test_a_message_that_is_open_stands_in_the_address(viewer: Client, billing: Group) -> None:
    page = viewer.get(DESK).content.decode()
    assert re.search(r'<table class="grid cards" data-opens>', page)
    assert re.findall(r'<tr data-offset="(\d+)">', page) == ["1", "2", "3"]
    assert 'class="detail-row"' not in page
    page = viewer.get(f"{DESK}?open=2").content.decode()
    assert re.findall(r'data-row aria-expanded="(\w+)"', page) == ["false", "true", "false"]
    [detail] = re.findall(r'<tr class="detail-row"><td colspan="7">(.*?)</tr>', page, re.DOTALL)
    assert "<dt>Id</dt>" in detail
    assert ">m2</bdi>" in detail


def test_a_message_that_is_open_and_in_the_list_no_more_is_shown_above_it(
    viewer: Client, billing: Group
) -> None:
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "offsets", [2]))
    page = viewer.get(f"{DESK}?open=2&open=999&open=soon").content.decode()
    assert "open, but not in the list below" in page
    assert ">m2</bdi>" in page
    assert "Message 999, which was open here, is no longer in the stream." in page
    assert 'class="detail-row"' not in page


@pytest.mark.parametrize("page", [DESK, LETTERS])
def test_a_list_says_once_it_is_not_what_the_page_shows(viewer: Client, billing: Group, page: str) -> None:
    told = 'data-live="group:orders/billing" data-field="{}" data-format="differs" data-value="{}"'
    field = "out_mark" if page == DESK else "dead_mark"

    def mark() -> str:
        return str(
            getattr(live_groups.group_sampled(GroupRow(selectors.group_view(billing)), at_ms=0), field)
        )

    seen = mark()
    assert told.format(field, seen) in viewer.get(page).content.decode()
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "offsets", [1, 2, 3]))
    if page == LETTERS:
        assert mark() == seen, "nobody died"
    bury(billing, count=1)
    fetched(billing, limit=3)  # as many are out as before
    assert mark() != seen
    assert told.format(field, mark()) in viewer.get(page).content.decode()


def test_the_desk_says_when_each_was_delivered_and_when_it_comes_again(
    viewer: Client, billing: Group
) -> None:
    page = viewer.get(DESK).content.decode()
    (row, *_) = selectors.in_flight(billing)[0]
    assert f'data-ms="{row.delivered_ms}"' in page
    due = re.findall(r'<time datetime="([^"]+)">', page)
    in_s = [(datetime.fromisoformat(each) - timezone.now()).total_seconds() for each in due]
    assert len(in_s) == 3
    assert all(25 < each < 35 for each in in_s)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("deliveries=2", []),
        ("consumer=c-1", [1, 2, 3]),
        ("consumer=c-2", []),
        ("age=1 h", []),
        ("after=2", [3]),
    ],
)
def test_the_desk_is_filtered(viewer: Client, billing: Group, query: str, shown: list[int]) -> None:
    assert [row.offset for row, _ in viewer.get(f"{DESK}?{query}").context["rows"]] == shown


@pytest.mark.parametrize("query", ["deliveries=x", "age=soon"])
def test_a_filter_that_cannot_be_read_is_said(viewer: Client, billing: Group, query: str) -> None:
    assert viewer.get(f"{DESK}?{query}").status_code == 422


def test_a_preview_settles_nothing(owner: Client, billing: Group) -> None:
    page = owner.post(f"{DESK}settle/", {"what": "ack", "scope": "chosen", "offset": [1, 3]}).content.decode()
    assert "2 messages in flight, offsets 1 to 3." in page
    assert out(billing) == [1, 2, 3]


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        (f"http://testserver{DESK}?after=2", f"{DESK}?after=2"),
        (f"http://testserver{DESK}settle/", ""),
        (f"http://elsewhere{DESK}", ""),
        ("", ""),
    ],
)
def test_colours_chosen_on_a_preview_lead_back_to_the_desk(
    owner: Client, billing: Group, referer: str, back: str
) -> None:
    form = {"what": "ack", "scope": "chosen", "offset": [1, 3]}
    page = owner.post(f"{DESK}settle/", form, headers={"referer": referer}).content.decode()
    assert f'name="next" value="{back}"' in page
    answer = owner.post("/theme/", {"theme": "dark", "next": back})
    assert owner.get(answer["Location"]).status_code == 200


def test_a_preview_counts_what_is_still_in_flight(owner: Client, billing: Group) -> None:
    form = {"what": "term", "scope": "chosen", "offset": [2, 3, 99]}
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "offsets", [3]))
    assert "1 message in flight, at offset 2." in owner.post(f"{DESK}settle/", form).content.decode()
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "offsets", [2]))
    assert owner.post(f"{DESK}settle/", form).status_code == 302


@pytest.mark.parametrize(
    ("what", "kind", "left", "dead", "said"),
    [
        ("ack", "group.acknowledged", [2], [], {}),
        ("nack", "group.released", [1, 2, 3], [], {"delay": 0}),
        ("term", "group.terminated", [2], [1, 3], {"reason": "bad"}),
    ],
)
def test_the_chosen_ones_are_settled_and_it_is_recorded(
    owner: Client,
    billing: Group,
    what: str,
    kind: str,
    left: list[int],
    dead: list[int],
    said: dict[str, Any],
) -> None:
    form = {"what": what, "scope": "chosen", "offset": [1, 3], "reason": "bad"}
    confirmed(owner, f"{DESK}settle/", form)
    assert (out(billing), letters(billing)) == (left, dead)
    assert Event.objects.get(kind=kind).after == {"offsets": [1, 3], "count": 2, **said}


def test_what_was_given_back_is_due_at_once_or_after_the_delay(owner: Client, billing: Group) -> None:
    for offset, delay in ((1, ""), (2, "1 h")):
        form = {"what": "nack", "scope": "chosen", "offset": offset, "delay": delay}
        confirmed(owner, f"{DESK}settle/", form)
    due = {row.offset: row.due_in_ms for row in selectors.in_flight(billing)[0]}
    assert due[1] == 0
    assert 3_590_000 < due[2] <= 3_600_000


def test_all_that_match_are_settled(owner: Client, billing: Group) -> None:
    confirmed(owner, f"{DESK}settle/", {"what": "ack", "scope": "all", "consumer": "c-1"})
    assert out(billing) == []


def test_all_that_match_a_filter_of_nothing_is_nothing(owner: Client, billing: Group) -> None:
    confirmed(owner, f"{DESK}settle/", {"what": "ack", "scope": "all", "consumer": "c-2"})
    assert out(billing) == [1, 2, 3]


@pytest.mark.parametrize("what", ["ack", "term", "nack"])
def test_a_link_to_a_preview_does_nothing(owner: Client, billing: Group, what: str) -> None:
    asked = {"what": what, "scope": "all", "seen_offsets": "1-3", "confirm": "orders"}
    page = owner.get(f"{DESK}settle/", asked)
    assert "3 messages in flight, offsets 1 to 3." in page.content.decode()
    assert out(billing) == [1, 2, 3]
    assert Event.objects.filter(kind__contains="settled").count() == 0


@pytest.mark.parametrize(("what", "left"), [("ack", [4, 5]), ("term", [4, 5]), ("nack", [1, 2, 3, 4, 5])])
def test_all_that_match_are_those_that_were_shown_and_what_came_since_stays_out(
    owner: Client, billing: Group, what: str, left: list[int]
) -> None:
    form = {"what": what, "scope": "all", "consumer": "c-1", "next": f"{DESK}?consumer=c-1"}
    page = owner.get(f"{DESK}settle/", form)
    assert "3 messages in flight, offsets 1 to 3." in page.content.decode()
    fetched(billing, limit=2)
    answer = owner.post(f"{DESK}settle/", {**form, **sent_back(page)})
    assert answer["Location"] == f"{DESK}?consumer=c-1"  # where what came since is seen
    assert out(billing) == left
    told = Event.objects.order_by("id").last()
    assert told is not None
    assert (told.after or {})["offsets"] == [1, 2, 3]


def test_what_was_shown_and_no_longer_matches_is_passed_over(owner: Client, billing: Group) -> None:
    form = {"what": "ack", "scope": "all", "consumer": "c-1"}
    page = owner.post(f"{DESK}settle/", form)
    stream_id = billing.stream.stream_id
    store.log().run(groups.nack(stream_id, "billing", "offsets", [1]))
    store.log().run(groups.fetch(stream_id, "billing", limit=1, consumer="c-2"))
    owner.post(f"{DESK}settle/", {**form, **sent_back(page)})
    assert out(billing) == [1]


def test_an_acknowledgement_that_covers_what_is_before_it_counts_that_and_asks_again_when_it_is_more(
    owner: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), ack="all")
    bury(group, count=1)
    fetched(group, limit=3)
    form = {"what": "ack", "scope": "chosen", "offset": 3}
    page = owner.post(f"{DESK}settle/", form)
    assert "2 messages in flight, offsets 2 to 3." in page.content.decode()
    store.log().run(dead_letters.replay(group.stream.stream_id, "billing", [1]))
    fetched(group, limit=1)
    again = owner.post(f"{DESK}settle/", {**form, **sent_back(page)})
    assert again.status_code == 409
    assert "3 messages in flight, offsets 1 to 3." in again.content.decode()
    assert out(group) == [1, 2, 3, 4]
    owner.post(f"{DESK}settle/", {**form, **sent_back(again)})
    assert out(group) == [4]


def test_giving_back_covers_nothing_before_it(owner: Client, make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), ack="all")
    fetched(group, limit=3)
    page = owner.post(f"{DESK}settle/", {"what": "nack", "scope": "chosen", "offset": 3}).content.decode()
    assert "1 message in flight, at offset 3." in page
    assert "cover everything before them" not in page


@pytest.mark.parametrize(("what", "asks"), [("ack", True), ("term", True), ("nack", False)])
def test_what_is_done_by_hand_on_a_production_stream_asks_for_its_name(
    owner: Client, make_stream: MakeStream, what: str, asks: bool
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES, labels={"env": "production"}))
    fetched(group, limit=3)
    form = {"what": what, "scope": "all"}
    page = owner.post(f"{DESK}settle/", form)
    assert ("Type orders to confirm" in page.content.decode()) is asks
    assert ("autofocus>Cancel" in page.content.decode()) is asks
    assert confirmed(owner, f"{DESK}settle/", form, confirm="other").status_code == (422 if asks else 302)
    assert out(group) == [1, 2, 3]
    assert confirmed(owner, f"{DESK}settle/", form, confirm="orders").status_code == 302


def test_a_thousand_settled_by_hand_ask_for_the_streams_name(owner: Client, make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=[b"1"] * LARGE_MESSAGES), max_ack_pending=2000)
    fetched(group, limit=LARGE_MESSAGES - 1)
    form = {"what": "ack", "scope": "all"}
    assert "to confirm" not in owner.post(f"{DESK}settle/", form).content.decode()
    fetched(group, limit=1)
    assert "Type orders to confirm" in owner.post(f"{DESK}settle/", form).content.decode()


@pytest.mark.parametrize(
    "form",
    [
        {"what": "ack", "scope": "chosen", "seen_offsets": ""},
        {"what": "ack", "scope": "chosen", "offset": "x", "seen_offsets": ""},
        {"what": "sing", "scope": "all"},
        {"what": "ack", "scope": "all", "deliveries": "-1"},
        {"what": "nack", "scope": "all", "delay": "90 d"},
        {"what": "ack", "scope": "all", "seen_offsets": "3-1"},
        {"what": "ack", "scope": "all", "seen_offsets": "1-99999"},
        {"what": "ack", "scope": "all", "seen_offsets": "all"},
        {},
    ],
)
def test_what_cannot_be_read_settles_nothing(owner: Client, billing: Group, form: dict[str, str]) -> None:
    assert owner.post(f"{DESK}settle/", {"seen_offsets": "1-3"} | form).status_code == 422
    assert out(billing) == [1, 2, 3]


def test_nobody_settles_without_the_right_to(viewer: Client, stranger: Client, billing: Group) -> None:
    form = {"what": "ack", "scope": "all", "seen_offsets": "1-3"}
    assert viewer.post(f"{DESK}settle/", form).status_code == 403
    boxes = viewer.get(DESK).content.decode()
    assert boxes.count('type="checkbox" disabled name="offset"') == 3
    assert '<td class="pick" title="This needs the right to consume.">' in boxes
    assert stranger.post(f"{DESK}settle/", form).status_code == 404
    assert out(billing) == [1, 2, 3]


SETTINGS = {"ack": "explicit", "ack_wait": "30", "max_deliver": "5", "max_ack_pending": "1000"}


@pytest.mark.parametrize(
    ("chosen", "field", "value"),
    [
        ({"ack_wait": "90"}, "ack_wait", 90.0),
        ({"ack": "all"}, "ack", "all"),
        ({"backoff": "1, 5.5"}, "backoff", [1.0, 5.5]),
        ({"max_deliver": ""}, "max_deliver", -1),
        ({"inactive_after": "2 h"}, "inactive_after", 7200.0),
        ({"inactive_after": "0.5 s"}, "inactive_after", 0.5),
        ({"ordered_by_key": "on"}, "ordered_by_key", True),
        ({"filter_keys": "a.*"}, "filter_keys", ["a.*"]),
        ({"description": "bills"}, "description", "bills"),
    ],
)
def test_a_setting_is_changed(
    owner: Client, billing: Group, chosen: dict[str, str], field: str, value: object
) -> None:
    saved = confirmed(owner, f"{PAGE}settings/", SETTINGS | chosen, confirm="billing")
    assert saved.status_code == 302
    billing.refresh_from_db()
    assert getattr(billing, field) == value
    assert out(billing) == [1, 2, 3]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ack_wait", "0"),
        ("backoff", "1, x"),
        ("backoff", "1 1 1 1 1 1"),
        ("inactive_after", "soon"),
        ("max_ack_pending", "0"),
    ],
)
def test_a_setting_that_is_refused_is_said_at_its_field(
    owner: Client, billing: Group, field: str, value: str
) -> None:
    answer = owner.post(f"{PAGE}settings/", SETTINGS | {field: value})
    assert answer.status_code == 422
    assert field in answer.context["form"].errors


def test_the_settings_that_stand_are_what_the_form_shows(owner: Client, billing: Group) -> None:
    form = owner.get(f"{PAGE}settings/").context["form"]
    shown = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    owner.post(f"{PAGE}settings/", {name: value for name, value in shown.items() if value is not False})
    assert not Event.objects.filter(kind="group.changed").exists()


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (3, "by interest: 3 messages that no other group wants are removed."),
        (1, "by interest: 1 message that no other group wants is removed."),
        (0, "by interest: 0 messages that no other group wants are removed."),
    ],
)
def test_what_goes_by_interest_with_a_group_is_said_where_it_is_deleted(
    owner: Client, make_stream: MakeStream, done: int, said: str
) -> None:
    stream = make_stream("orders", retention="interest", bodies=BODIES[:3])
    make_group(stream)
    other = make_group(stream, name="other")
    fetched(other, limit=3)
    store.log().run(groups.ack(stream.stream_id, "other", "up_to", [done]))
    assert said in owner.get(f"{PAGE}settings/").content.decode()
    owner.post(f"{PAGE}delete/", {"confirm": "billing", "seen_messages": done})
    assert not Group.objects.filter(name="billing").exists()
    store.log().run(trim.release(stream.stream_id))
    assert store.log().run(stats.inspect(stream.stream_id)).messages == 3 - done


def test_a_stream_that_keeps_by_limits_keeps_its_messages_without_a_group(
    owner: Client, billing: Group
) -> None:
    assert "The stream keeps its messages." in owner.get(f"{PAGE}settings/").content.decode()
