"""The server of the streams in memory hangs, and the durable one is well: open pages say what fresh ones do, soon."""

import asyncio
import csv
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.live import rates
from dashboard.live.live_feed import Feed
from streams import store
from streams.access import SYSTEM, caller_for_user
from streams.log.client import Log
from streams.models import Workspace
from streams.services.groups import group_create
from streams.upkeep import processes
from streams.upkeep.processes import ProcessStatus
from tests import servers
from tests.dashboard.conftest import MakeStream
from tests.dashboard.live.test_live import Page
from tests.waiting import LONG_ENOUGH_S, Stopwatch, until

LISTS = ("/", "/streams/", "/streams/?sort=-messages", "/groups/", "/streams/kept/", "/streams/memo/groups/")
FIGURES = (
    "messages",
    "bytes",
    "offset",
    "first_offset",
    "lag",
    "committed",
    "duplicates",
    "rate_in",
    "last_ms",
)


@pytest.fixture
def volatile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Store]:
    """A server of the streams in memory of the test's own, which it may stop."""
    with (
        servers.store(tmp_path, fsync=None) as running,
        closing(Log(settings.ENV.redis_url, memory_url=running.url)) as log,
    ):
        monkeypatch.setattr(store, "log", lambda: log)
        yield running


@pytest.fixture
def streams(volatile: servers.Store, make_stream: MakeStream) -> None:
    """A stream of each kind, of two messages, and a group of each."""
    for name, kind in ("kept", {}), ("memo", {"storage": "memory", "max_messages": 4}):
        group_create(make_stream(name, bodies=[b"1", b"22"], **kind), name="g", settings={}, actor=SYSTEM)


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_no_list_waits_longer_than_a_second_for_it(
    owner: Client, volatile: servers.Store, streams: None
) -> None:
    assert [owner.get(path).status_code for path in LISTS] == [200] * len(LISTS)
    with servers.hanging(volatile):
        for path in LISTS * 2:
            watch = Stopwatch()
            assert owner.get(path).status_code == 200
            assert watch.elapsed_s < 2.5, path
        watch = Stopwatch()
        assert owner.get("/streams/memo/").status_code == 503
        assert watch.elapsed_s < 2.5
    until(lambda: owner.get("/streams/memo/").status_code == 200, within_s=5)


def test_a_list_as_a_file_leaves_open_what_nobody_knows(
    owner: Client, volatile: servers.Store, streams: None
) -> None:
    def told() -> dict[str, list[str]]:
        _head, *rows = csv.reader(owner.get("/streams/_export/").content.decode().splitlines())
        return {name: figures[:4] for name, *figures in rows}

    assert [figures[:1] for figures in told().values()] == [["2"], ["2"]]
    with servers.hanging(volatile):
        assert told()["memo"] == ["", "", "", ""]
        assert told()["kept"][0] == "2"


def test_the_overview_says_what_is_away_since_when_and_what_works(
    owner: Client, volatile: servers.Store, streams: None
) -> None:
    running = ProcessStatus(name="valkey-memory", pid=1, state="running", restarts=0, since=1.0, note="")
    processes.write(settings.ENV.processes_file, [running])
    said = re.compile(
        r"in memory has not responded since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: .* other streams work"
    )
    try:
        before = text_of(owner.get("/"))
        assert (said.search(before), "valkey-memory running" in before) == (None, True)
        with servers.hanging(volatile):
            for headers in ({}, {"HX-Request": "true"}):
                told = text_of(owner.get("/", headers=headers))
                assert said.search(told)
                assert "valkey-memory not responding" in told
            assert "without 1 stream" in text_of(owner.get("/"))
            assert "valkey-memory not responding" in text_of(owner.get("/settings/system/"))
        until(lambda: not said.search(text_of(owner.get("/"))), within_s=5)
    finally:
        settings.ENV.processes_file.unlink()


