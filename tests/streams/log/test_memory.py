"""Streams in memory: on a server of their own, and above everything they ever had when it has lost them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from streams.log import commit, config, entries, group_meta, groups, keys, memory, read, standing, stats, wake
from streams.log.append import append
from streams.log.client import AsyncLog, Log, Script, Steady, one
from streams.log.errors import GroupNotFound, StoreUnavailable, StreamLost, StreamNotFound
from streams.log.wake import Wakener
from tests.servers import FLAVOURS, Store, store
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until

SETTINGS = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
Make = Callable[..., config.Registered]


@pytest.fixture(params=FLAVOURS)
def volatile(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A server for streams in memory, of this test's own."""
    with store(tmp_path, flavour=request.param, fsync=None) as running:
        yield running


@pytest.fixture
def both(valkey: str, volatile: Store) -> Iterator[Log]:
    client = Log(valkey, memory_url=volatile.url)
    yield client
    client.close()


@pytest.fixture
def make(both: Log, unique: str) -> Iterator[Make]:
    made: list[config.Registered] = []

    def make(*, name: str = unique, in_memory: bool = True) -> config.Registered:
        stream = config.Registered(
            stream_id=keys.stream_id(memory=in_memory),
            name=name,
            workspace="memory",
            workspace_id=78,
            archive=False,
        )
        made.append(stream)
        both.run(config.streams_publish([(stream, SETTINGS)]))
        if in_memory:
            assert begin(both, stream) == 0
        return stream

    yield make
    for stream in made:
        both.run(config.stream_remove(stream.stream_id, workspace_id=78, name=stream.name))


def begin(log: Log, stream: config.Registered, **groups_of: groups.Settings) -> int | None:
    return log.run(memory.begin(stream, SETTINGS, groups_of))


def offsets(log: Log, stream: config.Registered, number: int) -> list[int]:
    return [
        stored.offset for stored in log.run(append(stream.stream_id, [message(n) for n in range(number)]))
    ]


def test_a_stream_in_memory_is_on_the_other_server_only(both: Log, make: Make, volatile: Store) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)
    assert offsets(both, stream, 3) == [1, 2, 3]
    assert offsets(both, durable, 2) == [1, 2]
    assert [each.offset for each in browse(both, stream.stream_id)] == [1, 2, 3]
    only = Log(volatile.url)
    for held, where in ((stream, only), (durable, both)):
        assert where.client.execute_command("EXISTS", keys.log(held.stream_id)) == 1
    assert both.client.execute_command("EXISTS", keys.log(stream.stream_id)) == 0
    assert only.client.execute_command("EXISTS", keys.log(durable.stream_id)) == 0
    only.close()


def test_what_was_too_old_in_memory_does_not_come_back_with_a_longer_time_to_live(
    both: Log, make: Make
) -> None:
    stream = make()
    both.run(memory.begin(stream, {**SETTINGS, "ttl": 1}, {}))
    offsets(both, stream, 2)
    until(lambda: not browse(both, stream.stream_id), within_s=5)
    begin(both, stream)
    assert browse(both, stream.stream_id) == []


def test_how_streams_stand_is_told_of_both_servers_in_one_call(both: Log, make: Make) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)
    offsets(both, stream, 3)
    offsets(both, durable, 2)
    wanted = [durable.stream_id, stream.stream_id, "aaaaaaaaaaaa", durable.stream_id]
    states = both.run(stats.inspect_many(wanted))
    assert {stream_id: state.messages for stream_id, state in states.items()} == {
        stream.stream_id: 3,
        durable.stream_id: 2,
    }


def test_what_a_write_is_worth_is_told_of_its_own_server(both: Log, make: Make) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)
    assert both.run(stats.durability(stream.stream_id)) == "memory"
    assert both.run(stats.durability(durable.stream_id)) == "fsync"


def test_after_a_loss_the_stream_is_empty_and_continues_above_everything(
    both: Log, make: Make, volatile: Store
) -> None:
    stream = make()
    before = offsets(both, stream, 1000)
    both.run(commit.commit(stream.stream_id, 7))
    volatile.kill()
    with pytest.raises(StoreUnavailable):
        offsets(both, stream, 1)
    volatile.start()
    with pytest.raises(StreamLost):
        offsets(both, stream, 1)
    last = begin(both, stream, readers=groups.Settings(ack_wait_ms=100))
    state = both.run(stats.inspect(stream.stream_id))
    assert (state.messages, state.bytes, state.lag) == (0, 0, 0)
    assert state.by_retention_messages == 0, "it was lost, and not for a limit"
    assert last == state.offset >= before[-1]
    after = offsets(both, stream, 2)
    assert after == [state.offset + 1, state.offset + 2]
    assert [each.offset for each in browse(both, stream.stream_id)] == after
    assert [
        entries.position(each)[0] for each in both.run(read.after_committed(stream.stream_id, 9))
    ] == after


