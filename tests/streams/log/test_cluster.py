"""The log on a cluster: streams spread over its nodes, and those of one go on without another."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from redis.crc import key_slot

from okmq.supervision import resp, rights
from streams.dataplane.durability import Durability
from streams.log import (
    commit,
    config,
    connecting,
    fsck_groups,
    keys,
    lineage,
    listeners,
    memory,
    scripts,
    server,
    stats,
)
from streams.log.append import Appended, append
from streams.log.client import AsyncLog, Log
from streams.log.commands import one
from streams.log.connecting import ANSWER_TIMEOUT_S
from streams.log.errors import StoreUnavailable
from streams.log.joined import Appender
from streams.log.wake import Wakener
from tests.clusters import Cluster, Node, cluster
from tests.product import free_port
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import fill, message, offsets
from tests.waiting import Stopwatch, until

MANY = 24
OLDER = "#!lua name=okmq_older\nredis.register_function{function_name = 'okmq_older_verb', callback = function() end}"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def log(nodes: Cluster) -> Iterator[Log]:
    with closing(Log(nodes.url)) as log:
        yield log


@pytest.fixture
async def coroutines(nodes: Cluster) -> AsyncIterator[AsyncLog]:
    log = AsyncLog(nodes.url)
    yield log
    await log.close()


def made(log: Log, name: str) -> list[str]:
    """Streams on all nodes."""
    registered = [
        config.Registered(
            stream_id=keys.stream_id(), name=f"{name}-{at}", workspace="w", workspace_id=5, archive=False
        )
        for at in range(MANY)
    ]
    log.run(config.streams_publish([(each, DEFAULTS) for each in registered]))
    return [each.stream_id for each in registered]


@pytest.fixture
def streams(nodes: Cluster, log: Log, unique: str) -> list[str]:
    return made(log, unique)


def of(nodes: Cluster, node: Node, streams: list[str]) -> list[str]:
    found = [each for each in streams if nodes.node_of(each) is node]
    assert found
    return found


def takes(log: Log, stream: str) -> bool:
    try:
        fill(log, stream, 1, first=1000)
    except StoreUnavailable:
        return False
    return True


def has(node: Node, slot: int) -> bool:
    with closing(Log(node.url)) as told:
        ranges = told.run(one(("CLUSTER", "SLOTS")))
    return any(first <= slot <= last and primary[1] == node.port for first, last, primary, *_ in ranges)


def test_streams_lie_on_all_nodes_and_what_they_share_on_one(
    nodes: Cluster, log: Log, streams: list[str]
) -> None:
    for node in nodes.nodes:
        for stream in of(nodes, node, streams):
            assert fill(log, stream, 2) == [Appended(1, False), Appended(2, False)]
            log.run(commit.commit(stream, 1))
    states = log.run(stats.inspect_many(streams))
    assert [states[each].lag for each in streams] == [1] * MANY
    assert {each.stream_id for each in log.run(config.streams())} >= set(streams)
    with closing(Log(nodes.home.url)) as home:
        assert home.run(one(("EXISTS", f"{keys.REGISTRY}{{okmq}}", f"{keys.names(5)}{{okmq}}"))) == 2
    assert log.run(server.away()) == (0, 3)


def test_it_has_to_be_named_as_what_it_is(nodes: Cluster, valkey: str, unique: str) -> None:
    resp.check(nodes.url)
    resp.check(f"{nodes.url},127.0.0.1:{free_port()}")
    with pytest.raises(resp.StoreError, match=r"is a node of a cluster; name it as redis\+cluster://"):
        resp.check(nodes.home.url)
    with pytest.raises(resp.Unreachable):
        resp.check(f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{free_port()}")


def test_the_rights_of_a_single_server_are_enough(nodes: Cluster, unique: str) -> None:
    allowed = [f"+{each}" for each in sorted(rights.COMMANDS)]
    for node in nodes.nodes:
        node.tell(
            "ACL", "SETUSER", unique, "on", ">secret", f"~{rights.KEYS}", f"&{rights.CHANNELS}", *allowed
        )
    with closing(Log(nodes.url.replace("://", f"://{unique}:secret@"))) as log:
        for stream in made(log, unique):
            assert fill(log, stream, 1) == [Appended(1, False)]
        log.run(lineage.look())
        assert not log.run(server.stops_as_a_whole())
        assert len(log.run(server.clocks())) == 3


def test_streams_in_memory_stay_on_a_server_of_their_own(
    nodes: Cluster, valkey_memory: str, streams: list[str], unique: str
) -> None:
    stream = config.Registered(
        stream_id=keys.stream_id(memory=True), name=unique, workspace="w", workspace_id=5, archive=False
    )
    with closing(Log(nodes.url, memory_url=valkey_memory)) as log:
        log.run(config.streams_publish([(stream, DEFAULTS)]))
        log.run(memory.begin(stream, DEFAULTS, {}))
        assert fill(log, stream.stream_id, 2) == [Appended(1, False), Appended(2, False)]
        assert log.run(stats.inspect_many([stream.stream_id, *streams]))[stream.stream_id].messages == 2


async def test_what_is_published_in_one_turn_into_streams_of_all_nodes_is_answered_each(
    coroutines: AsyncLog, streams: list[str]
) -> None:
    appender = Appender(coroutines)
    for n in (1, 2):
        answers = await asyncio.gather(
            *(appender.append(each, [message(n)], is_unbounded=True) for each in streams)
        )
        assert answers == [[Appended(n, False)]] * MANY


async def test_whoever_waits_is_woken_whichever_node_the_stream_is_on(
    nodes: Cluster, coroutines: AsyncLog, streams: list[str]
) -> None:
    changes: list[str] = []
    wakener = Wakener(nodes.url, on_changed=changes.append)
    wakener.start()
    waiters = [await wakener.watch(each, within_s=10) for each in streams]
    for stream in streams:
        await coroutines.run(append(stream, [message(1)]))
    await asyncio.wait_for(asyncio.gather(*waiters), 10)
    heard = [keys.CHANGED, keys.wake(streams[0]), keys.wake("nobody")]
    assert await coroutines.run(listeners.heard(heard)) == set(heard[:2])
    changes.clear()
    await coroutines.run(one(("PUBLISH", keys.CHANGED, "token")))
    async with asyncio.timeout(10):
        while changes != ["token"]:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await wakener.stop()


def test_libraries_of_other_versions_go_and_strange_keys_are_found_on_every_node(
    nodes: Cluster, log: Log, streams: list[str]
) -> None:
    strangers = made(log, "stranger")
    for stream in strangers:
        fill(log, stream, 1)
    log.run(one(("HDEL", keys.REGISTRY, *strangers)))
    for node in nodes.nodes:
        node.tell("FUNCTION", "LOAD", OLDER)
    assert log.run(scripts.older_forget()) == 3
    assert set(strangers) <= set(log.run(fsck_groups.strangers()))
    for stream in strangers:
        assert log.run(fsck_groups.strangers_remove(stream)) > 0
    assert set(log.run(fsck_groups.strangers())).isdisjoint([*strangers, *streams])


async def test_each_stream_is_promised_what_its_own_node_does(
    nodes: Cluster, log: Log, coroutines: AsyncLog, streams: list[str]
) -> None:
    hasty = nodes.others[0]
    hasty.tell("CONFIG", "SET", "appendfsync", "everysec")
    try:
        durability = Durability(coroutines)
        await coroutines.run(stats.inspect_many(streams))
        promised = [await durability.ask(each) for each in streams]
        assert promised == ["window" if nodes.node_of(each) is hasty else "fsync" for each in streams]
        assert log.run(server.inspect()).durability == "window"
    finally:
        hasty.tell("CONFIG", "SET", "appendfsync", "always")


async def test_streams_of_a_node_that_is_away_are_refused_and_all_others_go_on(
    nodes: Cluster, log: Log, coroutines: AsyncLog, streams: list[str]
) -> None:
    away = nodes.others[0]
    gone, there = of(nodes, away, streams), [each for each in streams if nodes.node_of(each) is not away]
    for stream in streams:
        fill(log, stream, 10)
        await coroutines.run(append(stream, [message(11)]))
    away.kill()
    for stream in gone:
        with pytest.raises(StoreUnavailable):
            fill(log, stream, 1, first=12)
        with pytest.raises(StoreUnavailable):
            await coroutines.run(append(stream, [message(12)]))
    appender = Appender(coroutines)
    told = await asyncio.gather(
        *(appender.append(each, [message(12)]) for each in streams), return_exceptions=True
    )
    refused = [
        each for each, answer in zip(streams, told, strict=True) if isinstance(answer, StoreUnavailable)
    ]
    assert refused == [each for each in streams if each in gone]
    assert log.run(stats.inspect_many(streams)).keys() == set(there)
    assert [each.messages for each in log.run(stats.figures(streams))] == [
        0 if each in gone else 12 for each in streams
    ]
    with pytest.raises(StoreUnavailable):
        log.run(stats.inspect_many(streams, strict=True))
    assert log.run(server.away()) == (1, 3)
    assert not log.run(server.is_full())
    assert not log.run(lineage.look()).is_replica

    away.start()
    while not takes(log, gone[0]):  # it answers before it serves
        assert log.run(stats.inspect_many(streams)).keys() == set(there)
    for stream in gone:
        until(partial(takes, log, stream), within_s=20, what="the node takes messages again")
        assert offsets(log, stream) == list(range(1, 13))
        assert await coroutines.run(append(stream, [message(12)])) == [Appended(13, False)]
    assert log.run(stats.inspect_many(streams)).keys() == set(streams)
    assert log.run(server.away()) == (0, 3)


async def test_a_node_that_hangs_keeps_nobody_waiting_who_wants_nothing_of_it(
    nodes: Cluster, log: Log, coroutines: AsyncLog, streams: list[str]
) -> None:
    slow = nodes.others[1]
    there = [each for each in streams if nodes.node_of(each) is not slow]
    await coroutines.run(stats.inspect_many(streams))
    appender = Appender(coroutines)
    slow.send(signal.SIGSTOP)
    try:
        sent = {each: asyncio.create_task(appender.append(each, [message(1)])) for each in streams}
        async with asyncio.timeout(ANSWER_TIMEOUT_S / 2):
            assert await asyncio.gather(*(sent[each] for each in there)) == [[Appended(1, False)]] * len(
                there
            )
    finally:
        slow.send(signal.SIGCONT)
    await asyncio.gather(*sent.values(), return_exceptions=True)
    for stream in of(nodes, slow, streams):
        until(partial(takes, log, stream), within_s=20, what="the node takes messages again")


def test_a_node_that_hangs_is_waited_for_once(
    nodes: Cluster, streams: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 2.0)
    slow = nodes.others[1]
    of_it = of(nodes, slow, streams)
    with closing(Log(nodes.url)) as log:
        assert all(takes(log, each) for each in streams)
        slow.send(signal.SIGSTOP)
        try:
            assert not takes(log, of_it[0])
            watch = Stopwatch()
            assert not any(takes(log, each) for each in of_it * 3)
            assert all(takes(log, each) for each in streams if each not in of_it)
            assert watch.elapsed_s < 2.5, "one call a second asks whether it is back, for a second"
        finally:
            slow.send(signal.SIGCONT)
        for each in of_it:
            until(partial(takes, log, each), within_s=20, what="the node takes messages again")


async def test_a_stream_is_followed_to_the_node_that_its_slot_moves_to(
    nodes: Cluster, log: Log, coroutines: AsyncLog, streams: list[str]
) -> None:
    stream = of(nodes, nodes.others[0], streams)[0]
    fill(log, stream, 1)
    await coroutines.run(append(stream, [message(2)]))
    slot = key_slot(keys.meta(stream).encode())
    source, target = nodes.others
    target_id = resp.ask(target.url, "CLUSTER", "MYID")
    source.tell("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target_id)
    until(lambda: has(target, slot), within_s=20, what="the slot has moved")
    assert fill(log, stream, 1, first=3) == [Appended(3, False)]
    assert await coroutines.run(append(stream, [message(4)])) == [Appended(4, False)]
    assert offsets(log, stream) == [1, 2, 3, 4]


async def test_a_replica_that_is_promoted_is_followed_and_counted_once(tmp_path: Path, unique: str) -> None:
    with cluster(tmp_path) as own, closing(Log(own.url)) as log:
        streams = made(log, unique)
        primary = own.others[0]
        stream = of(own, primary, streams)[0]
        fill(log, stream, 5)
        assert log.run(lineage.look()).epoch == 0
        own.with_replica(primary, tmp_path / "replica")
        primary.kill()
        until(lambda: takes(log, stream), within_s=30, what="the replica has taken over")
        assert offsets(log, stream) == [1, 2, 3, 4, 5, 6]
        promoted = log.run(lineage.look())
        assert (promoted.epoch, promoted.noted) == (1, 0)
        log.run(lineage.note(promoted, epoch=promoted.epoch))
        found = log.run(lineage.look())
        assert (found.epoch, found.fresh) == (1, "")
        assert log.run(server.away()) == (0, 3)