async def test_what_an_open_page_is_told_is_what_a_fresh_one_shows(
    owner: Client, volatile: servers.Store, streams: None
) -> None:
    user = await get_user_model().objects.aget(username="owner")
    page, feed = Page(user), Feed()
    assert await page.open()
    working = asyncio.create_task(going_on(feed))
    try:
        await page.subscribe("overview", "stream:memo", "group:memo/g", "stream:kept")
        stream, group, sums = await seen(page, lambda stream, group, sums: sums["messages"] == 4)
        assert (stream["messages"], group["is_away"], sums["unavailable"]) == (2, False, 0)
        with servers.hanging(volatile):
            stream, group, sums = await seen(
                page,
                lambda stream, group, sums: (
                    stream["messages"] is None and group["is_away"] and sums["unavailable"]
                ),
            )
            figures, totals = await sync_to_async(fresh)()
            assert {name: stream[name] for name in figures} == figures == dict.fromkeys(FIGURES)
            assert (group["status"], group["state"], group["lag"]) == ("unknown", "empty", None)
            assert {name: sums[name] for name in totals} == totals
            assert (totals["messages"], totals["streams"], totals["left_out"]) == (2, 2, "without 1 stream")
            polled = await sync_to_async(owner.get)("/live/now/?topic=stream:memo&topic=group:memo/g")
            assert {row["event"].get("lag") for row in polled.json()["events"]} == {None}
            assert await polled_sums(owner, headers={"Accept-Language": "en"}) == standing(sums)
            in_german = await polled_sums(owner, headers={"Accept-Language": "de"})
            assert in_german == standing(sums) | {"left_out": "ohne 1 Stream"}
        watch = Stopwatch()
        stream, _, _ = await seen(
            page,
            lambda stream, group, sums: (
                stream["messages"] == 2 and not group["is_away"] and sums["messages"] == 4
            ),
        )
        assert stream["bytes"] == 3
        assert watch.elapsed_s < 5
    finally:
        working.cancel()
        feed.rest()
        await page.close()


Event = dict[str, Any]


async def seen(page: Page, is_so: Callable[[Event, Event, Event], bool]) -> tuple[Event, Event, Event]:
    """What an open page has of the stream, of its group, and of the sums, once that is so."""
    wanted = (
        ("stream:memo", "stream_sampled"),
        ("group:memo/g", "group_sampled"),
        ("overview", "overview_sampled"),
    )
    newest: dict[tuple[str, str], Event] = {}
    while True:
        heard = json.loads((await page.socket.receive_output(LONG_ENOUGH_S))["text"])
        newest[heard["topic"], heard["event"]["kind"]] = heard["event"]
        if newest.keys() >= set(wanted) and is_so(*(newest[each] for each in wanted)):
            return newest[wanted[0]], newest[wanted[1]], newest[wanted[2]]


def standing(sums: Event) -> Event:
    """What the sums say that does not move by itself: all but the beat, its moment and the rates."""
    moving = {"beat", "at_ms", "rate_in", "bytes_in", "rate_out"}
    assert sums.keys() >= moving
    return {name: None if name in moving else value for name, value in sums.items()}


async def polled_sums(client: Client, **asked: Any) -> Event:
    """The sums as a page without a socket asks for them."""
    polled = await sync_to_async(client.get)("/live/now/?topic=overview", **asked)
    (sums,) = (row["event"] for row in polled.json()["events"] if row["event"]["kind"] == "overview_sampled")
    return standing(sums)


async def going_on(feed: Feed) -> None:
    """What a worker does while nothing moves."""
    while True:
        await feed.publish([])
        await asyncio.sleep(0.5)


def fresh() -> tuple[Event, Event]:
    """What a page that is made now shows of the stream in memory, and the totals."""
    workspace = Workspace.objects.get(streams__name="memo")
    caller = caller_for_user(get_user_model().objects.get(username="owner"), workspace=workspace.name)
    row = rates.rows(list(workspace.streams.filter(name="memo")))[0]
    figures = {name: getattr(row.rates if name == "rate_in" else row, name) for name in FIGURES}
    totals = rates.totals(caller)
    names = ("streams", "messages", "bytes", "unavailable", "left_out")
    return figures, {name: getattr(totals, name) for name in names}