def test_its_groups_start_where_it_starts_anew(both: Log, make: Make, volatile: Store) -> None:
    stream = make()
    both.run(groups.group_publish(stream.stream_id, "readers", groups.Settings()))
    offsets(both, stream, 5)
    (first,) = both.run(groups.fetch(stream.stream_id, "readers", limit=1)).deliveries
    volatile.kill()
    volatile.start()
    begin(both, stream, readers=groups.Settings(max_ack_pending=2))
    after = offsets(both, stream, 3)
    assert both.run(groups.ack(stream.stream_id, "readers", "leases", [first.lease])) == 0
    assert both.run(standing.inspect(stream.stream_id, "readers")).lag == 3
    taken = both.run(groups.fetch(stream.stream_id, "readers", limit=10)).deliveries
    assert [entries.position(each.entry)[0] for each in taken] == after[:2]


def test_its_groups_are_begun_anew_at_a_time_that_is_known(both: Log, make: Make, volatile: Store) -> None:
    stream, settings = make(), groups.Settings()
    both.run(groups.group_publish(stream.stream_id, "readers", settings))
    volatile.kill()
    volatile.start()
    before_ms = both.run(one(Steady()))
    begin(both, stream, readers=settings)
    state = both.run(standing.inspect(stream.stream_id, "readers"))
    assert state.made_ms is not None
    assert before_ms <= state.made_ms <= state.steady_ms
    assert state.fetched_ms is None


@pytest.mark.parametrize("is_begun", [True, False])
def test_one_that_a_version_before_began_at_no_time_gets_one(
    both: Log, make: Make, *, is_begun: bool
) -> None:
    stream, settings = make(), groups.Settings()
    both.run(groups.group_publish(stream.stream_id, "readers", settings))
    key = keys.group(stream.stream_id, "readers")
    held = msgspec.msgpack.decode(both.run(one(("HGET", key, group_meta.COUNTERS))))
    held[list(group_meta.Counters.__struct_fields__).index("made_ms")] = 0
    both.run(one(("HSET", key, group_meta.COUNTERS, msgspec.msgpack.encode(held))))
    assert both.run(standing.inspect(stream.stream_id, "readers")).made_ms is None
    if is_begun:
        begin(both, stream, readers=settings, other=settings)
    else:
        both.run(groups.group_publish(stream.stream_id, "readers", settings))
    assert both.run(standing.inspect(stream.stream_id, "readers")).made_ms


def test_beginning_what_is_there_changes_its_settings_only(both: Log, make: Make) -> None:
    stream = make()
    offsets(both, stream, 5)
    assert both.run(memory.begin(stream, {**SETTINGS, "max_messages": 2}, {})) is None
    assert both.run(stats.inspect(stream.stream_id)).messages == 2
    assert offsets(both, stream, 6)[-1] == 6


def test_more_offsets_are_reserved_before_they_are_handed_out(
    both: Log, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "BLOCK", 1000)
    stream = make()

    def reserved() -> int:
        return int(both.client.execute_command("HGET", keys.MEMORY_RESERVED, stream.stream_id))

    last = 0
    for batch in range(5):
        fill(both, stream.stream_id, 700, first=batch * 700 + 1)
        found = both.run(stats.inspect(stream.stream_id)).offset
        assert found == last + 700
        assert found <= reserved()
        last = found


