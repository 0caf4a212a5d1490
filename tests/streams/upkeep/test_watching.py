import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from streams import health, verdicts
from streams.log import dead_letters, groups, healths, pending, standing, trails
from streams.log.client import AsyncLog, Log
from streams.log.groups import Settings
from streams.upkeep import watching
from streams.upkeep.watching import Watch, Watched
from streams.verdicts import KNOWN_FROM
from tests.streams.log.messages import browse, fill
from tests.streams.upkeep.conftest import MakeStream


@pytest.fixture
def stream(log: Log, make_stream: MakeStream) -> str:
    """A stream with a message and the group g, which has not fetched it."""
    stream_id = make_stream()
    log.run(groups.group_publish(stream_id, "g", Settings()))
    fill(log, stream_id, 1)
    return stream_id


def run(url: str, act: Callable[[AsyncLog], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        log = AsyncLog(url)
        try:
            await act(log)
        finally:
            await log.close()

    asyncio.run(whole())


def statuses(found: list[Watched]) -> list[str]:
    return [each.health.verdict.status for each in found]


def test_what_waits_is_looked_at_again_and_again_whether_or_not_anybody_comes(
    valkey: str, stream: str
) -> None:
    async def act(log: AsyncLog) -> None:
        watch = Watch(log, every_s=0)
        for n in range(1, KNOWN_FROM):
            (found,) = await watch.look([stream])
            assert (len(found.health.samples), found.health.samples[-1].lag) == (n, 1)
            assert found.health.verdict.status == "unknown"
        assert statuses(await watch.look([stream])) == ["ok"]

    run(valkey, act)


def test_that_a_group_is_in_another_status_is_noted(valkey: str, log: Log, stream: str) -> None:
    async def act(store: AsyncLog) -> None:
        watch = Watch(store, every_s=0)
        noted = []
        for _ in range(KNOWN_FROM + 1):
            (found,) = await watch.look([stream])
            noted.append((found.health.verdict.status, await store.run(healths.changed_ms())))
        (first, *_, last_unknown, known, later) = noted
        assert first[1] > 0
        assert last_unknown == first
        assert known[0] == later[0] == "ok"
        assert later[1] == known[1] > first[1]

    run(valkey, act)


def test_a_seek_begins_the_watch_anew(valkey: str, log: Log, stream: str) -> None:
    async def act(store: AsyncLog) -> None:
        watch = Watch(store, every_s=0)
        for _ in range(KNOWN_FROM):
            found = await watch.look([stream])
        assert statuses(found) == ["ok"]
        await store.run(groups.seek(stream, "g", next_offset=1))
        (*before, last) = [statuses(await watch.look([stream])) for _ in range(KNOWN_FROM)]
        assert (before, last) == ([["unknown"]] * (KNOWN_FROM - 1), ["ok"])

    run(valkey, act)


def test_one_delivery_is_the_last_when_its_time_is_over(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(max_deliver=1, ack_wait_ms=60_000)))
    log.run(groups.fetch(stream, "g", limit=1))
    now_ms = log.run(standing.inspect(stream, "g")).steady_ms
    assert not log.run(pending.is_overdue_for_last(stream, "g", now_ms=now_ms))
    assert log.run(pending.is_overdue_for_last(stream, "g", now_ms=now_ms + 61_000))
    log.run(groups.group_publish(stream, "g", Settings(max_deliver=2)))
    assert not log.run(pending.is_overdue_for_last(stream, "g", now_ms=now_ms + 61_000))


def test_another_worker_goes_on_where_the_one_before_stopped(valkey: str, log: Log, stream: str) -> None:
    async def act(store: AsyncLog) -> None:
        await Watch(store, every_s=0).look([stream])
        await Watch(store, every_s=0).look([stream])

    run(valkey, act)
    kept = health.read(log.run(healths.one(stream, "g")))
    assert kept
    assert len(kept.samples) == 2


def test_a_group_at_rest_is_left_alone_until_its_stream_changes(valkey: str, log: Log, stream: str) -> None:
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.ack(stream, "g", "offsets", [1]))

    async def act(store: AsyncLog) -> None:
        watch = Watch(store, every_s=0)
        for _ in range(verdicts.WINDOW):
            assert len(await watch.look([stream])) == 1
        assert await watch.look([stream]) == []
        watch.changed([stream])
        assert len(await watch.look([stream])) == 1

    run(valkey, act)


