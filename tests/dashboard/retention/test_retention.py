"""The retention editor: what would go is said first, exactly; saving asks as much as it hurts."""

import re
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dashboard.quantities import parse_duration, parse_size, written_duration, written_size
from streams import health, store
from streams.access import SYSTEM
from streams.log import census, config, groups, healths, standing, stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from streams.selectors import METRICS_STREAM
from streams.services.groups import group_create, group_seek
from streams.services.streams import internal_stream, stream_change
from streams.services.streams_told import registered, settings_of
from streams.upkeep.watching import sample_of
from tests.census import counting
from tests.costs import cost_of
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.moving import sampled
from tests.waiting import until

PAGE = "/streams/orders/retention/"
OPEN = {"discard": "old", "retention": "limits"}


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    return make_stream("orders", bodies=[b"12"] * 20, archive=False)


def held(stream: Stream) -> int:
    return store.log().run(stats.inspect(stream.stream_id)).messages


def test_the_effect_is_shown_as_a_part_and_as_a_page_and_changes_nothing(
    owner: Client, stream: Stream
) -> None:
    asked = {**OPEN, "max_messages": "19"}
    for headers in ({}, {"HX-Request": "true"}):
        text = owner.get(PAGE, asked, headers=headers).content.decode()
        assert "1 message (2 B) is removed now." in text
        assert "First offset afterwards: 2, as of offset 20." in text
        assert ("<html" in text) is not bool(headers)
    assert held(stream) == 20


