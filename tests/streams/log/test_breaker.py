"""A server that hangs is waited for once: what is asked of it from then on fails at once, until it is back."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from streams.log import breaker, connecting, keys, memory, stats
from streams.log.append import append
from streams.log.client import AsyncLog, Log, Reachable, one
from streams.log.config import Registered, stream_publish
from streams.log.errors import StoreUnavailable
from tests import servers
from tests.streams.log.messages import message
from tests.waiting import Stopwatch, until

SETTINGS = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
DURABLE, FLEETING = keys.stream_id(), keys.stream_id(memory=True)


@pytest.fixture
def log(durable: servers.Store, volatile: servers.Store) -> Iterator[Log]:
    """With a stream on each server, of one message."""
    with closing(Log(durable.url, memory_url=volatile.url)) as both:
        for stream_id, name in (DURABLE, "orders"), (FLEETING, "ticks"):
            stream = Registered(stream_id=stream_id, name=name, workspace="w", workspace_id=1, archive=False)
            both.run(stream_publish(stream, SETTINGS))
            if stream_id == FLEETING:
                both.run(memory.begin(stream, SETTINGS, {}))
            both.run(append(stream_id, [message(1)]))
        yield both


def is_away(log: Log) -> bool:
    return log.memory_away_since_s is not None


def publishes(log: Log) -> bool:
    try:
        log.run(append(FLEETING, [message(2)]))
    except StoreUnavailable:
        return False
    return True


def test_what_looks_at_many_streams_waits_a_second_and_the_next_not_at_all(
    log: Log, volatile: servers.Store
) -> None:
    assert not is_away(log)
    with servers.hanging(volatile):
        watch = Stopwatch()
        assert list(log.run(stats.inspect_many([DURABLE, FLEETING]))) == [DURABLE]
        assert watch.elapsed_s < 2
        assert is_away(log)
        watch = Stopwatch()
        for _ in range(20):
            assert log.run(one(Reachable([FLEETING, DURABLE]))) == [DURABLE]
            assert [each.messages for each in log.run(stats.figures([DURABLE, FLEETING]))] == [1, 0]
        assert watch.elapsed_s < 2.5, "it is asked again once a second"
    until(lambda: log.run(one(Reachable([FLEETING, DURABLE]))) == [FLEETING, DURABLE], within_s=3)
    assert not is_away(log)


def test_callers_share_one_wait_and_what_they_asked_is_served_within_two_seconds_of_its_return(
    log: Log, volatile: servers.Store
) -> None:
    log.run(one(Reachable([FLEETING])))
    with servers.hanging(volatile):
        log.run(one(Reachable([FLEETING])))
        watch = Stopwatch()
        with ThreadPoolExecutor(8) as threads:
            assert not any(threads.map(lambda _: publishes(log), range(40)))
        assert watch.elapsed_s < 2.5
    until(lambda: publishes(log), within_s=2.5)


def test_a_publish_that_met_the_silence_first_ends_by_its_own_deadline_and_opens_the_breaker(
    log: Log, durable: servers.Store, volatile: servers.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 2.0)
    with closing(Log(durable.url, memory_url=volatile.url)) as waiting, servers.hanging(volatile):
        watch = Stopwatch()
        assert not publishes(waiting)
        assert watch.elapsed_s > 1.5
        watch = Stopwatch()
        assert not publishes(waiting)
        assert watch.elapsed_s < 0.5


def test_coroutines_do_not_wait_for_it_either(
    log: Log, durable: servers.Store, volatile: servers.Store
) -> None:
    async def run() -> None:
        others = AsyncLog(durable.url, memory_url=volatile.url)
        try:
            assert FLEETING in await others.run(one(Reachable([FLEETING])))
            with servers.hanging(volatile):
                watch = Stopwatch()
                assert list(await others.run(stats.inspect_many([DURABLE, FLEETING]))) == [DURABLE]
                assert watch.elapsed_s < 2
                watch = Stopwatch()
                for _ in range(20):
                    with pytest.raises(StoreUnavailable, match="not answered in time"):
                        await others.run(append(FLEETING, [message(2)]))
                assert watch.elapsed_s < 0.5
            watch = Stopwatch()
            while FLEETING not in await others.run(one(Reachable([FLEETING]))):
                await asyncio.sleep(0.05)
                assert watch.elapsed_s < 3
            await others.run(append(FLEETING, [message(2)]))
        finally:
            await others.close()

    asyncio.run(run())


def test_what_one_connection_found_out_others_of_the_process_know(
    log: Log, durable: servers.Store, volatile: servers.Store
) -> None:
    async def refused() -> float:
        others = AsyncLog(durable.url, memory_url=volatile.url)
        try:
            watch = Stopwatch()
            with pytest.raises(StoreUnavailable):
                await others.run(append(FLEETING, [message(2)]))
            return watch.elapsed_s
        finally:
            await others.close()

    with servers.hanging(volatile):
        log.run(one(Reachable([FLEETING])))
        assert asyncio.run(refused()) < 0.5


def test_the_first_call_after_its_return_is_served_where_nobody_has_asked_since(
    log: Log, durable: servers.Store, volatile: servers.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def publish() -> None:
        others = AsyncLog(durable.url, memory_url=volatile.url)
        try:
            await others.run(append(FLEETING, [message(3)]))
        finally:
            await others.close()

    monkeypatch.setattr(breaker, "ASKED_EVERY_S", 0.0)
    with servers.hanging(volatile):
        assert log.run(one(Reachable([FLEETING]))) == []
    assert publishes(log)
    with servers.hanging(volatile):
        assert log.run(one(Reachable([FLEETING]))) == []
    asyncio.run(publish())


def test_a_server_that_was_killed_is_back_with_the_first_call_that_it_takes(
    log: Log, volatile: servers.Store
) -> None:
    volatile.kill()
    assert log.run(one(Reachable([FLEETING, DURABLE]))) == [DURABLE]
    assert is_away(log)
    volatile.start()
    assert log.run(one(Reachable([FLEETING]))) == [FLEETING]
    assert not is_away(log)
