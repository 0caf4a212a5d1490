import asyncio

from streams.log import keys, stats, trim
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
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream, coroutines = make_stream(archive=False), AsyncLog(valkey)
    for first in range(0, 5000, 1000):
        log.run(append(stream, [message(n, ttl_s=1) for n in range(first, first + 1000)]))
    log.run(append(stream, [message(5000)]))

    unfinished: list[set[str]] = []
    until(lambda: not browse(log, stream, limit=1) or browse(log, stream, limit=1)[0].offset == 5001)
    while stored(log, stream) > 1:
        unfinished.append((await retention.tend(coroutines, [stream], turn_s=0.0)).unfinished)
    assert len(unfinished) > 1
    assert all(each == {stream} for each in unfinished[:-1])
    assert (await retention.tend(coroutines, [stream], turn_s=0.0)).unfinished == set()
    await coroutines.close()


def test_a_call_works_so_many_times_as_long(log: Log, make_stream: MakeStream) -> None:
    removed = []
    for times in (1, retention.MOST_TIMES):
        stream = make_stream(max_messages=10)
        for first in range(0, 20_000, 1000):
            keyed = [message(n, key=f"k.{n % 5}") for n in range(first, first + 1000)]
            log.run(append(stream, keyed))
        gone = log.run(trim.drop(stream, until_s=0, times=times))
        assert gone.entries + gone.left == 19_990
        removed.append(gone.entries)
    assert removed[1] > 4 * removed[0]


def test_calls_are_as_short_as_ever_once_nothing_is_left() -> None:
    paces = retention.Paces()
    for left in (5000, 9000, 12_000, 11_000, 20_000):
        paces.note("a", trim.Dropped(100, 0, is_done=False, left=left))
    assert (paces.times("a"), paces.times("b")) == (8, 1)
    for _ in range(9):
        paces.note("a", trim.Dropped(100, 0, is_done=False, left=20_000))
    assert paces.times("a") == retention.MOST_TIMES
    paces.note("a", trim.Dropped(100, 0))
    assert paces.times("a") == 1


async def test_each_stream_has_its_share_of_a_turn(valkey: str, log: Log, make_stream: MakeStream) -> None:
    streams = [make_stream(max_messages=10) for _ in range(3)]
    for stream in streams:
        for _ in range(30):
            log.run(append(stream, [message(n, ttl_s=3600) for n in range(1000)]))
    client = AsyncLog(valkey)
    await retention.tend(client, streams, turn_s=0.3)
    await client.close()
    left = [stored(log, stream) for stream in streams]
    assert max(left) < 30_000, left
    assert max(left) - min(left) < 15_000, left