def test_an_open_page_asks_again_what_its_stream_keeps_and_how_much_of_it_is_used(
    owner: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_stream("small", bodies=[b"12"] * 4, max_messages=10)

    def told(path: str) -> str:
        return str(owner.get(path).content.decode().strip())

    def is_said_alike(part: str, page: str) -> bool:
        """When it is full is another sentence in the next second."""
        return told(f"/streams/small/{part}") in told(f"/streams/small/{page}")

    until(lambda: is_said_alike("kept/", ""))
    shown = 'data-field="used" data-format="percent" data-of-messages="10">40 %</span>'
    assert shown in told("/streams/small/kept/")
    assert shown in told("/streams/?name=small")
    assert stranger.get("/streams/small/kept/").status_code == 404
    assert "At the rate of the last" in told("/streams/small/kept/?of=groups")
    until(lambda: is_said_alike("kept/?of=groups", "retention/"))


def test_a_group_that_would_lose_unread_messages_is_named(owner: Client, stream: Stream) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    text = owner.get(PAGE, {**OPEN, "max_messages": "15"}).content.decode()
    assert "Group billing loses 5 unread messages." in text


def test_of_many_groups_those_that_lose_most_are_named_and_all_are_counted(
    owner: Client, stream: Stream
) -> None:
    for number in range(25):
        group_create(stream, name=f"g{number:02}", settings={}, actor=SYSTEM)
    taken = store.log().run(groups.fetch(stream.stream_id, "g03", limit=4)).deliveries
    store.log().run(groups.ack(stream.stream_id, "g03", "leases", [each.lease for each in taken]))
    shown = owner.get(PAGE, {**OPEN, "max_messages": "15"})
    text = shown.content.decode()
    named = re.findall(r"Group (\S+) loses 5 unread messages\.", text)
    assert named == ["g00", "g01", "g02", "g04", "g05"]
    assert "… 25 groups, 121 in all" in text
    assert len(sent_back(shown)["losing"]) == 25
    text = owner.get(PAGE, {**OPEN, "max_messages": "100000"}).content.decode()
    assert len(re.findall(r"group \S+ reaches the edge of", text)) == 5
    assert "… 25 groups in all are at an edge, or come to one." in text


def test_where_the_stream_and_its_groups_are_going_is_said_beside_the_effect(
    owner: Client, stream: Stream
) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    for query in ({}, {**OPEN, "max_messages": "100000"}):
        assert "At the rate of the last" in owner.get(PAGE, query).content.decode()
    text = owner.get(PAGE, {**OPEN, "max_messages": "100000"}).content.decode()
    assert "It reaches max messages in" in text
    assert "At its current rate, group billing reaches the edge of max messages in" in text


def test_what_a_limit_a_key_has_yet_to_look_at_is_said(owner: Client, stream: Stream) -> None:
    stream.max_messages_per_key = 1
    told = [(registered(stream), settings_of(stream))]
    store.log().run(config.streams_publish(told))
    assert "20 messages are yet to be scanned." in owner.get(PAGE).content.decode()
    store.log().run(trim.keep_newest_of_keys(stream.stream_id))
    assert "yet to be scanned" not in owner.get(PAGE).content.decode()


def test_a_small_loss_is_saved_by_its_button(owner: Client, stream: Stream) -> None:
    wanted = {**OPEN, "max_messages": "19"}
    shown = owner.get(PAGE, wanted)
    assert "Save and remove 1 message<" in shown.content.decode()
    answer = owner.post(PAGE, {**wanted, **sent_back(shown)}, follow=True)
    assert "Retention saved. 1 message is being removed." in answer.content.decode()
    assert held(stream) == 19


def test_what_removes_nothing_is_said_to_be_saved_and_no_more(owner: Client, stream: Stream) -> None:
    wanted = {**OPEN, "max_messages": "21"}
    answer = owner.post(PAGE, {**wanted, **sent_back(owner.get(PAGE, wanted))}, follow=True)
    assert "Retention saved.<" in answer.content.decode()


def test_a_large_loss_asks_for_the_name(owner: Client, stream: Stream) -> None:
    limits = {**OPEN, "max_messages": "5"}
    wanted = {**limits, **sent_back(owner.get(PAGE, limits))}
    assert owner.post(PAGE, wanted).status_code == 422
    assert held(stream) == 20
    assert owner.post(PAGE, {**wanted, "confirm": "orders"}).status_code == 302
    assert held(stream) == 5


def test_a_field_that_is_left_with_a_wrong_limit_is_marked_and_no_more_once_it_is_right(
    owner: Client, stream: Stream
) -> None:
    def told(limit: str, *, is_marked: bool, field: str = "ttl") -> tuple[int, str]:
        asked = {**OPEN, "ttl": limit, "field": field, "marked": str(int(is_marked))}
        answer = owner.get(PAGE, asked, headers={"HX-Request": "true"})
        return answer.status_code, answer.content.decode()

    status, wrong = told("soon", is_marked=False)
    assert status == 200
    assert 'aria-invalid="true"' in wrong
    assert "is-invalid" in wrong
    assert 'value="soon"' in wrong
    assert "<html" not in wrong
    assert told("soon", is_marked=True)[0] == 204, "it is marked already, and may be typed in again"
    assert told("1 d", is_marked=False)[0] == 204
    status, right = told("1 d", is_marked=True)
    assert (status, "invalid" in right, 'value="1 d"' in right) == (200, False, True)
    assert told("soon", is_marked=False, field="max_bytes")[0] == 204
    assert told("soon", is_marked=False, field="stranger")[0] == 204


def test_cancel_has_the_focus_on_a_page_that_would_remove_something(owner: Client, stream: Stream) -> None:
    def focused(limit: str, **headers: str) -> bool:
        page = owner.get(PAGE, {**OPEN, "max_messages": limit}, headers=headers).content.decode()
        return "autofocus>Cancel<" in page

    assert focused("5")
    assert not focused("100"), "nothing goes"
    assert not focused("5", **{"HX-Request": "true"}), "it would leave the field that one types in"
    wanted = {**OPEN, "max_messages": "5", **sent_back(owner.get(PAGE, {**OPEN, "max_messages": "5"}))}
    assert "autofocus>Cancel<" in owner.post(PAGE, wanted).content.decode()


@pytest.mark.parametrize(("limit", "asked"), [("100", False), ("1000", True)])
def test_saving_asks_again_when_one_message_more_would_go_than_was_shown(
    owner: Client, make_stream: MakeStream, limit: str, asked: bool
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 1100, archive=False)
    wanted = {**OPEN, "max_messages": limit, "confirm": "orders"}
    shown = sent_back(owner.get(PAGE, wanted))
    if asked:
        make_more(stream, 1)
    answer = owner.post(PAGE, {**wanted, **shown})
    assert answer.status_code == (409 if asked else 302)
    assert ("Nothing was saved" in answer.content.decode()) is asked
    assert held(stream) == (1101 if asked else int(limit))


def test_what_was_never_shown_is_not_saved(owner: Client, stream: Stream) -> None:
    assert owner.post(PAGE, {**OPEN, "max_messages": "19", "confirm": "orders"}).status_code == 409
    assert held(stream) == 20


def test_saving_asks_again_when_a_group_would_lose_one_more_than_was_shown(
    owner: Client, stream: Stream
) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    taken = store.log().run(groups.fetch(stream.stream_id, "billing", limit=1)).deliveries
    store.log().run(groups.ack(stream.stream_id, "billing", "leases", [each.lease for each in taken]))
    wanted = {**OPEN, "max_messages": "10", "confirm": "orders"}
    shown = sent_back(owner.get(PAGE, wanted))
    assert shown["losing"] == ["9:billing"]
    group_seek(stream.groups.get(name="billing"), next_offset=1, actor=SYSTEM)
    again = owner.post(PAGE, {**wanted, **shown})
    assert (again.status_code, sent_back(again)["losing"]) == (409, ["10:billing"])
    assert owner.post(PAGE, {**wanted, **sent_back(again)}).status_code == 302


@pytest.mark.parametrize(
    ("losing", "status"), [("10:ledger", 409), ("10:billing", 302), ("", 409), ("x", 409)]
)
def test_saving_asks_again_when_another_group_would_lose_what_was_seen(
    owner: Client, stream: Stream, losing: str, status: int
) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    wanted = {**OPEN, "max_messages": "10", "confirm": "orders"}
    shown = sent_back(owner.get(PAGE, wanted))
    assert owner.post(PAGE, {**wanted, **shown, "losing": losing}).status_code == status


def test_of_a_stream_that_moves_the_most_that_may_go_within_a_minute_is_shown_and_held_to(
    owner: Client, stream: Stream
) -> None:
    metrics, now = internal_stream(METRICS_STREAM, archive=False), time.time()
    for ago_s in range(59, -1, -1):
        sampled(metrics, at_s=now - ago_s, moved={stream: 0.5})
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    wanted = {**OPEN, "max_messages": "19", "confirm": "orders"}
    shown = owner.get(PAGE, wanted)
    text = shown.content.decode()
    assert "1 message (2 B) is removed now." in text
    assert "within a minute it may be up to 31 messages" in text
    assert "Save and remove up to 31 messages" in text
    assert re.search(r'id="effect-again" [^>]*max_messages=19[^>]* hx-trigger="load delay:1[012]s"', text)
    asked_again = owner.get(PAGE, wanted, headers={"HX-Request": "true", "HX-Trigger": "effect-again"})
    assert b'hx-preserve="true"' in asked_again.content, "what was typed stays"
    assert "hx-preserve" not in text
    assert sent_back(shown)["losing"] == ["31:billing"]
    make_more(stream, 31)
    assert owner.post(PAGE, {**wanted, **sent_back(shown)}).status_code == 409
    store.log().run(trim.purge(stream.stream_id, below=3))
    saved = owner.post(PAGE, {**wanted, **sent_back(shown)}, follow=True)
    assert "Retention saved. At least 30 messages are being removed." in saved.content.decode()
    assert held(stream) == 19


def test_what_came_at_once_is_not_taken_for_a_minute_of_it(owner: Client, stream: Stream) -> None:
    metrics, now = internal_stream(METRICS_STREAM, archive=False), time.time()
    sampled(metrics, at_s=now - 1, moved={stream: 20})
    sampled(metrics, at_s=now, moved={stream: 0})
    text = owner.get(PAGE, {**OPEN, "max_messages": "15"}).content.decode()
    assert "5 messages (10 B) are removed now." in text
    assert "within a minute it may be up to 25 messages" in text
    assert "Save and remove up to 25 messages" in text


def test_who_is_asked_again_is_shown_the_pace_that_was_seen_meanwhile(owner: Client, stream: Stream) -> None:
    """So that what moves otherwise than by its rate, such as with age, can be saved, too."""
    wanted = {**OPEN, "max_messages": "19", "confirm": "orders"}
    shown = sent_back(owner.get(PAGE, wanted))
    shown["seen_at"] = [str(int(shown["seen_at"][0]) - 10_000)]  # ten seconds ago
    make_more(stream, 20)
    again = owner.post(PAGE, {**wanted, **shown})
    assert again.status_code == 409
    assert again.context["effect"].shown.messages == 21
    assert 21 + 110 < again.context["effect"].shown.most <= 21 + 120
    store.log().run(append(stream.stream_id, [NewMessage(id=f"y{n}", body=b"1") for n in range(100)]))
    assert owner.post(PAGE, {**wanted, **sent_back(again)}).status_code == 302


def make_more(stream: Stream, count: int) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id=f"x{n}", body=b"1") for n in range(count)]))


