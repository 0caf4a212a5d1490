"""The socket of who is narrowed to some streams: it tells of these and their sums, and of nothing else."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.live import live_events
from dashboard.live.live_feed import Feed
from streams.access import SYSTEM
from streams.models import Alert, AlertRule, Membership, Role, Stream, Workspace
from streams.services.alerts import rule_create
from streams.services.groups import group_create
from streams.services.open_pages import absent_group, consumers_group, heard, stream_group
from streams.services.people import person_change
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream
from tests.dashboard.live.test_live import Page, opened, pages, sample_of  # noqa: F401
from tests.waiting import LONG_ENOUGH_S

PATTERNS = ["ord*"]


@pytest.fixture
def both(workspace: Workspace, make_stream: MakeStream) -> tuple[Any, Stream, Stream]:
    """A person who is narrowed, a stream inside, and one outside, each with a group."""
    user = get_user_model().objects.create_user("ann")
    Membership.objects.create(user=user, workspace=workspace, role=Role.OPERATOR, streams=PATTERNS)
    inside, outside = make_stream("orders", bodies=[b"1"]), make_stream("canary", bodies=[b"1", b"2"])
    for stream in (inside, outside):
        group_create(stream, name="billing", settings={}, actor=SYSTEM)
    return user, inside, outside


def membership_of(user: Any) -> Membership:
    return Membership.objects.get(user=user)


async def fed(feed: Feed) -> None:
    """A beat of the worker."""
    await feed._look_at_rows()
    await feed._look_at_marks()
    await live_events.send_many([*feed.sums(at_ms=10), *await feed._narrowed_sums(at_ms=10)])


async def test_the_sums_are_of_the_streams_inside(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
    owner: Client,
) -> None:
    user, inside, outside = both
    wide = await asyncio.to_thread(lambda: owner.get("/").wsgi_request.user)
    page, other = [await opened(pages, each, "overview", "processes") for each in (user, wide)]
    for each in (page, other):
        await each.next("processes")
    feed = Feed()
    feed._last = {
        stream.stream_id: live_events.sampled(sample_of(stream, messages=messages, rate_in=rate, at_ms=10))
        for stream, messages, rate in ((inside, 3, 2.0), (outside, 1237, 99.0))
    }
    await fed(feed)
    told, told_all = [(await each.next("overview"))["event"] for each in (page, other)]
    assert (told["streams"], told["messages"], told["rate_in"]) == (1, 3, 2.0)
    assert (told_all["streams"], told_all["messages"], told_all["rate_in"]) == (2, 1240, 101.0)
    assert set(told) == set(told_all), "and not by which patterns"
    assert told["beat"] == told_all["beat"]


async def test_alerts_and_events_outside_move_nothing(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
) -> None:
    user, inside, outside = both
    page, feed = await opened(pages, user, "overview", "processes"), Feed()
    await page.next("processes")

    async def told() -> tuple[Any, ...]:
        await fed(feed)
        event = (await page.next("overview"))["event"]
        return event["alerts"], event["alerts_mark"], event["events_mark"]

    def happens(stream: Stream) -> None:
        stream_change(stream, changes={"description": "another"}, actor=SYSTEM)
        rule = AlertRule.objects.filter(name="all").first() or rule_create(
            stream.workspace, name="all", settings={"stream": "*", "watch": "lag", "limit": 2}, actor=SYSTEM
        )
        Alert.objects.create(rule=rule, stream=stream.name, began_at="2026-01-01T00:00Z", value=3)

    before = await told()
    await asyncio.to_thread(happens, outside)
    assert await told() == before
    await asyncio.to_thread(happens, inside)
    after = await told()
    assert after[0] == 1
    assert after[1] != before[1]
    assert after[2] > before[2]


async def test_what_lies_outside_is_not_heard(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
) -> None:
    user, inside, outside = both
    page = await opened(pages, user, "stream:canary", "group:canary/billing", "stream:orders")
    gone = await page.hears(("stream:canary", "gone"), ("group:canary/billing", "gone"))
    assert all(event["stream_id"] is event["group_id"] is None for event in gone.values())
    await live_events.send(live_events.sampled(sample_of(outside, messages=999)))
    await live_events.send(live_events.sampled(sample_of(inside, messages=7)))
    while (told := await page.next("stream:orders"))["event"].get("messages") != 7:
        assert told["event"].get("stream_id") in (inside.stream_id, None)
    assert page.socket.output_queue.empty()


async def test_that_something_is_made_or_deleted_outside_is_not_listened_for(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
) -> None:
    user, inside, outside = both
    asked = ("stream:canary", "group:canary/billing", "stream:canary-2", "stream:orders", "stream:orders-2")
    page = await opened(pages, user, *asked)
    await page.hears(*((topic, "gone") for topic in asked if topic != "stream:orders"))
    room = inside.workspace_id
    groups = [
        *(stream_group(each.stream_id) for each in (inside, outside)),
        *(absent_group(room, name) for name in ("canary", "canary-2", "orders-2")),
        consumers_group(outside.stream_id, "billing"),
        absent_group(room, "canary", "billing"),
        live_events.workspace_group(room),
    ]
    assert await heard(groups) == {stream_group(inside.stream_id), absent_group(room, "orders-2")}


@pytest.mark.parametrize("streams", [["canary"], []])
async def test_other_patterns_bring_open_pages_back_at_once(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
    streams: list[str],
) -> None:
    user = both[0]
    page = await opened(pages, user, "stream:canary")
    await page.hears(("stream:canary", "gone"))
    held = await asyncio.to_thread(membership_of, user)
    await sync_to_async(person_change)(held, changes={"streams": streams}, actor=SYSTEM, rules_all=True)
    assert (await page.socket.receive_output(LONG_ENOUGH_S))["code"] == 1013
    back = await opened(pages, user, "stream:canary")
    await back.hears(("stream:canary", "stream_sampled"))


async def test_the_same_patterns_end_no_socket_and_are_no_event(
    pages: list[Page],  # noqa: F811
    both: tuple[Any, Stream, Stream],
) -> None:
    user, inside, _ = both
    page = await opened(pages, user, "stream:orders")
    held = await asyncio.to_thread(membership_of, user)
    await sync_to_async(person_change)(held, changes={"streams": PATTERNS}, actor=SYSTEM, rules_all=True)
    await page.next("stream:orders")
    await live_events.send(live_events.sampled(sample_of(inside, messages=7)))
    while (await page.next("stream:orders"))["event"].get("messages") != 7:
        pass


async def test_one_sum_serves_all_who_are_narrowed_alike(both: tuple[Any, Stream, Stream]) -> None:
    workspace = both[1].workspace_id
    assert live_events.workspace_group(workspace, ["a", "b*"]) == live_events.workspace_group(
        workspace, ["b*", "a", "a"]
    )
    assert live_events.workspace_group(workspace, ["a"]) != live_events.workspace_group(workspace, ["b*"])
    assert live_events.workspace_group(workspace, ["a"]) != live_events.workspace_group(workspace + 1, ["a"])
