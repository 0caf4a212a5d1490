"""The append script without HTTP around it, and bare XADD as the mark of what the server can do at all."""

from bench.http_load import BODY
from bench.measure import Measured, measure
from streams.log import config, keys
from streams.log.append import append
from streams.log.client import AsyncLog, Pipeline, one
from streams.log.entries import NewMessage


async def appending(url: str, *, batch: int, clients: int, seconds: float) -> Measured:
    """Append new messages to a stream of its own, with everything that the script does for the product."""
    stream = config.Registered(
        stream_id=keys.stream_id(), name="bench", workspace="bench", workspace_id=1, archive=False
    )
    settings = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old", "archive": False}
    body = BODY.encode()
    log = AsyncLog(url)
    await log.run(config.stream_publish(stream, settings))

    async def work(client: int, done: int) -> int:
        messages = [NewMessage(id=f"{client}-{done}-{n}", body=body) for n in range(batch)]
        return len(await log.run(append(stream.stream_id, messages)))

    measured = await measure(work, name="append script", batch=batch, clients=clients, seconds=seconds)
    await log.run(config.stream_remove(stream.stream_id, workspace_id=1, name="bench"))
    await log.close()
    return measured


async def adding(url: str, *, batch: int, clients: int, seconds: float) -> Measured:
    """XADD in pipelines of the same size: no deduplication, no contiguous offsets, no counters, no atomicity."""
    log = AsyncLog(url)

    async def work(client: int, done: int) -> int:
        commands = [("XADD", "bench", "*", "i", f"{client}-{done}-{n}", "b", BODY) for n in range(batch)]
        await log.run(one(Pipeline(commands)))
        return batch

    measured = await measure(work, name="bare XADD", batch=batch, clients=clients, seconds=seconds)
    await log.run(one(("UNLINK", "bench")))
    await log.close()
    return measured