@pytest.mark.parametrize("wrong", [{"ttl": "soon"}, {"max_bytes": "-1"}, {"max_messages": "0"}])
def test_what_cannot_be_read_is_said(owner: Client, stream: Stream, wrong: dict[str, str]) -> None:
    assert "notice bad" in owner.get(PAGE, {**OPEN, **wrong}).content.decode()
    assert owner.post(PAGE, {**OPEN, **wrong}).status_code == 422


def test_what_saving_would_refuse_is_not_previewed(owner: Client, make_stream: MakeStream) -> None:
    stream_change(make_stream("shut", bodies=[b"1"] * 3), changes={"sealed": True}, actor=SYSTEM)
    page = owner.get("/streams/shut/retention/", {**OPEN, "max_messages": "1"}).content.decode()
    assert "is sealed: it is read-only." in page
    assert "removed now" not in page


def test_a_viewer_sees_the_effect_and_cannot_save(viewer: Client, stream: Stream) -> None:
    assert "is removed now" in viewer.get(PAGE, {**OPEN, "max_messages": "19"}).content.decode()
    assert viewer.post(PAGE, {**OPEN, "max_messages": "19"}).status_code == 403


@pytest.mark.parametrize("seconds", [1, 59, 60, 5400, 86_400, 604_800])
def test_a_duration_is_written_as_it_is_read(seconds: int) -> None:
    assert parse_duration(written_duration(seconds)) == seconds