def test_a_begin_of_before_the_loss_comes_too_late(
    both: Log, make: Make, volatile: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its block was reserved first: the stream would begin below what others were told since."""
    monkeypatch.setattr(memory, "BLOCK", 1000)
    stream = make()
    volatile.kill()
    volatile.start()
    late = memory.begin(stream, SETTINGS, {})
    life = late.send(both.run(one(next(late))))  # after the time
    reserve = late.send(both.run(one(life)))
    beginning = late.send(both.run(one(reserve)))  # its block is reserved, and now it sleeps
    begin(both, stream)
    told = offsets(both, stream, 10)
    volatile.kill()
    volatile.start()
    again = late.send(both.run(one(beginning)))
    assert isinstance(again, Script)
    assert again.name == "life"  # it was refused, and starts over
    late.close()
    begin(both, stream)
    assert offsets(both, stream, 1)[0] > told[-1]


@pytest.mark.long
def test_a_kill_under_load_hands_out_no_offset_twice(
    both: Log, make: Make, valkey: str, volatile: Store
) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)
    told: list[tuple[int, ...]] = []
    steady: list[int] = []
    stopped = threading.Event()

    def publish(log: Log, stream_id: str, found: Callable[[list[int]], None]) -> None:
        number = 0
        while not stopped.is_set():
            batch = [message(number + n) for n in range(50)]
            try:
                found([stored.offset for stored in log.run(append(stream_id, batch))])
            except StoreUnavailable:
                continue
            number += 50

    def keeps_beginning() -> None:
        while not stopped.is_set():
            try:
                both.run(memory.begin(stream, SETTINGS, {}))
            except StoreUnavailable:
                continue

    logs = [Log(valkey, memory_url=volatile.url) for _ in range(2)]
    threads = [
        threading.Thread(
            target=publish, args=(logs[0], stream.stream_id, lambda got: told.append(tuple(got)))
        ),
        threading.Thread(target=publish, args=(logs[1], durable.stream_id, steady.extend)),
        threading.Thread(target=keeps_beginning),
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            seen, seen_steady = len(told), len(steady)
            until(lambda seen=seen: len(told) > seen + 5, within_s=20)  # type: ignore[misc]
            volatile.kill()
            until(lambda seen=seen_steady: len(steady) > seen + 100, within_s=20)  # type: ignore[misc]
            volatile.start()
    finally:
        stopped.set()
        for thread in threads:
            thread.join(20)
        for log in logs:
            log.close()
    handed_out = [offset for batch in told for offset in batch]
    assert handed_out == sorted(set(handed_out))
    assert steady == list(range(1, len(steady) + 1))


def test_a_deleted_stream_is_gone_and_not_lost(both: Log, make: Make) -> None:
    stream = make()
    both.run(config.stream_remove(stream.stream_id, workspace_id=78, name=stream.name))
    with pytest.raises(StreamNotFound):
        offsets(both, stream, 1)
    assert both.client.execute_command("HEXISTS", keys.MEMORY_RESERVED, stream.stream_id) == 0


def test_a_group_that_is_not_there_is_said_so(both: Log, make: Make) -> None:
    stream = make()
    with pytest.raises(GroupNotFound):
        both.run(groups.fetch(stream.stream_id, "nobody", limit=1))


def test_without_a_memory_server_the_durable_streams_are_told_of(valkey: str, both: Log, make: Make) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)
    alone = Log(valkey)
    offsets(both, durable, 2)
    told = alone.run(stats.figures([stream.stream_id, durable.stream_id]))
    assert [figures.messages for figures in told] == [0, 2]
    assert list(alone.run(stats.inspect_many([stream.stream_id, durable.stream_id]))) == [durable.stream_id]
    with pytest.raises(StoreUnavailable, match="OKMQ_MEMORY_REDIS_URL"):
        alone.run(stats.inspect(stream.stream_id))
    alone.close()


def test_coroutines_use_both_servers_and_are_woken_by_both(
    valkey: str, volatile: Store, both: Log, make: Make
) -> None:
    stream, durable = make(), make(name="durable", in_memory=False)

    async def run() -> None:
        log = AsyncLog(valkey, memory_url=volatile.url)
        wakener = Wakener(valkey, memory_url=volatile.url, on_changed=lambda kind: None)
        wakener.start()
        for each in (stream, durable):
            waiter = await wakener.watch(each.stream_id, within_s=5)
            await log.run(append(each.stream_id, [message(1)]))
            await asyncio.wait_for(waiter, 5)
            wakener.forget(each.stream_id, waiter)
        states = await log.run(stats.inspect_many([stream.stream_id, durable.stream_id]))
        assert {state.messages for state in states.values()} == {1}
        await wakener.stop()
        await log.close()

    asyncio.run(run())


async def test_while_a_server_is_away_wake_ups_complain_once(
    valkey: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake, "RECONNECT_S", 0.01)
    tried = 0
    often = asyncio.Event()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tried
        tried += 1
        writer.close()
        if tried > 5:
            often.set()

    server = await asyncio.start_unix_server(hang_up, tmp_path / "s")
    wakener = Wakener(valkey, memory_url=f"unix://{tmp_path}/s", on_changed=lambda kind: None)
    waiting = asyncio.create_task(wakener.watch(keys.stream_id(memory=True), within_s=30))
    await asyncio.wait_for(often.wait(), 10)
    waiting.cancel()
    await asyncio.wait([waiting])
    await wakener.stop()
    server.close()
    await server.wait_closed()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["Wake-ups are interrupted"]
