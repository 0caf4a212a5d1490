"""A token's share of requests: exact, whoever asks, and never in the way of what must be kept."""

import itertools
import secrets
import threading
import time
from pathlib import Path

import pytest

from streams.log import keys, rate
from streams.log.client import Log
from streams.log.rate import Taken
from tests.waiting import Stopwatch, until


@pytest.fixture
def token_id() -> int:
    return secrets.randbits(48)


def take(log: Log, token_id: int, *, limit: int, burst: int) -> Taken:
    return log.run(rate.take(token_id, limit=limit, burst=burst))


def test_a_burst_is_let_through_and_then_no_more(log: Log, token_id: int) -> None:
    taken = [take(log, token_id, limit=1, burst=5) for _ in range(6)]
    assert [each.allowed for each in taken] == [True] * 5 + [False]
    assert [each.left for each in taken] == [4, 3, 2, 1, 0, 0]
    assert 0 < taken[-1].retry_s <= 1
    assert 4 < taken[-1].full_s <= 5


def test_one_more_is_let_through_when_it_was_said(log: Log, token_id: int) -> None:
    for _ in range(2):
        assert take(log, token_id, limit=4, burst=2).allowed
    watch = Stopwatch()
    refused = take(log, token_id, limit=4, burst=2)
    assert not refused.allowed
    until(lambda: take(log, token_id, limit=4, burst=2).allowed)
    assert refused.retry_s - 0.01 <= watch.wall_s
    assert watch.elapsed_s < 1


def test_a_refused_request_takes_nothing(log: Log, token_id: int) -> None:
    take(log, token_id, limit=1, burst=1)
    refused = [take(log, token_id, limit=1, burst=1) for _ in range(50)]
    assert not any(each.allowed for each in refused)
    waits = [each.retry_s for each in refused]
    assert waits == sorted(waits, reverse=True)


def test_all_who_ask_at_once_share_one_count(log: Log, token_id: int) -> None:
    allowed = itertools.count()
    began = time.monotonic()

    def ask() -> None:
        for _ in range(50):
            if take(log, token_id, limit=1, burst=20).allowed:
                next(allowed)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 20 <= next(allowed) <= 20 + (time.monotonic() - began)


def test_a_limit_that_was_lowered_holds_at_once(log: Log, token_id: int) -> None:
    for _ in range(100):
        take(log, token_id, limit=10, burst=100)
    lowered = take(log, token_id, limit=10, burst=1)
    assert not lowered.allowed
    assert lowered.retry_s <= 0.2


def test_a_limit_that_was_raised_lets_through_who_was_refused_a_moment_ago(log: Log, token_id: int) -> None:
    for _ in range(61):
        take(log, token_id, limit=1, burst=60)
    refused = take(log, token_id, limit=1000, burst=10)
    assert not refused.allowed
    assert refused.retry_s <= 0.001
    until(lambda: take(log, token_id, limit=1000, burst=10).allowed, within_s=5)


def test_a_share_that_is_whole_again_is_forgotten(log: Log, token_id: int) -> None:
    take(log, token_id, limit=20, burst=1)
    assert log.client.execute_command("EXISTS", keys.rate(token_id))
    until(lambda: not log.client.execute_command("EXISTS", keys.rate(token_id)))


def test_counting_is_not_written_to_the_disk(log: Log, token_id: int) -> None:
    """With a flush before every answer, a write for every request would halve what a client gets."""
    folder = Path(log.client.execute_command("CONFIG", "GET", "dir")[1].decode())
    log.client.execute_command("SET", f"kept:{token_id}", "1")
    take(log, token_id, limit=1, burst=1)
    written = b"".join(path.read_bytes() for path in folder.glob("appendonlydir/*.aof"))
    assert f"kept:{token_id}".encode() in written
    assert keys.rate(token_id).encode() not in written
