"""A crowd of pages that subscribe at once: one look for all, and each is told what was so after it had asked."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from dashboard.live import together, topics
from dashboard.live.live_events import StreamSampled
from dashboard.live.topics import Told, Topic
from streams import store
from streams.log.append import append
from streams.models import Stream
from tests.dashboard.conftest import MakeStream
from tests.dashboard.live.test_live import Page, ours, pages
from tests.streams.log.messages import message

__all__ = ["ours", "pages"]

CROWD = 60


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many topics each call for snapshots was for."""
    made, real = list[int](), topics.snapshots

    def counted(asked: Iterable[Topic]) -> list[Told]:
        wanted = list(asked)
        made.append(len(wanted))
        return real(wanted)

    monkeypatch.setattr(topics, "snapshots", counted)
    return made


async def test_a_crowd_is_told_with_a_few_calls(
    pages: list[Page], ours: tuple[Any, Stream], make_stream: MakeStream, calls: list[int]
) -> None:
    crowd = [Page(ours[0]) for _ in range(CROWD)]
    pages.extend(crowd)
    assert all(await asyncio.gather(*(page.open() for page in crowd)))
    await asyncio.gather(*(page.subscribe("overview", "stream:orders", "stream:nope") for page in crowd))
    told = await asyncio.gather(
        *(page.hears(("stream:orders", "stream_sampled"), ("stream:nope", "gone")) for page in crowd)
    )
    assert {each["stream:orders", "stream_sampled"]["messages"] for each in told} == {2}
    assert sum(calls) < CROWD, "topics looked at, in all"
    assert len(calls) < CROWD / 3


def messages_of(told: list[Told]) -> int:
    event = told[0][1]
    assert isinstance(event, StreamSampled)
    assert event.messages is not None
    return event.messages


async def test_who_asks_later_is_told_what_is_so_later(ours: tuple[Any, Stream], calls: list[int]) -> None:
    topic = Topic("stream:orders", "", ours[1])
    shared = together.Snapshots()
    looks = []
    for n in range(3, 9):
        store.log().run(append(ours[1].stream_id, [message(n)]))
        looks.append(asyncio.create_task(shared.of(ours[1].workspace_id, [topic])))
        await asyncio.sleep(0)
    counts = [messages_of(told) for told in await asyncio.gather(*looks)]
    assert counts == sorted(counts)
    assert all(count >= n for n, count in enumerate(counts, start=3))


async def test_each_gets_its_own_topics_and_a_call_has_its_bounds(
    ours: tuple[Any, Stream], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MOST_AT_ONCE", 10)
    shared = together.Snapshots()
    wanted = [[Topic(f"stream:{n}-{k}", "", is_absent=True) for k in range(4)] for n in range(6)]
    told = await asyncio.gather(*(shared.of(ours[1].workspace_id, each) for each in wanted))
    assert [sorted(topic.name for topic, _ in each) for each in told] == [
        [topic.name for topic in each] for each in wanted
    ]
    assert calls == [8, 8, 8]
    elsewhere = shared.of(ours[1].workspace_id + 1, wanted[0])
    await asyncio.gather(shared.of(ours[1].workspace_id, wanted[0]), elsewhere)
    assert calls[3:] == [4, 4], "workspaces share no call: names mean something else there"


async def test_an_error_is_everybodys_and_the_next_call_begins_anew(
    ours: tuple[Any, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, topic = together.Snapshots(), Topic("stream:orders", "", ours[1])
    with monkeypatch.context() as broken:
        broken.setattr(topics, "snapshots", lambda asked: 1 // 0)
        tried = (shared.of(ours[1].workspace_id, [topic]) for _ in range(3))
        errors = await asyncio.gather(*tried, return_exceptions=True)
    assert [type(error) for error in errors] == [ZeroDivisionError] * 3
    assert await shared.of(ours[1].workspace_id, [topic])
