"""Publications that meet in one call: each is answered as if it had been alone."""

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from okmq.instance import free_port
from streams.log import config, errors, keys, meta
from streams.log.append import Appended, Expectation, append
from streams.log.client import AsyncLog, Log, Steady, one
from streams.log.entries import Message, NewMessage
from streams.log.joined import LARGEST_BYTES, MOST_TOGETHER, Appender
from tests.servers import store
from tests.streams.log.conftest import DEFAULTS, MakeStream
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until


@pytest.fixture
async def async_log(redis_url: str) -> AsyncIterator[AsyncLog]:
    log = AsyncLog(redis_url)
    yield log
    await log.close()


@pytest.fixture
async def appender(async_log: AsyncLog) -> Appender:
    await async_log.run(one(Steady()))  # what is published first waits for a look at the clock
    return Appender(async_log)


class Calls:
    """How many calls appended to a stream: each wakes its readers once."""

    def __init__(self, log: Log, stream: str) -> None:
        self._heard = log.client.pubsub(ignore_subscribe_messages=True)
        self._heard.subscribe(keys.wake(stream))
        self._heard.get_message(timeout=5)

    def counted(self) -> int:
        """Those since the last time; for the server everything before its answer was before."""
        self._heard.ping()
        count = 0
        while (told := self._heard.get_message(timeout=5)) is not None and told["type"] == "message":
            count += 1
        return count

    def close(self) -> None:
        self._heard.close()


async def outcomes(publications: Sequence[Awaitable[Any]]) -> list[Any]:
    """What each was answered, or the facts of its refusal."""
    told = await asyncio.gather(*publications, return_exceptions=True)
    return [(type(each), each.args) if isinstance(each, BaseException) else each for each in told]


async def test_those_of_one_turn_are_one_call_and_each_has_its_own_answer(
    appender: Appender, log: Log, stream: str
) -> None:
    calls = Calls(log, stream)
    told = await outcomes([appender.append(stream, [message(n), message(n + 100)]) for n in range(50)])
    assert told == [[Appended(2 * n + 1, False), Appended(2 * n + 2, False)] for n in range(50)]
    assert calls.counted() == 1
    calls.close()


