"""A million messages whose time is over go in slices, while others publish: nobody waits for more than one slice."""

import statistics
import threading
import time

import pytest

from streams.log import config, keys, stats, trim
from streams.log.append import append
from streams.log.client import Log
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import message
from tests.streams.log.weighed import Weighed
from tests.streams.upkeep.test_retention import stored

MILLION = 1_000_000
BEFORE = 2_000
LASTS = 950_000
"""This one stays, so that what is above it goes from between others, one by one."""

MOST = 0.5
"""Of the server's processor time for the append of a batch of 1000, for which everybody waits anyway: 99 slices of a
hundred may take so much. The server's own housekeeping falls into the odd one."""


def made(log: Log) -> str:
    stream = config.Registered(
        stream_id=keys.stream_id(), name="n", workspace="default", workspace_id=1, archive=False
    )
    log.run(config.stream_publish(stream, DEFAULTS))
    return stream.stream_id


def publish_ms(log: Log, stream: str, n: int) -> float:
    """How long a publish of one took."""
    began = time.perf_counter()
    log.run(append(stream, [message(n)]))
    return (time.perf_counter() - began) * 1000


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(600)
def test_nobody_waits_for_more_than_a_slice_while_a_million_messages_expire(
    valkey_memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, filler, sweeper = Log(valkey_memory), Weighed(valkey_memory), Weighed(valkey_memory)
    full, other = made(log), made(log)
    for first in range(0, MILLION, 1000):
        filler.run(
            append(full, [message(n, ttl_s=None if n == LASTS else 1) for n in range(first, first + 1000)])
        )
    before_ms = [publish_ms(log, (full, other)[n % 2], MILLION + n) for n in range(BEFORE)]

    def sweep() -> None:
        sweeper.run(trim.expire(full))
        sweeper.run(trim.drop(full))

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    during_ms: list[float] = []
    while sweeping.is_alive():
        n = BEFORE + len(during_ms)
        during_ms.append(publish_ms(log, (full, other)[n % 2], MILLION + n))
    sweeping.join()
    batch_ms = statistics.median(filler.took_ms)
    slice_ms = statistics.quantiles(sweeper.took_ms, n=100)[-1]
    with capsys.disabled():
        print(
            f"\n1,000,000 expired: slowest of {len(during_ms):,} publishes meanwhile {max(during_ms):.1f} ms, "
            f"of {BEFORE:,} before {max(before_ms):.1f} ms; "
            f"99 of 100 slices took {slice_ms:.1f} ms of processor time, the longest {max(sweeper.took_ms):.1f}, "
            f"the append of 1,000 messages {batch_ms:.1f}"
        )
    state = log.run(stats.inspect(full))
    assert state.messages == stored(log, full) == state.offset - MILLION + 1
    assert slice_ms <= MOST * batch_ms
    for client in (log, filler, sweeper):
        client.close()
