"""JetStream's durable pull consumers, driven by ``nats-py``: fetch, acknowledge each message, fetch the next."""

import asyncio
import contextlib
import secrets
import time

import nats
import uvloop
from nats.aio.client import Client
from nats.errors import TimeoutError as NothingLeft
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

from bench.jetstream import JetStream
from bench.measure import BODY, Measured, Stopwatch, Watched

STREAM = "work"
IN_FLIGHT = 200_000
AT_ONCE = 500
CONFIRMED_WITHIN_S = 10.0


def fill(server: JetStream, *, messages: int) -> None:
    """A stream of so many messages, for consumers."""
    uvloop.run(_fill(server, messages))


def work(server: JetStream, *, batch: int, members: int, seconds: float, confirmed: bool) -> Measured:
    """Members of one new durable consumer over a connection each, until the time is over or nothing is left.

    Args:
        confirmed: wait for the server's answer to every acknowledgement (``ack_sync``, all of a batch at once), which
            is the nearest to what our answer says. Without it (``ack``) they are only sent, and a round trip at the
            end of a batch says that the server has read them.
    """
    return uvloop.run(_work(server, batch, members, seconds, confirmed))


async def _fill(server: JetStream, messages: int) -> None:
    client = await nats.connect(f"nats://127.0.0.1:{server.port}")
    manager = client.jetstream()
    await manager.add_stream(StreamConfig(name=STREAM, subjects=[STREAM], storage=StorageType.FILE))
    for _ in range(0, messages, AT_ONCE):
        await asyncio.gather(*(manager.publish(STREAM, BODY) for _ in range(AT_ONCE)))
    await client.close()


async def _work(server: JetStream, batch: int, members: int, seconds: float, confirmed: bool) -> Measured:
    name, watch = f"g{secrets.token_hex(4)}", Stopwatch(Watched(server=server.pid))
    async with contextlib.AsyncExitStack() as stack:
        clients = [await nats.connect(f"nats://127.0.0.1:{server.port}") for _ in range(members)]
        for client in clients:
            stack.push_async_callback(client.close)
        config = ConsumerConfig(durable_name=name, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=IN_FLIGHT)
        await clients[0].jetstream().add_consumer(STREAM, config)
        until = time.perf_counter() + seconds
        with watch.running():
            working = (_member(client, name, batch, until, confirmed) for client in clients)
            done = sum(await asyncio.gather(*working))
        await clients[0].jetstream().delete_consumer(STREAM, name)
    return watch.measured(done)


async def _member(client: Client, name: str, batch: int, until: float, confirmed: bool) -> int:
    pull = await client.jetstream().pull_subscribe_bind(consumer=name, stream=STREAM)
    done = 0
    while time.perf_counter() < until:
        try:
            messages = await pull.fetch(batch, timeout=2)
        except NothingLeft:
            break
        if confirmed:
            await asyncio.gather(*(message.ack_sync(timeout=CONFIRMED_WITHIN_S) for message in messages))
        else:
            for message in messages:
                await message.ack()
            await client.flush()
        done += len(messages)
    return done