async def test_those_of_different_streams_do_not_mix(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    one, other = make_stream(), make_stream()
    told = await outcomes([appender.append(each, [message(n)]) for n in range(3) for each in (one, other)])
    assert told == [[Appended(n, False)] for n in (1, 1, 2, 2, 3, 3)]


@pytest.fixture
def runs(async_log: AsyncLog, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was sent, and waited for, by itself."""
    sent: list[Any] = []
    run = async_log.run

    async def counting(op: Any) -> Any:
        sent.append(op)
        return await run(op)

    monkeypatch.setattr(async_log, "run", counting)
    return sent


async def test_each_stream_of_a_turn_has_its_own_answer_and_its_own_refusal(
    appender: Appender, make_stream: MakeStream, runs: list[Any]
) -> None:
    good, strict, sealed = make_stream(), make_stream(max_message_bytes=4), make_stream(sealed=True)
    gone = keys.stream_id()
    told = await outcomes(
        [
            appender.append(good, [message(1)]),
            appender.append(strict, [message(1, body=b"12345")]),
            appender.append(sealed, [message(1)]),
            appender.append(gone, [message(1)]),
            appender.append(good, [message(2), message(1)]),
        ]
    )
    assert told[0] == [Appended(1, False)]
    assert [told[n][0] for n in (1, 2, 3)] == [
        errors.MessageTooLarge,
        errors.StreamSealed,
        errors.StreamNotFound,
    ]
    assert told[4] == [Appended(2, False), Appended(1, True)]
    assert len(runs) == 1


async def test_a_long_call_lets_others_go_by_themselves(
    appender: Appender, log: Log, make_stream: MakeStream, runs: list[Any]
) -> None:
    made = [make_stream() for _ in range(5)]
    sizes = [1, MOST_TOGETHER, 1, MOST_TOGETHER // 2, MOST_TOGETHER // 2 + 1]
    told = await outcomes(
        [
            appender.append(stream, [message(n) for n in range(size)])
            for stream, size in zip(made, sizes, strict=True)
        ]
    )
    assert [len(each) for each in told] == sizes
    assert [len(browse(log, stream)) for stream in made] == sizes
    assert len(runs) == 4  # the third and the fourth together


async def test_a_store_that_does_not_know_the_scripts_learns_them_and_stores_once(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    made = [make_stream() for _ in range(3)]
    log.client.execute_command("FUNCTION", "FLUSH")
    told = await outcomes([appender.append(stream, [message(1)]) for stream in made])
    assert told == [[Appended(1, False)]] * 3


async def test_a_batch_that_would_be_too_long_becomes_two(appender: Appender, log: Log, stream: str) -> None:
    calls = Calls(log, stream)
    parts = [[message(n) for n in range(first, first + 400)] for first in (0, 400, 800)]
    told = await outcomes([appender.append(stream, part) for part in parts])
    assert [part[0].offset for part in told] == [1, 401, 801]
    assert calls.counted() == 2
    calls.close()


async def test_large_bodies_are_not_put_together(appender: Appender, log: Log, stream: str) -> None:
    calls = Calls(log, stream)
    body = b'"' + b"x" * (LARGEST_BYTES // 2) + b'"'
    await asyncio.gather(*(appender.append(stream, [message(n, body=body)]) for n in range(3)))
    assert calls.counted() == 3
    calls.close()


async def test_a_refused_one_takes_nobody_along(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_message_bytes=4)
    large = appender.append(stream, [message(2), message(3, body=b"12345")])
    first, refused, last = await asyncio.gather(
        appender.append(stream, [message(1)]),
        large,
        appender.append(stream, [message(4)]),
        return_exceptions=True,
    )
    assert (first, last) == ([Appended(1, False)], [Appended(2, False)])
    assert isinstance(refused, errors.MessageTooLarge)
    assert (refused.index, refused.size_bytes, refused.limit_bytes) == (1, 5, 4)
    assert [held.id for held in browse(log, stream)] == ["id-1", "id-4"]


async def test_an_expectation_is_of_the_stream_and_not_of_the_others(
    appender: Appender, log: Log, stream: str
) -> None:
    fill(log, stream, 2)
    told = await outcomes(
        [
            appender.append(stream, [message(3)]),
            appender.append(stream, [message(4)], expect=Expectation(last_offset=2)),
            appender.append(stream, [message(5)], expect=Expectation(last_offset=7)),
        ]
    )
    assert told[1] == [Appended(3, False)]
    assert told[0] == [Appended(4, False)]
    assert told[2][0] is errors.WrongExpectation


async def test_a_stream_that_refuses_when_full_is_asked_about_each(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(discard="new", max_bytes=12, max_messages_per_key=1)
    log.run(append(stream, [message(1, body=b'"12345678"', key="a")]))
    told = await outcomes(
        [
            appender.append(stream, [message(2, body=b'"12"', key="b")], refuses_when_full=True),
            appender.append(stream, [message(3, key="a")], refuses_when_full=True),
        ]
    )
    assert told == [(errors.StreamFull, ("max_bytes is 12",)), [Appended(2, False)]]


def what_is_held(log: Log, stream: str) -> list[tuple[Any, ...]]:
    return [(each.id, each.offset, each.body, each.key) for each in browse(log, stream)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_message_bytes": 5},
        {"max_messages": 7},
        {"max_bytes": 20},
        {"max_messages_per_key": 2},
        {"max_messages_per_key": 1, "max_message_bytes": 5, "archive": True},
    ],
)
async def test_what_is_answered_and_held_is_what_it_were_alone(
    appender: Appender, log: Log, make_stream: MakeStream, settings: dict[str, Any]
) -> None:
    together, alone = make_stream(**settings), make_stream(**settings)
    chance = random.Random(11)

    def some() -> list[NewMessage]:
        return [
            message(
                chance.randint(1, 80), body=b"1" * chance.randint(1, 6), key=chance.choice([None, "a", "b"])
            )
            for _ in range(chance.randint(1, 3))
        ]

    def by_itself(part: Sequence[NewMessage]) -> Any:
        try:
            return log.run(append(alone, part))
        except errors.LogError as error:
            return type(error), error.args

    for _ in range(12):
        parts = [some() for _ in range(chance.randint(1, 8))]
        assert await outcomes([appender.append(together, part) for part in parts]) == [*map(by_itself, parts)]
        assert what_is_held(log, together) == what_is_held(log, alone)


def function_calls(log: Log) -> int:
    (count,) = re.findall(rb"cmdstat_fcall:calls=(\d+)", log.client.execute_command("INFO", "commandstats"))
    return int(count)


async def test_single_messages_into_streams_without_limits_are_one_call(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    made = [make_stream() for _ in range(5)]
    before = function_calls(log)
    told = await outcomes([appender.append(each, [message(1)], is_unbounded=True) for each in made])
    assert told == [[Appended(1, False)]] * 5
    assert function_calls(log) == before + 1


async def test_what_shares_a_call_is_held_and_known_as_if_it_were_alone(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    together, alone = [make_stream() for _ in range(4)], [make_stream() for _ in range(4)]
    chance = random.Random(7)
    for _ in range(40):
        part = [
            NewMessage(
                id=f"id-{chance.randint(1, 12)}",
                body=b"1" * chance.randint(1, 6),
                key=chance.choice([None, "a", "b.c"]),
                headers=chance.choice([None, b'{"h":"1"}']),
                ttl_s=chance.choice([None, None, None, 600]),
            )
            for _ in together
        ]
        told = await outcomes(
            [appender.append(at, [each], is_unbounded=True) for at, each in zip(together, part, strict=True)]
        )
        assert told == [log.run(append(at, [each])) for at, each in zip(alone, part, strict=True)]
    for shared, other in zip(together, alone, strict=True):
        assert [compared(each) for each in browse(log, shared)] == [
            compared(each) for each in browse(log, other)
        ]
        assert counted(log, shared) == counted(log, other)
        assert log.client.hgetall(keys.by_key(shared)) == log.client.hgetall(keys.by_key(other))


async def test_time_does_not_run_backwards_in_what_shares_a_call(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    made = [make_stream() for _ in range(2)]
    ahead_ms = int(time.time() * 1000) + 3_600_000
    for each in made:
        fill(log, each, 1)
        (counters,) = log.run(meta.counters_of([each])).values()
        packed = meta.pack(msgspec.structs.replace(counters, last_ms=ahead_ms))
        log.client.hset(keys.meta(each), "counters", packed)
    before = function_calls(log)
    await outcomes([appender.append(each, [message(2)], is_unbounded=True) for each in made])
    assert function_calls(log) == before + 1
    assert [browse(log, each)[-1].timestamp_ms for each in made] == [ahead_ms] * 2


def compared(held: Message) -> Message:
    return replace(held, timestamp_ms=0, expires_ms=None)


def counted(log: Log, stream: str) -> meta.Counters:
    (held,) = log.run(meta.counters_of([stream])).values()
    return msgspec.structs.replace(held, last_ms=0, ids_since=0, ids_ahead=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"ttl": 60},
        {"max_messages": 1},
        {"max_bytes": 3},
        {"max_messages_per_key": 1},
        {"discard": "new", "max_messages": 1},
        {"max_message_bytes": 1},
        {"sealed": True},
    ],
)
async def test_a_stream_that_has_limits_by_now_is_answered_and_held_to_them(
    appender: Appender, log: Log, make_stream: MakeStream, settings: dict[str, Any]
) -> None:
    changed, alone, other = make_stream(**settings), make_stream(**settings), make_stream()

    def by_itself(part: NewMessage) -> Any:
        try:
            return log.run(append(alone, [part]))
        except errors.LogError as error:
            return type(error), error.args

    for n in range(1, 4):
        sent = message(n, body=b"12", key="a")
        told = await outcomes([appender.append(each, [sent], is_unbounded=True) for each in (changed, other)])
        assert told == [by_itself(sent), [Appended(n, False)]]
        assert what_is_held(log, changed) == what_is_held(log, alone)


async def test_an_id_of_the_window_before_is_known_to_what_shares_a_call(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    made = [make_stream(dedup_window=1) for _ in range(2)]
    await outcomes([appender.append(each, [message(1)], is_unbounded=True) for each in made])
    for each in made:  # as if the window of this id had gone by
        held = log.run(meta.counters_of([each]))[each]
        earlier = msgspec.structs.replace(held, ids_since=held.ids_since - 1000)
        log.client.hset(keys.meta(each), meta.COUNTERS, meta.pack(earlier))
    for n, is_known in ((2, False), (1, True)):
        told = await outcomes([appender.append(each, [message(n)], is_unbounded=True) for each in made])
        assert told == [[Appended(n, is_known)]] * 2
    assert all(log.client.exists(keys.ids(each, bucket)) for each in made for bucket in (0, 1))


async def test_a_broken_stream_takes_no_other_along(
    appender: Appender, log: Log, make_stream: MakeStream
) -> None:
    one, broken, other = (make_stream() for _ in range(3))
    await outcomes([appender.append(each, [message(1)]) for each in (one, broken, other)])
    log.client.set(keys.ids(broken, 0), "no hash")
    for n in (2, 3):
        told = await outcomes(
            [appender.append(each, [message(n)], is_unbounded=True) for each in (one, broken, other)]
        )
        assert (told[0], told[2]) == ([Appended(n, False)], [Appended(n, False)])
        assert told[1][0] is errors.Damaged


async def test_where_a_cluster_keeps_streams_apart_each_is_sent_by_itself(tmp_path: Path) -> None:
    port = str(free_port())
    cluster = ("--cluster-enabled", "yes", "--port", port, "--cluster-port", str(free_port()))
    with store(tmp_path, options=cluster) as server:
        log, apart = Log(server.url), AsyncLog(server.url)
        log.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: b"cluster_state:ok" in log.client.execute_command("CLUSTER", "INFO"))
        made = [keys.stream_id() for _ in range(3)]
        for each in made:
            own = config.Registered(stream_id=each, name=each, workspace="w", workspace_id=1, archive=False)
            with contextlib.suppress(errors.StoreUnavailable):  # of the registry, which has keys of its own
                log.run(config.stream_publish(own, DEFAULTS))
        appender = Appender(apart)
        for n in (1, 2):
            told = await outcomes([appender.append(each, [message(n)], is_unbounded=True) for each in made])
            assert told == [[Appended(n, False)]] * 3
        await apart.close()
        log.close()


async def test_whoever_goes_away_takes_nobody_along(appender: Appender, log: Log, stream: str) -> None:
    leaving = asyncio.create_task(appender.append(stream, [message(1)]))
    staying = asyncio.create_task(appender.append(stream, [message(2)]))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == [Appended(2, False)]
    assert [held.id for held in browse(log, stream)] == ["id-1", "id-2"]
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_everybody_hears_that_a_stream_is_gone(appender: Appender) -> None:
    gone = keys.stream_id()
    told = await outcomes([appender.append(gone, [message(n)]) for n in range(3)])
    assert told == [(errors.StreamNotFound, ())] * 3


async def test_where_the_outcome_is_not_known_nothing_is_sent_again() -> None:
    connections = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(10)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    log = AsyncLog(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    appender = Appender(log)
    told = await asyncio.gather(
        *(appender.append(stream, [message(n)]) for n in range(3) for stream in ("gone", "other")),
        return_exceptions=True,
    )
    assert [type(each) for each in told] == [errors.StoreUnavailable] * 6
    assert len(set(map(id, told))) == 6
    assert connections == 1
    await log.close()
    server.close()
    await server.wait_closed()
