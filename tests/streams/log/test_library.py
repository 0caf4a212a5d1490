"""The library of server functions: it is there when it is needed, whatever became of the server or of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.log import commit, config, groups, keys, scripts, stats, trim
from streams.log.append import Appended, append
from streams.log.client import AsyncLog, Log
from streams.log.errors import StoreFull
from tests.servers import FLAVOURS, Store, store
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import fill, message
from tests.waiting import until

OLDER = "#!lua name=okmq_older\nredis.register_function{function_name = 'okmq_older_verb', callback = function() end}"


@pytest.fixture(params=FLAVOURS)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A server of the test's own, to be emptied and restarted."""
    with store(tmp_path, flavour=request.param) as running:
        yield running


def made_stream(log: Log) -> str:
    stream = config.Registered(
        stream_id=keys.stream_id(), name="own", workspace="default", workspace_id=1, archive=False
    )
    log.run(config.stream_publish(stream, DEFAULTS))
    return stream.stream_id


def libraries(log: Log) -> list[str]:
    listed = log.client.execute_command("FUNCTION", "LIST", "LIBRARYNAME", "okmq_*")
    return sorted(each[1].decode() for each in listed)


async def test_a_flush_is_healed_within_the_call(own: Store) -> None:
    log, coroutines = Log(own.url), AsyncLog(own.url)
    stream = made_stream(log)
    log.client.execute_command("FUNCTION", "FLUSH")
    assert fill(log, stream, 1) == [Appended(1, False)]
    log.client.execute_command("FUNCTION", "FLUSH")
    assert log.run(stats.inspect_many([stream]))[stream].messages == 1
    log.client.execute_command("FUNCTION", "FLUSH")
    assert await coroutines.run(append(stream, [message(2)])) == [Appended(2, False)]
    log.client.execute_command("FUNCTION", "FLUSH")
    assert (await coroutines.run(stats.inspect_many([stream])))[stream].messages == 2
    await coroutines.close()
    log.close()


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_restart_brings_the_library_back_with_the_messages(own: Store, rewritten: bool) -> None:
    log = Log(own.url)
    stream = made_stream(log)
    fill(log, stream, 3)
    if rewritten:
        log.client.execute_command("BGREWRITEAOF")
        until(lambda: b"aof_rewrite_in_progress:0" in log.client.execute_command("INFO", "persistence"))
    own.kill()
    own.start()
    log = Log(own.url)
    assert libraries(log) == [scripts.name()]
    assert fill(log, stream, 1, first=4) == [Appended(4, False)]


def test_two_versions_work_side_by_side_until_the_older_is_forgotten(own: Store) -> None:
    log = Log(own.url)
    log.client.execute_command("FUNCTION", "LOAD", OLDER)
    stream = made_stream(log)
    assert fill(log, stream, 1) == [Appended(1, False)]
    assert libraries(log) == sorted([scripts.name(), "okmq_older"])
    assert log.run(scripts.older_forget()) == 1
    assert libraries(log) == [scripts.name()]
    assert log.run(scripts.older_forget()) == 0


def test_a_full_server_keeps_the_older_version_while_it_cannot_take_this_one(own: Store) -> None:
    log = Log(own.url)
    log.client.execute_command("FUNCTION", "LOAD", OLDER)
    log.client.execute_command("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StoreFull):
        log.run(scripts.older_forget())
    assert libraries(log) == ["okmq_older"]
    log.client.execute_command("CONFIG", "SET", "maxmemory", "0")
    assert log.run(scripts.older_forget()) == 1
    assert libraries(log) == [scripts.name()]
    log.close()


def test_a_full_server_takes_no_message_and_lets_go_of_those_it_has(own: Store) -> None:
    log = Log(own.url)
    stream = made_stream(log)
    log.run(groups.group_publish(stream, "g", groups.Settings()))
    fill(log, stream, 5)
    assert len(log.run(groups.fetch(stream, "g", limit=2)).deliveries) == 2
    log.client.execute_command("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StoreFull, match="maxmemory"):
        fill(log, stream, 1, first=6)
    assert log.run(stats.inspect(stream)).messages == 5
    assert log.run(groups.ack(stream, "g", "offsets", [1, 2])) == 2
    log.run(commit.commit(stream, 2))
    assert log.run(trim.purge(stream, keep=1)).messages == 4
    log.run(trim.drop(stream))
    assert log.client.execute_command("XLEN", keys.log(stream)) == 1
