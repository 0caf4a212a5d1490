import asyncio

import pytest

from streams.log import keys, stats
from streams.log.append import append
from streams.log.client import AsyncLog, Log
from streams.upkeep import retention
from tests.streams.log.messages import browse, fill, message
from tests.streams.upkeep.conftest import MakeStream
from tests.waiting import until


def tend(url: str, stream: str) -> None:
    async def run() -> None:
        log = AsyncLog(url)
        await retention.tend(log, [stream, "aaaaaaaaaaaa"])
        await log.close()

    asyncio.run(run())


def stored(log: Log, stream: str) -> int:
    length: int = log.client.execute_command("XLEN", keys.log(stream))
    return length


def test_what_is_over_is_physically_removed(valkey: str, log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(ttl=1)
    fill(log, stream, 5)
    until(lambda: log.run(stats.inspect(stream)).messages == 0)
    tend(valkey, stream)
    assert stored(log, stream) == 0
    assert log.run(stats.inspect(stream)).missed == 0


def test_a_limit_of_a_quiet_stream_is_applied(valkey: str, log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=2)
    fill(log, stream, 5)
    tend(valkey, stream)
    assert stored(log, stream) == 2


def test_a_message_of_its_own_time_goes(valkey: str, log: Log, make_stream: MakeStream) -> None:
    stream = make_stream()
    log.run(append(stream, [message(1), message(2, ttl_s=1)]))

    def left() -> int:
        tend(valkey, stream)
        return stored(log, stream)

    until(lambda: left() == 1)


def test_a_round_looks_after_every_stream_and_no_second_after_all() -> None:
    streams = [f"s{n}" for n in range(105)]
    turn = retention.Round()
    seconds = [turn.next(streams) for _ in range(retention.SWEEP_EVERY_S)]
    assert {name for second in seconds for name in second} == set(streams)
    assert max(map(len, seconds)) <= 6


def test_a_quiet_stream_that_shrinks_is_sampled(valkey: str, log: Log, make_stream: MakeStream) -> None:
    stream = make_stream()
    log.run(append(stream, [message(1), message(2, ttl_s=1)]))

    def touched() -> bool:
        tend(valkey, stream)
        return bool(log.client.execute_command("SISMEMBER", keys.TOUCHED, stream))

    until(touched)


async def test_what_one_turn_leaves_is_tended_in_the_next_second(
    valkey: str, log: Log, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "TURN_S", 0.0)
    stream, coroutines = make_stream(archive=False), AsyncLog(valkey)
    for first in range(0, 5000, 1000):
        log.run(append(stream, [message(n, ttl_s=1) for n in range(first, first + 1000)]))
    log.run(append(stream, [message(5000)]))

    unfinished: list[set[str]] = []
    until(lambda: not browse(log, stream, limit=1) or browse(log, stream, limit=1)[0].offset == 5001)
    while stored(log, stream) > 1:
        unfinished.append((await retention.tend(coroutines, [stream])).unfinished)
    assert len(unfinished) > 1
    assert all(each == {stream} for each in unfinished[:-1])
    assert (await retention.tend(coroutines, [stream])).unfinished == set()
    await coroutines.close()
