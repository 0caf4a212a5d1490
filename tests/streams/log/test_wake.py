"""Waiting for a reason to look at a stream again."""

import asyncio
from pathlib import Path

from streams.log.append import append
from streams.log.client import AsyncLog, one
from streams.log.wake import Wakener
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import message
from tests.waiting import Stopwatch


async def test_waiting_for_a_server_that_is_away_ends(tmp_path: Path) -> None:
    wakener = Wakener(f"unix://{tmp_path}/nobody.sock", on_changed=lambda kind: None)
    watch = Stopwatch()
    waiters = [await wakener.watch("s", within_s=0.1) for _ in range(2)]
    assert watch.elapsed_s < 2
    assert not any(waiter.done() for waiter in waiters)
    for waiter in waiters:
        wakener.forget("s", waiter)
    assert wakener.waiting("s") == 0
    await wakener.stop()


async def test_who_gives_up_meanwhile_waits_no_more(tmp_path: Path) -> None:
    wakener = Wakener(f"unix://{tmp_path}/nobody.sock", on_changed=lambda kind: None)
    task = asyncio.ensure_future(wakener.watch("s", within_s=30))
    await asyncio.sleep(0)
    assert wakener.waiting("s") == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert wakener.waiting("s") == 0
    await wakener.stop()


async def test_who_comes_while_the_connection_is_made_is_subscribed_with_it(
    redis_url: str, make_stream: MakeStream
) -> None:
    wakener = Wakener(redis_url, on_changed=lambda kind: None)
    wakener.start()
    await asyncio.sleep(0)  # what is to be subscribed has been looked up, and nobody has answered
    await woken_by_a_message(wakener, redis_url, make_stream())


async def test_who_comes_while_the_connection_is_lost_is_subscribed_with_the_next(
    redis_url: str, make_stream: MakeStream
) -> None:
    wakener = Wakener(redis_url, on_changed=lambda kind: None)
    wakener.forget("other", await wakener.watch("other", within_s=5))
    log = AsyncLog(redis_url)
    await log.run(one(("CLIENT", "KILL", "TYPE", "pubsub")))
    await log.close()
    await woken_by_a_message(wakener, redis_url, make_stream())


async def woken_by_a_message(wakener: Wakener, url: str, stream: str) -> None:
    log, watch = AsyncLog(url), Stopwatch()
    try:
        waiter = await wakener.watch(stream, within_s=20)
        assert watch.elapsed_s < 10
        await log.run(append(stream, [message(1)]))
        await asyncio.wait_for(waiter, 5)
    finally:
        await wakener.stop()
        await log.close()


async def test_a_message_wakes_who_watches(redis_url: str, stream: str) -> None:
    wakener = Wakener(redis_url, on_changed=lambda kind: None)
    log = AsyncLog(redis_url)
    waiter = await wakener.watch(stream, within_s=5)
    await log.run(append(stream, [message(1)]))
    await asyncio.wait_for(waiter, 5)
    wakener.forget(stream, waiter)
    await wakener.stop()
    await log.close()
