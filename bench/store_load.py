"""What stands under the data plane: the append script called directly, and the store's own commands."""

from collections.abc import Sequence
from itertools import count

import redis

from bench.measure import BODY, Measured, Stopwatch, Watched
from streams.log import keys
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

BARE_KEY = "bench:xadd"


def direct_append(url: str, stream_id: str, *, batch: int, seconds: float, watched: Watched) -> Measured:
    """The append script from one Python client, one call after the other; making the messages is not counted."""
    log, watch = Log(url), Stopwatch(watched)
    stored = 0
    for first in count(step=batch):
        if watch.elapsed_s >= seconds:
            break
        messages = [NewMessage(id=f"{n:015d}", body=BODY) for n in range(first, first + batch)]
        with watch.running():
            stored += len(log.run(append(stream_id, messages)))
    log.close()
    return watch.measured(stored)


def fill(url: str, stream_id: str, *, messages: int, keys: int = 0) -> None:
    """Append so many messages, for reads; with so many keys in turns, or none."""
    log = Log(url)
    for first in range(0, messages, 1000):
        batch = [
            NewMessage(id=f"{n:015d}", body=BODY, key=f"key.{n % keys}" if keys else None)
            for n in range(first, min(first + 1000, messages))
        ]
        log.run(append(stream_id, batch))
    log.close()


def length(url: str, stream_id: str) -> int:
    """Entries that a stream's log physically holds."""
    client = redis.Redis.from_url(url)
    try:
        return int(client.xlen(keys.log(stream_id)))
    finally:
        client.close()


def bare_xadd(url: str, *, batch: int, seconds: float, watched: Watched) -> Measured:
    """Pipelined XADD of an id and a body through redis-py: no deduplication, no offsets, no counters."""
    client, watch = redis.Redis.from_url(url), Stopwatch(watched)
    stored = 0
    while watch.elapsed_s < seconds:
        with watch.running():
            pipe = client.pipeline(transaction=False)
            for n in range(stored, stored + batch):
                pipe.xadd(BARE_KEY, {"i": f"{n:015d}", "b": BODY})
            stored += len(pipe.execute())
    client.unlink(BARE_KEY)
    client.close()
    return watch.measured(stored)


def xrange_pages(
    url: str, log_key: str, *, batch: int, stored: int, seconds: float, watched: Watched
) -> Measured:
    """XRANGE through redis-py as it comes, page after page of a stream's log and round again."""
    client, watch = redis.Redis.from_url(url), Stopwatch(watched)
    pages: Sequence[int] = range(1, stored, batch)
    found = 0
    for n in count():
        if watch.elapsed_s >= seconds:
            break
        with watch.running():
            found += len(client.xrange(log_key, pages[n % len(pages)], "+", batch) or ())
    client.close()
    return watch.measured(found)
