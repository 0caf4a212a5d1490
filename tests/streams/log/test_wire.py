"""The shared connection: whose reply is whose, and what everybody hears when it breaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as StoreConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as StoreTimeoutError

from streams.log.wire import Wire
from tests.servers import store


def wire_to(url: str, *, answer_timeout_s: float = 5.0) -> Wire:
    return Wire(url, connect_timeout_s=2.0, answer_timeout_s=answer_timeout_s)


@pytest.fixture
async def wire(redis_url: str) -> AsyncIterator[Wire]:
    made = wire_to(redis_url)
    yield made
    await made.close()


def open_sockets() -> int:
    """How many sockets this process has open."""
    links = (str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum(link.startswith("socket:") for link in links)


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """A server that does with each connection what it is told."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        talk(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.close()
        server.close()
        await server.wait_closed()


async def test_each_of_many_at_once_gets_its_own_reply(wire: Wire) -> None:
    replies = await asyncio.gather(*(wire.call(("ECHO", f"{n}" * (n % 50 + 1))) for n in range(2000)))
    assert replies == [(f"{n}" * (n % 50 + 1)).encode() for n in range(2000)]


async def test_a_large_reply_does_not_mix_with_others(wire: Wire) -> None:
    large = b"x" * 5_000_000
    replies = await asyncio.gather(wire.call(("ECHO", large)), wire.call(("ECHO", "small")))
    assert list(replies) == [large, b"small"]


async def test_whoever_is_cancelled_leaves_the_replies_of_the_others_in_place(wire: Wire) -> None:
    await wire.call(("PING",))
    tasks = [asyncio.create_task(wire.call(("ECHO", f"{n}"))) for n in range(10)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    replies = await asyncio.gather(*tasks, return_exceptions=True)
    assert replies[1::2] == [f"{n}".encode() for n in range(1, 10, 2)]
    assert all(isinstance(reply, asyncio.CancelledError) for reply in replies[::2])
    assert await wire.call(("ECHO", "after")) == b"after"


async def test_a_refusal_is_raised_and_the_connection_goes_on(wire: Wire) -> None:
    with pytest.raises(ResponseError, match="unknown command"):
        await wire.call(("NONSENSE",))
    assert await wire.call(("ECHO", "after")) == b"after"


async def test_of_several_commands_a_refusal_stands_in_its_place(wire: Wire) -> None:
    first, refusal, last = await wire.call_many([("ECHO", "a"), ("NONSENSE",), ("ECHO", "b")])
    assert [first, last] == [b"a", b"b"]
    assert isinstance(refusal, ResponseError)


async def test_no_commands_are_no_replies(wire: Wire) -> None:
    assert await wire.call_many([]) == []


async def test_a_database_in_the_address_is_selected(redis7: str, unique: str) -> None:
    first, second = wire_to(redis7), wire_to(f"{redis7}?db=1")
    await second.call(("SET", unique, "1"))
    assert await first.call(("GET", unique)) is None
    assert await second.call(("GET", unique)) == b"1"
    await first.close()
    await second.close()


async def test_a_password_that_is_wrong_is_said(redis7: str) -> None:
    wire = wire_to(redis7.replace("unix://", "unix://:secret@"))
    with pytest.raises(RedisError, match="AUTH"):
        await wire.call(("PING",))
    await wire.close()


async def test_those_who_wait_hear_of_a_kill_and_the_next_call_connects_again(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        wire = wire_to(server.url)
        await wire.call(("PING",))
        waiting = [asyncio.create_task(wire.call(("BLPOP", f"{n}", 0))) for n in range(3)]
        await asyncio.sleep(0)
        server.kill()
        heard = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(error, StoreConnectionError) for error in heard)
        with pytest.raises(StoreConnectionError):
            await wire.call(("PING",))
        server.start()
        assert await wire.call(("PING",)) == b"PONG"
        await wire.close()


async def test_an_answer_that_is_overdue_is_given_up_and_all_that_wait_with_it() -> None:
    async with talking(lambda reader, writer: None) as url:
        wire = wire_to(url, answer_timeout_s=0.05)
        heard = await asyncio.gather(wire.call(("PING",)), wire.call(("PING",)), return_exceptions=True)
        assert [str(error) for error in heard] == ["no answer in time"] * 2
        await wire.close()


async def test_an_answer_may_take_its_time_and_hardly_longer() -> None:
    """Where a line is dead, whoever waits is to hear of it before their own patience ends."""
    async with talking(lambda reader, writer: None) as url:
        wire = wire_to(url, answer_timeout_s=1.0)
        began = asyncio.get_running_loop().time()
        with pytest.raises(StoreTimeoutError, match="no answer in time"):
            await wire.call(("PING",))
        assert 1.0 <= asyncio.get_running_loop().time() - began < 1.6
        await wire.close()


async def test_a_server_that_does_not_greet_is_given_up() -> None:
    async with talking(lambda reader, writer: None) as url:
        wire = Wire(f"{url}/1", connect_timeout_s=0.05, answer_timeout_s=5)
        with pytest.raises(StoreTimeoutError):
            await wire.call(("PING",))
        await wire.close()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400\r\n", b"+A\r\n+B\r\n+C\r\n"], ids=["no reply", "unasked"])
async def test_what_nobody_asked_for_ends_the_connection(said: bytes) -> None:
    async with talking(lambda reader, writer: writer.write(said)) as url:
        wire = wire_to(url)
        with pytest.raises(StoreConnectionError):
            await wire.call(("PING",))
        await wire.close()


@pytest.mark.parametrize("turns", range(1, 12))
async def test_closing_it_while_it_connects_leaves_no_socket_open(redis_url: str, turns: int) -> None:
    """However far it has come: the connection may have been made in the very turn in which it is closed."""
    before = open_sockets()
    wire = wire_to(redis_url)
    asked = asyncio.create_task(wire.call(("PING",)))
    for _ in range(turns):
        await asyncio.sleep(0)
    await wire.close()
    await asyncio.wait([asked])
    assert asked.cancelled() or asked.exception() or asked.result() == b"PONG"
    assert open_sockets() == before