def test_a_group_at_rest_is_looked_at_before_what_is_known_of_it_ends(
    valkey: str, log: Log, stream: str
) -> None:
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.ack(stream, "g", "offsets", [1]))

    async def act(store: AsyncLog) -> None:
        watch = Watch(store, every_s=0, all_every_s=0)
        for _ in range(verdicts.WINDOW + 1):
            assert len(await watch.look([stream])) == 1

    run(valkey, act)
    assert watching.ALL_EVERY_S < healths.KEPT_S


def test_ten_seconds_lie_between_two_looks(valkey: str, stream: str) -> None:
    async def act(log: AsyncLog) -> None:
        watch = Watch(log)
        assert len(await watch.look([stream])) == 1
        assert await watch.look([stream]) == []

    run(valkey, act)


def test_samples_go_into_the_streams_of_samples(
    valkey: str, log: Log, stream: str, make_stream: MakeStream
) -> None:
    metrics = make_stream()

    async def act(store: AsyncLog) -> None:
        found = await Watch(store, every_s=0).look([stream])
        await watching.record(store, metrics, found, at_ms=7)
        await watching.record(store, metrics, [], at_ms=8)

    run(valkey, act)
    (sample,) = browse(log, metrics)
    told = json.loads(sample.body)
    assert (told["at"], told["streams"]) == (7, {})
    assert told["groups"][stream]["g"]["lag"] == 1
    assert told["groups"][stream]["g"]["status"] == "unknown"
    assert told["groups"][stream]["g"]["ack_ms"] == {}
    assert told["groups"][stream]["g"]["made"] == log.run(standing.inspect(stream, "g")).made_ms


def test_a_sample_says_how_long_acknowledgements_took(valkey: str, log: Log, stream: str) -> None:
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.ack(stream, "g", "offsets", [1]))

    async def act(store: AsyncLog) -> None:
        (found,) = await Watch(store, every_s=0).look([stream])
        assert list(found.ack_ms.values()) == [1]
        assert found.ack_ms.keys() <= set(range(60_000))

    run(valkey, act)


def sampled(at_ms: int, lag: int) -> verdicts.Sample:
    return verdicts.Sample(
        at_ms=at_ms,
        lag=lag,
        lag_ms=lag * 1000,
        pending=0,
        held=0,
        floor=0,
        deliveries=0,
        acked=0,
        redelivered=0,
        dead=0,
        removed=0,
        polls=0,
        fetched_ms=0,
        acked_ms=0,
    )


def test_each_look_is_a_point_of_the_groups_trail_and_each_minute_its_highest(
    valkey: str, log: Log, stream: str
) -> None:
    state = log.run(standing.inspect(stream, "g"))
    known: health.Health | None = None
    moments = [(60_000, 3), (100_000, 9), (110_000, 4), (120_000, 2), (130_000, 1)]

    async def act(store: AsyncLog) -> None:
        nonlocal known
        for at_ms, lag in moments:
            known = health.looked(known, sampled(at_ms, lag))
            await watching.record(store, "none", [Watched(stream, "g", state, known)], at_ms=at_ms)

    run(valkey, act)
    looks = log.run(trails.lately(stream, "g"))
    assert [(each.at_ms, each.lag, each.lag_ms) for each in looks] == [
        (at_ms, lag, lag * 1000) for at_ms, lag in moments
    ]
    (minute,) = log.run(trails.lately(stream, "g", by_minute=True))
    assert (minute.at_ms, minute.lag, minute.lag_ms) == (110_000, 9, 9000)


def test_a_trail_ends_with_its_group(valkey: str, log: Log, stream: str, make_stream: MakeStream) -> None:
    metrics = make_stream()

    async def act(store: AsyncLog) -> None:
        found = await Watch(store, every_s=0).look([stream])
        await watching.record(store, metrics, found, at_ms=7)

    run(valkey, act)
    assert len(log.run(trails.lately(stream, "g"))) == 1
    log.run(groups.group_remove(stream, "g"))
    assert log.run(trails.lately(stream, "g")) == []


def test_between_two_looks_what_is_spent_becomes_a_dead_letter(valkey: str, log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=1, max_deliver=1)))

    async def act(store: AsyncLog) -> None:
        watch = Watch(store)
        await watch.look([stream])
        await store.run(groups.fetch(stream, "g", limit=1))
        async with asyncio.timeout(5):
            while not await store.run(dead_letters.page(stream, "g")):
                await watch.retire([stream])

    run(valkey, act)