@pytest.mark.parametrize("size", [1, 1023, 1024, 1536, 10 * 1024**3])
def test_a_size_is_written_as_it_is_read(size: int) -> None:
    assert parse_size(written_size(size)) == size


def test_an_effect_that_is_not_complete_says_so_and_is_when_it_was_counted(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("streams.selectors.retention.WITHIN_S", 0.0)
    log, asked = store.log(), {**OPEN, "max_messages_per_key": "1"}
    for first in range(0, 30_000, 1000):
        batch = [
            NewMessage(id=f"more-{n}", body=b"1", key="a" if n >= 29_990 else f"k.{n}")
            for n in range(first, first + 1000)
        ]
        log.run(append(stream.stream_id, batch))
    text = owner.get(PAGE, asked).content.decode()
    assert "No message to remove was found." in text
    assert "Not all messages have been scanned yet: 2 % are counted." in text
    assert f'hx-get="{PAGE}?' in text
    assert 'name="confirm"' in text, "what goes is not known: the name has to be typed"
    assert owner.post(PAGE, asked).status_code == 422
    with counting(settings.ENV.redis_url, tmp_path):
        until(lambda: "9 messages (9 B) are removed now." in owner.get(PAGE, asked).content.decode())
        assert "Not all messages" not in owner.get(PAGE, asked).content.decode()


def test_an_effect_that_will_not_be_complete_says_why(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "MOST_KEYS", 1)
    store.log().run(append(stream.stream_id, [NewMessage(id=f"k{n}", body=b"1", key=f"k{n}") for n in "abc"]))
    text = owner.get(PAGE, {**OPEN, "max_messages_per_key": "1"}).content.decode()
    assert "The stream has more keys than can be counted (two million)" in text
    assert "Refresh" not in text
    assert 'name="confirm"' in text


def test_what_lies_beyond_a_year_is_not_told_to_the_day(owner: Client, make_stream: MakeStream) -> None:
    far = 9_000_000_000_000
    stream = make_stream("orders", bodies=[b"12"] * 20, archive=False, max_messages=far)
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    for text in (
        owner.get(PAGE).content.decode(),
        owner.get("/streams/orders/kept/?of=groups").content.decode(),
        owner.get(PAGE, {**OPEN, "max_messages": str(far + 1)}).content.decode(),
    ):
        assert "the oldest more than a year old." in text
        assert "It reaches max messages in more than a year." in text
        assert "group billing reaches the edge of max messages in more than a year" in text
    for page in ("/streams/orders/kept/", "/streams/orders/"):
        assert "max messages reached in more than a year</dd>" in owner.get(page).content.decode()


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({"max_messages": "20"}, "max messages: what is published removes messages it has not acknowledged."),
        ({"ttl": "1 s"}, "max age: messages it has not acknowledged are removed as they reach that age."),
    ],
)
def test_a_group_at_the_edge_of_a_stream_at_rest_is_not_told_to_be_losing(
    owner: Client, stream: Stream, limit: dict[str, str], told: str
) -> None:
    group_create(stream, name="behind", settings={}, actor=SYSTEM)
    until(lambda: f"Group behind is at the edge of {told}" in owner.get(PAGE, OPEN | limit).content.decode())


