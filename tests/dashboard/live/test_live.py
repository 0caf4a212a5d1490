"""From the worker's samples to the page's socket: what changed, to whom it belongs, and to nobody else."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.layers import channel_layers
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.live import live_events, topics
from dashboard.live.lately import SHARED_S
from dashboard.live.live_events import StreamSampled
from dashboard.live.live_feed import REPEATS, SOONEST_S, Feed
from dashboard.live.live_groups import GroupFeed
from dashboard.urls import websocket_urlpatterns
from streams import store
from streams.access import MUST_CHANGE, SYSTEM, caller_for_user
from streams.log import groups, healths
from streams.models import Membership, Role, Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.groups import group_create, group_delete
from streams.services.open_pages import person_group, session_group, tell
from streams.services.streams import stream_create, stream_delete
from streams.upkeep.sampling import Sample
from tests.dashboard.conftest import MakeStream
from tests.waiting import LONG_ENOUGH_S, Stopwatch


def sample_of(stream: Stream, **figures: Any) -> Sample:
    fields: dict[str, Any] = {
        "stream_id": stream.stream_id,
        "workspace_id": stream.workspace_id,
        "name": stream.name,
        "at_ms": 10,
        "offset": 1,
        "first_offset": 1,
        "messages": 1,
        "bytes": 1,
        "committed": 0,
        "lag": 1,
        "duplicates": 0,
        "rate_in": 1.0,
        "bytes_in": 1.0,
        "rate_out": 0.0,
        "first_ms": 5,
        "last_ms": 5,
        "archived": 0,
    }
    return Sample(**{**fields, **figures})


class Page:
    """A browser's end of the socket."""

    def __init__(self, user: Any, *, session_key: str = "", **headers: str) -> None:
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": "/live/",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "subprotocols": [],
            "user": user,
        }
        if session_key:
            scope["session"] = SessionStore(session_key)
        application = URLRouter(websocket_urlpatterns)
        self.socket: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]

    async def open(self) -> bool:
        await self.socket.send_input({"type": "websocket.connect"})
        return bool((await self.socket.receive_output(LONG_ENOUGH_S))["type"] == "websocket.accept")

    async def say(self, frame: str) -> None:
        await self.socket.send_input({"type": "websocket.receive", "text": frame})

    async def subscribe(self, *topics: str) -> None:
        await self.say(json.dumps({"type": "subscribe", "topics": topics}))

    async def next(self, topic: str) -> dict[str, Any]:
        while True:
            heard = json.loads((await self.socket.receive_output(LONG_ENOUGH_S))["text"])
            if heard["topic"] == topic:
                return dict(heard)

    async def hears(self, *wanted: tuple[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
        """The next event of each topic and kind, in whichever order they come."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        while found.keys() != set(wanted):
            heard = json.loads((await self.socket.receive_output(LONG_ENOUGH_S))["text"])
            if (key := (heard["topic"], heard["event"]["kind"])) in wanted:
                found[key] = heard["event"]
        return found

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.socket.wait(LONG_ENOUGH_S)


@pytest.fixture
async def pages(transactional_db: None) -> AsyncIterator[list[Page]]:
    opened: list[Page] = []
    yield opened
    for page in opened:
        await page.close()


async def test_nobody_gets_no_socket(pages: list[Page]) -> None:
    assert not await Page(AnonymousUser()).open()


def asked(client: Client) -> Any:
    return client.get("/streams/").wsgi_request.user


async def opened(pages: list[Page], user: Any, *topics: str) -> Page:
    page = Page(user)
    assert await page.open()
    pages.append(page)
    await page.subscribe(*topics)
    return page


@pytest.fixture
def ours(owner: Client, make_stream: MakeStream) -> tuple[Any, Stream]:
    return asked(owner), make_stream("orders", bodies=[b"1", b"22"])


async def test_a_person_who_is_removed_loses_their_sockets(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    page = Page(ours[0])
    assert await page.open()
    await sync_to_async(tell)({person_group(ours[0].pk): "live.again"})
    assert (await page.socket.receive_output(LONG_ENOUGH_S))["code"] == 1013


async def test_a_one_time_password_opens_no_socket(ours: tuple[Any, Stream]) -> None:
    session = SessionStore()
    session[MUST_CHANGE] = True
    await sync_to_async(session.create)()
    assert not await Page(ours[0], session_key=str(session.session_key)).open()


async def test_a_login_that_ends_closes_its_sockets(pages: list[Page], ours: tuple[Any, Stream]) -> None:
    session = SessionStore()
    await sync_to_async(session.create)()
    page = Page(ours[0], session_key=str(session.session_key))
    assert await page.open()
    for session_key in ("another", str(session.session_key)):
        await sync_to_async(tell)({session_group(session_key): "live.end"})
    assert (await page.socket.receive_output(LONG_ENOUGH_S))["code"] == 4401
    pages.append(page)


async def test_a_subscription_is_answered_with_how_it_stands(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    page = await opened(pages, ours[0], "stream:orders")
    event = (await page.next("stream:orders"))["event"]
    assert (event["kind"], event["messages"], event["bytes"], event["lag"]) == ("stream_sampled", 2, 3, 2)
    assert event["span_s"] == (event["last_ms"] - event["first_ms"]) / 1000


async def test_a_sample_reaches_the_page_that_shows_its_stream(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    page = await opened(pages, ours[0], "stream:orders")
    await page.next("stream:orders")
    await live_events.send(live_events.sampled(sample_of(ours[1], messages=7, rate_in=2.5)))
    heard = await page.next("stream:orders")
    assert (heard["seq"], heard["event"]["messages"], heard["event"]["rate_in"]) == (2, 7, 2.5)
    assert heard["event"]["span_s"] == 0


async def test_an_event_costs_no_thread_for_each_page(
    pages: list[Page], ours: tuple[Any, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await opened(pages, ours[0], "stream:orders")
    await page.next("stream:orders")
    looked: list[bool] = []

    async def look() -> None:
        looked.append(True)

    monkeypatch.setattr("channels.consumer.aclose_old_connections", look)
    await live_events.send(live_events.sampled(sample_of(ours[1], messages=7)))
    assert (await page.next("stream:orders"))["event"]["messages"] == 7
    assert looked == []
    await page.subscribe("stream:orders")  # a subscription reads rows, and is looked after
    await live_events.send(live_events.sampled(sample_of(ours[1], messages=8, at_ms=20)))
    await page.next("stream:orders")
    assert looked == [True]


async def test_a_page_that_shows_something_else_hears_nothing(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    page = await opened(pages, ours[0], "processes")
    await page.next("processes")
    await live_events.send(live_events.sampled(sample_of(ours[1])))
    await page.subscribe("processes")
    assert (await page.next("processes"))["seq"] == 2


async def test_what_no_page_shows_costs_no_message(pages: list[Page], ours: tuple[Any, Stream]) -> None:
    page = await opened(pages, ours[0], "stream:orders")
    await page.next("stream:orders")
    # A subscription by pattern hears everything and counts as nobody who listens.
    spy = store.log().client.pubsub(ignore_subscribe_messages=True)
    spy.psubscribe("okmq.live__group__live.stream.*")
    spy.get_message(timeout=LONG_ENOUGH_S)
    unseen = [
        live_events.sampled(sample_of(ours[1], stream_id=f"unseen{n:06d}"[-12:], messages=n))
        for n in range(2500)
    ]
    await live_events.send_many([*unseen, live_events.sampled(sample_of(ours[1], messages=7))])
    assert (await page.next("stream:orders"))["event"]["messages"] == 7
    spy.ping()
    told = []
    while (heard := spy.get_message(timeout=LONG_ENOUGH_S))["type"] == "pmessage":
        told.append(heard["channel"].decode())
    spy.close()
    assert told == [f"okmq.live__group__live.stream.{ours[1].stream_id}"]


@pytest.fixture
def both(
    owner: Client, stranger: Client, make_stream: MakeStream, elsewhere: Workspace
) -> tuple[Any, Stream, Any, Stream]:
    mine, theirs = make_stream("orders", bodies=[b"1"]), make_stream("orders", within=elsewhere)
    return asked(owner), mine, asked(stranger), theirs


async def test_a_stream_of_the_same_name_elsewhere_is_not_heard(
    pages: list[Page], both: tuple[Any, Stream, Any, Stream]
) -> None:
    user, mine, _, theirs = both
    page = await opened(pages, user, "stream:orders", "overview")
    assert (await page.next("stream:orders"))["event"]["stream_id"] == mine.stream_id
    await live_events.send(live_events.sampled(sample_of(theirs, messages=999)))
    await live_events.send(live_events.sampled(sample_of(mine, messages=3)))
    assert (await page.next("stream:orders"))["event"]["messages"] == 3


async def test_a_page_of_another_workspace_hears_that_and_nothing_else(
    pages: list[Page], both: tuple[Any, Stream, Any, Stream]
) -> None:
    user, mine, _, theirs = both
    here, elsewhere = (live_events.workspace_topic(each.workspace_id) for each in (mine, theirs))
    page = await opened(pages, user, here, "stream:orders")
    await page.hears((here, "here"), STREAM_SAMPLED)
    await page.subscribe(elsewhere, "stream:orders", "overview", "processes")
    await page.hears((elsewhere, "gone"))
    await live_events.send(live_events.sampled(sample_of(mine, messages=3)))
    found = await asyncio.to_thread(
        lambda: topics.resolve(caller_for_user(user), [elsewhere, "stream:orders", "overview", "processes"])
    )
    assert list(found) == [elsewhere]
    await page.subscribe(here, "stream:orders")
    await page.hears((here, "here"), STREAM_SAMPLED)


async def test_open_pages_come_back_when_another_workspace_is_chosen(
    pages: list[Page], owner: Client, elsewhere: Workspace
) -> None:
    user = await asyncio.to_thread(asked, owner)
    await asyncio.to_thread(
        lambda: Membership.objects.create(user=user, workspace=elsewhere, role=Role.VIEWER)
    )
    session_key = str((await sync_to_async(lambda: owner.session)()).session_key)
    page = Page(user, session_key=session_key)
    assert await page.open()
    pages.append(page)
    await asyncio.to_thread(lambda: owner.post("/workspace/", {"workspace": elsewhere.name}))
    assert (await page.socket.receive_output(LONG_ENOUGH_S))["code"] == 1013
    back = Page(user, session_key=session_key)
    assert await back.open()
    pages.append(back)
    await back.subscribe(topic := live_events.workspace_topic(elsewhere.pk))
    await back.hears((topic, "here"))


async def test_the_overview_of_a_workspace_is_not_heard_in_another(
    pages: list[Page], both: tuple[Any, Stream, Any, Stream]
) -> None:
    user, mine, stranger, theirs = both
    page, other = (
        await opened(pages, user, "overview", "processes"),
        await opened(pages, stranger, "overview", "processes"),
    )
    for each in (page, other):
        await each.next("processes")
    feed = Feed()
    feed._last = {
        "a": live_events.sampled(sample_of(mine, messages=3)),
        "b": live_events.sampled(sample_of(theirs, messages=8)),
    }
    await live_events.send_many(feed.sums(at_ms=10))
    assert (await page.next("overview"))["event"]["messages"] == 3
    assert (await other.next("overview"))["event"]["messages"] == 8


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "[]",
        "{",
        '{"type":"subscribe"}',
        '{"type":"subscribe","topics":[1]}',
        '{"type":"shout","topics":[]}',
        "[" * 60_000,
    ],
)
async def test_a_malformed_frame_ends_the_socket(
    pages: list[Page], ours: tuple[Any, Stream], frame: str
) -> None:
    page = await opened(pages, ours[0], "overview")
    await page.say(frame)
    while (heard := await page.socket.receive_output(LONG_ENOUGH_S))["type"] != "websocket.close":
        assert heard["type"] == "websocket.send"
    assert heard["code"] == 4400


async def test_nothing_is_said_on_a_socket_that_was_closed(ours: tuple[Any, Stream]) -> None:
    page = Page(ours[0])
    assert await page.open()
    await page.say("{")
    await page.subscribe("stream:orders")
    await page.say("{")
    await page.close()
    said = page.socket.output_queue
    assert [said.get_nowait()["type"] for _ in range(said.qsize())] == ["websocket.close"]


async def test_the_beat_sums_all_streams_and_forgets_deleted_ones(
    ours: tuple[Any, Stream],
) -> None:
    feed = Feed()
    await feed._look_at_rows()
    (sums,) = [each for each in feed.sums(at_ms=1) if each.workspace_id == ours[1].workspace_id]
    assert (sums.streams, sums.messages, sums.bytes, sums.rate_in) == (1, 2, 3, 0.0)
    await asyncio.to_thread(Stream.objects.all().delete)
    await feed._look_at_rows()
    (sums,) = [each for each in feed.sums(at_ms=1) if each.workspace_id == ours[1].workspace_id]
    assert (sums.streams, sums.messages, sums.last_ms) == (0, 0, None)


async def test_the_beat_says_when_something_is_on_record_or_a_group_in_another_status(
    ours: tuple[Any, Stream],
) -> None:
    feed = Feed()
    await feed._look_at_rows()
    await feed._look_at_marks()

    def marks() -> tuple[int, int]:
        (sums,) = [each for each in feed.sums(at_ms=1) if each.workspace_id == ours[1].workspace_id]
        return sums.events_mark, sums.groups_mark

    before = marks()
    assert before[0] > 0
    await feed._look_at_marks()
    assert marks() == before
    await asyncio.to_thread(group_create, ours[1], name="billing", settings={}, actor=SYSTEM)
    await feed._look_at_marks()
    assert marks() == (before[0] + 1, before[1])
    await asyncio.to_thread(store.log().run, healths.change(at_ms=before[1] + 1))
    await feed._look_at_marks()
    assert marks() == (before[0] + 1, before[1] + 1)


async def test_what_could_not_be_sent_is_sent_with_the_next_beat(
    pages: list[Page], ours: tuple[Any, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await opened(pages, ours[0], "stream:orders")
    await page.next("stream:orders")
    feed = Feed()
    feed._beating = asyncio.create_task(asyncio.sleep(3600))  # no beat of its own
    with monkeypatch.context() as store_is_away:
        store_is_away.setitem(channel_layers.backends, "default", None)
        await feed.publish([sample_of(ours[1], messages=4)])
    await feed._deliver()
    assert (await page.next("stream:orders"))["event"]["messages"] == 4
    feed._beating.cancel()


async def test_what_nobody_heard_is_told_again_for_a_while(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    feed = Feed()
    feed._beating = asyncio.create_task(asyncio.sleep(3600))  # no beat of its own
    await feed.publish([sample_of(ours[1], messages=77, rate_in=0.0)])
    # The page listens only now, as a web process does that found the store again later than the worker.
    page = await opened(pages, ours[0], "stream:orders")
    assert (await page.next("stream:orders"))["event"]["messages"] == 2
    for beat in range(REPEATS):
        feed._repeat(now_ms=10_000 + 1000 * beat)
        await feed._deliver()
        assert (await page.next("stream:orders"))["event"]["messages"] == 77
    feed._repeat(now_ms=20_000)
    assert not feed._undelivered
    feed._beating.cancel()


async def test_what_comes_to_rest_is_told_as_it_slows_down(ours: tuple[Any, Stream]) -> None:
    feed = Feed()
    feed._beating = asyncio.create_task(asyncio.sleep(3600))  # no beat of its own
    await feed.publish([sample_of(ours[1], at_ms=10_000, rate_in=5.0)])
    heard = []
    for second in range(12, 40):
        feed._repeat(now_ms=1000 * second)
        heard += [(event.at_ms, event.rate_in) for event in feed._undelivered.values()]
        feed._undelivered.clear()
    assert [rate for _, rate in heard] == [0.5] * 9 + [0.0] * REPEATS
    assert [at_ms for at_ms, _ in heard] == [1000 * second for second in range(11, 11 + len(heard))]
    feed._beating.cancel()


async def test_a_beat_follows_the_samples_that_it_sums(pages: list[Page], ours: tuple[Any, Stream]) -> None:
    """By a clock of its own, it would come up to a second later than these, and tell of what is two seconds old."""
    page = await opened(pages, ours[0], "overview")
    feed, waited_s = Feed(), []
    for messages in (77, 78, 79, 80):
        await feed.publish([sample_of(ours[1], messages=messages)])
        watch = Stopwatch()
        while (await page.next("overview"))["event"]["messages"] != messages:
            pass
        waited_s.append(watch.elapsed_s)
    assert min(waited_s[1:]) < SOONEST_S + 0.25, waited_s
    feed.rest()
    assert feed._beating
    await asyncio.wait_for(feed._beating, LONG_ENOUGH_S)


async def test_while_another_worker_works_nothing_is_told_and_nothing_old_after_it(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    page = await opened(pages, ours[0], "overview")
    feed = Feed()
    await feed.publish([sample_of(ours[1], messages=77)])
    beat = (await page.next("overview"))["event"]
    while beat["messages"] != 77:  # what was there before comes first
        beat = (await page.next("overview"))["event"]
    feed.rest()
    assert feed._beating
    await asyncio.wait_for(feed._beating, LONG_ENOUGH_S)
    await feed.publish([])
    while beat["messages"] == 77:
        beat = (await page.next("overview"))["event"]
    assert beat["messages"] == 2, "as it stands now"
    feed.rest()
    await asyncio.wait_for(feed._beating, LONG_ENOUGH_S)


async def test_a_group_is_told_when_its_stream_changed(pages: list[Page], ours: tuple[Any, Stream]) -> None:
    user, stream = ours
    await asyncio.to_thread(group_create, stream, name="billing", settings={}, actor=SYSTEM)
    page = await opened(pages, user, "group:orders/billing", "stream:orders")
    first = (await page.next("group:orders/billing"))["event"]
    assert (first["kind"], first["lag"], first["status"]) == ("group_sampled", 2, "unknown")
    log = store.log()
    await asyncio.to_thread(lambda: log.run(groups.fetch(stream.stream_id, "billing", limit=1)))
    feed = GroupFeed()
    feed.changed([stream.stream_id, "anotherstrea"])
    told = (await page.next("group:orders/billing"))["event"]
    why = "Not enough samples yet to tell."
    assert (told["lag"], told["ack_pending"], told["reason"]) == (1, 1, why)
    while (worst := (await page.next("stream:orders"))["event"])["kind"] != "worst_group_sampled":
        pass
    assert (worst["worst"], worst["worst_state"]) == ("unknown", "empty")
    assert worst["worst_reason"] == f"billing: {why}"


@pytest.mark.parametrize(
    ("language", "why"),
    [
        ("de-DE,en;q=0.5", "Noch nicht genug Messungen für eine Aussage."),
        ("fr", "Not enough samples yet to tell."),
    ],
)
async def test_a_page_is_told_why_in_its_language(
    pages: list[Page], ours: tuple[Any, Stream], language: str, why: str
) -> None:
    user, stream = ours
    await asyncio.to_thread(group_create, stream, name="billing", settings={}, actor=SYSTEM)
    page = Page(user, accept_language=language)
    assert await page.open()
    pages.append(page)
    await page.subscribe("group:orders/billing", "stream:orders")
    worst = ("stream:orders", "worst_group_sampled")
    for _ in range(2):  # how it stands when it is asked for, and what is told after a change
        heard = await page.hears(GROUP_SAMPLED, worst)
        assert heard[GROUP_SAMPLED]["reason"] == why
        assert heard[worst]["worst_reason"] == f"billing: {why}"
        assert "said" not in heard[GROUP_SAMPLED] | heard[worst]
        GroupFeed().changed([stream.stream_id])


async def test_a_page_that_polls_is_told_why_in_its_language(owner: Client, ours: tuple[Any, Stream]) -> None:
    await asyncio.to_thread(group_create, ours[1], name="billing", settings={}, actor=SYSTEM)
    told = await asyncio.to_thread(
        owner.get, "/live/now/?topic=group:orders/billing", headers={"Accept-Language": "de"}
    )
    [heard] = told.json()["events"]
    assert heard["event"]["reason"] == "Noch nicht genug Messungen für eine Aussage."


STREAM_SAMPLED, STREAM_GONE = ("stream:orders", "stream_sampled"), ("stream:orders", "gone")
GROUP_SAMPLED, GROUP_GONE = ("group:orders/billing", "group_sampled"), ("group:orders/billing", "gone")


async def test_a_page_hears_that_its_stream_was_deleted_and_made_again(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    user, stream = ours
    await asyncio.to_thread(group_create, stream, name="billing", settings={}, actor=SYSTEM)
    page = await opened(pages, user, "stream:orders", "group:orders/billing", "stream:other")
    await page.hears(STREAM_SAMPLED, GROUP_SAMPLED, ("stream:other", "gone"))
    await asyncio.to_thread(stream_delete, stream, actor=SYSTEM)
    gone = await page.hears(STREAM_GONE, GROUP_GONE)
    assert [gone[STREAM_GONE]["stream_id"], gone[GROUP_GONE]["group_id"]] == [None, None]
    await live_events.send(live_events.sampled(sample_of(stream, messages=999)))  # on its way since before
    again, _ = await asyncio.to_thread(
        stream_create, stream.workspace, name="orders", settings={}, actor=SYSTEM
    )
    told = (await page.hears(STREAM_SAMPLED))[STREAM_SAMPLED]
    assert (told["stream_id"], told["messages"]) == (again.stream_id, 0)
    await live_events.send(live_events.sampled(sample_of(again, messages=7)))
    assert (await page.hears(STREAM_SAMPLED))[STREAM_SAMPLED]["messages"] == 7


async def test_a_page_hears_that_its_group_was_deleted_and_made_again(
    pages: list[Page], ours: tuple[Any, Stream]
) -> None:
    user, stream = ours
    group, _ = await asyncio.to_thread(group_create, stream, name="billing", settings={}, actor=SYSTEM)
    first = group.pk
    page = await opened(pages, user, "group:orders/billing")
    assert (await page.hears(GROUP_SAMPLED))[GROUP_SAMPLED]["group_id"] == first
    await asyncio.to_thread(group_delete, group, actor=SYSTEM)
    await page.hears(GROUP_GONE)
    again, _ = await asyncio.to_thread(group_create, stream, name="billing", settings={}, actor=SYSTEM)
    assert (await page.hears(GROUP_SAMPLED))[GROUP_SAMPLED]["group_id"] == again.pk != first


async def test_a_group_of_another_workspace_is_not_heard(
    pages: list[Page], both: tuple[Any, Stream, Any, Stream]
) -> None:
    _, mine, stranger, _ = both
    await asyncio.to_thread(group_create, mine, name="billing", settings={}, actor=SYSTEM)
    found = await asyncio.to_thread(
        lambda: topics.resolve(caller_for_user(stranger), ["group:orders/billing", "group:orders", "group:/"])
    )
    assert {name: topic.is_absent for name, topic in found.items()} == {
        "group:orders/billing": True,
        "group:/": True,
    }


def test_a_rate_that_was_not_told_again_has_ended(ours: tuple[Any, Stream]) -> None:
    feed = Feed()
    event: StreamSampled = live_events.sampled(sample_of(ours[1], at_ms=1_000, rate_in=9.0))
    feed._last = {event.stream_id: event}
    assert [each.rate_in for each in feed.sums(at_ms=2_000)] == [9.0]
    assert [each.rate_in for each in feed.sums(at_ms=9_000)] == [0.0]


def test_polling_tells_the_same_as_the_socket(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1", b"22"])
    answer = owner.get("/live/now/?topic=overview&topic=stream:orders&topic=stream:nope").json()
    told = {row["topic"]: row["event"] for row in answer["events"]}
    assert told.keys() == {"overview", "stream:orders", "stream:nope"}
    assert told["stream:orders"]["messages"] == told["overview"]["messages"] == 2
    assert told["stream:nope"]["kind"] == "gone"


def test_a_stream_of_the_system_is_heard_by_who_may_list_it_and_by_nobody_else(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    Stream.objects.filter(pk=stream.pk).update(internal=True)

    def told(client: Client) -> list[str]:
        events = client.get("/live/now/?topic=stream:orders").json()["events"]
        return [row["event"]["kind"] for row in events]

    assert (told(owner), told(viewer)) == (["stream_sampled"], ["gone"])


def test_browsers_that_come_back_together_share_one_look_at_the_samples(make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    topic = topics.Topic("stream:orders", "", stream)
    began = time.monotonic()
    with CaptureQueriesContext(connection) as queries:
        for _ in range(30):
            assert topics.snapshots([topic])[0][0] == topic
    looks = sum(METRICS_STREAM in each["sql"] for each in queries)
    assert looks <= 1 + (time.monotonic() - began) / SHARED_S
