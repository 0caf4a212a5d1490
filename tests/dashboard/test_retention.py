"""The retention editor: what would go is said first, exactly; saving asks as much as it hurts."""

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dashboard.quantities import parse_duration, parse_size, written_duration, written_size
from streams import health, store
from streams.access import SYSTEM
from streams.log import census, healths, standing, stats
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from streams.services.groups import group_create
from streams.upkeep.watching import sample_of
from tests.census import counting
from tests.costs import cost_of
from tests.dashboard.conftest import MakeStream
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
        assert "1 message (2 B) goes now." in text
        assert "First offset then: 2, as of offset 20." in text
        assert ("<html" in text) is not bool(headers)
    assert held(stream) == 20


def test_a_group_that_would_lose_unread_messages_is_named(owner: Client, stream: Stream) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    text = owner.get(PAGE, {**OPEN, "max_messages": "15"}).content.decode()
    assert "Group billing loses 5 unread messages." in text


def test_where_the_stream_and_its_groups_are_going_is_said_beside_the_effect(
    owner: Client, stream: Stream
) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    for query in ({}, {**OPEN, "max_messages": "100000"}):
        assert "At the rate of the last" in owner.get(PAGE, query).content.decode()
    text = owner.get(PAGE, {**OPEN, "max_messages": "100000"}).content.decode()
    assert "It comes to max_messages in" in text
    assert "Group billing falls off the edge (max_messages) in" in text


def test_a_small_loss_is_saved_by_its_button(owner: Client, stream: Stream) -> None:
    answer = owner.post(PAGE, {**OPEN, "max_messages": "19", "seen": "1"}, follow=True)
    assert "What the stream keeps was changed." in answer.content.decode()
    assert held(stream) == 19


def test_a_large_loss_asks_for_the_name(owner: Client, stream: Stream) -> None:
    wanted = {**OPEN, "max_messages": "5", "seen": "15"}
    assert owner.post(PAGE, wanted).status_code == 422
    assert held(stream) == 20
    assert owner.post(PAGE, {**wanted, "confirm": "orders"}).status_code == 302
    assert held(stream) == 5


def test_saving_asks_again_when_much_more_would_go_than_was_seen(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 1000, archive=False)
    make_more(stream, 500)
    answer = owner.post(PAGE, {**OPEN, "max_messages": "5", "seen": "0", "confirm": "orders"})
    assert answer.status_code == 409
    assert "Nothing was saved" in answer.content.decode()
    assert held(stream) == 1500


@pytest.mark.parametrize("group", [None, "billing"])
def test_saving_asks_again_when_little_more_would_go_than_was_seen(
    owner: Client, stream: Stream, group: str | None
) -> None:
    if group:
        group_create(stream, name=group, settings={}, actor=SYSTEM)
    make_more(stream, 8)
    seen = {"seen": "9", "losing": "1:billing"} if group else {"seen": "1"}
    answer = owner.post(PAGE, {**OPEN, "max_messages": "19", **seen, "confirm": "orders"})
    assert answer.status_code == 409
    assert held(stream) == 28


@pytest.mark.parametrize(("losing", "status"), [("9:ledger", 409), ("9:billing", 302), ("", 409), ("x", 409)])
def test_saving_asks_again_when_another_group_would_lose_what_was_seen(
    owner: Client, stream: Stream, losing: str, status: int
) -> None:
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    make_more(stream, 8)
    shown = owner.get(PAGE, {**OPEN, "max_messages": "19"}).content.decode()
    assert '<input type="hidden" name="losing" value="9:billing">' in shown
    form = {**OPEN, "max_messages": "19", "seen": "9", "losing": losing, "confirm": "orders"}
    assert owner.post(PAGE, form).status_code == status


def make_more(stream: Stream, count: int) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id=f"x{n}", body=b"1") for n in range(count)]))


@pytest.mark.parametrize("wrong", [{"ttl": "soon"}, {"max_bytes": "-1"}, {"max_messages": "0"}])
def test_what_cannot_be_read_is_said(owner: Client, stream: Stream, wrong: dict[str, str]) -> None:
    assert "notice bad" in owner.get(PAGE, {**OPEN, **wrong}).content.decode()
    assert owner.post(PAGE, {**OPEN, **wrong, "seen": "0"}).status_code == 422


def test_a_viewer_sees_the_effect_and_cannot_save(viewer: Client, stream: Stream) -> None:
    assert "goes now" in viewer.get(PAGE, {**OPEN, "max_messages": "19"}).content.decode()
    assert viewer.post(PAGE, {**OPEN, "max_messages": "19", "seen": "1"}).status_code == 403


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
    assert "No message was found that goes." in text
    assert "Not all messages were looked at yet: 2 % are counted." in text
    assert f'hx-get="{PAGE}?' in text
    assert 'name="confirm"' in text, "what goes is not known: the name has to be typed"
    assert owner.post(PAGE, {**asked, "seen": "0"}).status_code == 422
    with counting(settings.ENV.redis_url, tmp_path):
        until(lambda: "9 messages (9 B) go now." in owner.get(PAGE, asked).content.decode())
        assert "Not all messages" not in owner.get(PAGE, asked).content.decode()


def test_an_effect_that_will_not_be_complete_says_why(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "MOST_KEYS", 1)
    store.log().run(append(stream.stream_id, [NewMessage(id=f"k{n}", body=b"1", key=f"k{n}") for n in "abc"]))
    text = owner.get(PAGE, {**OPEN, "max_messages_per_key": "1"}).content.decode()
    assert "The stream has more keys than are counted (two million)" in text
    assert "Look again" not in text
    assert 'name="confirm"' in text


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