def watched(stream: Stream, name: str) -> None:
    """As the worker looks at a group."""
    log = store.log()
    seen = sample_of(log.run(standing.inspect(stream.stream_id, name)), held=0, polls=0)
    log.run(healths.put(stream.stream_id, name, health.written(health.looked(None, seen))))


def test_groups_that_the_worker_looks_at_are_not_looked_at_closely_again(
    owner: Client, stream: Stream
) -> None:
    names = [f"g{number:02}" for number in range(40)]
    for name in names:
        group_create(stream, name=name, settings={}, actor=SYSTEM)
    asked = {**OPEN, "max_messages": "100000"}
    before = owner.get(PAGE, asked).context["effect"].outlook
    closely = cost_of(lambda: owner.get(PAGE))
    for name in names:
        watched(stream, name)
    after = owner.get(PAGE, asked).context["effect"].outlook
    assert list(after.falls) == list(before.falls) == names
    for name in names:
        closer, told = before.falls[name], after.falls[name]
        assert told.limit == closer.limit == "max_messages"
        # Their rates differ: the hour that they are the mean of has only begun.
        assert told.in_s * after.rate_in == pytest.approx(closer.in_s * before.rate_in)
    cheaply = cost_of(lambda: owner.get(PAGE))
    assert closely.commands - cheaply.commands >= 2 * len(names)
    watched(stream, "g00")
    owner.post("/streams/orders/publish/", {"id": "new", "body": "1"})
    assert owner.get(PAGE, asked).context["effect"].outlook.falls["g00"].in_s > 0
